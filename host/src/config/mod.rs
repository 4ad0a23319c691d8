//! The operator's config: found, validated, typed, watched and edited (CFG-1 to CFG-4).
//!
//! A file becomes a config in this order: YAML with places ([`yaml`]), the predecessor's keys and the values that may fall
//! back ([`legacy`]), the schema ([`schema`], [`check`]), the types ([`types`]), the rules that no schema can say
//! ([`rules`]). Every error names file, line, key, what was found and what was expected.

mod check;
mod diff;
mod discover;
mod edit;
mod error;
mod init;
mod legacy;
mod load;
mod rules;
mod schema;
mod suggest;
mod types;
mod watch;
mod yaml;

pub use diff::Changes;
pub use discover::{FILE, FOLDER, SCHEMA_FILE, discover};
pub use edit::{Edit, EditError, apply, parse_value, set, unset};
pub use error::{ConfigError, Problem, Warning};
pub use init::{InitError, init, init_template, write_schema};
pub use load::{LoadOptions, Loaded, get, load, load_with, nearest_key};
pub use schema::{Fragment, schema, schema_text};
pub use types::{
    AnnounceConfig, AuthorizedUser, BypassPolicy, ChannelsConfig, CloneProtocol, Config, Consent, ControlConfig,
    CorsConfig, EnvConfig, EventLogConfig, GhWebhookConfig, GithubApiConfig, GithubAppConfig, GithubCliConfig,
    GithubConfig, HarnessTrustConfig, IntegrationsConfig, Interaction, InteractionConfig, KeywordsConfig, LimitPolicy,
    LoopIdle, LoopsConfig, McpConfig, MonitorConfig, PermissionPolicy, PollSource, PollingConfig, Provider,
    ReactionsConfig, RoutingConfig, ServiceConfig, SessionPerPr, SlackConfig, SlackRead, SlackReadConfig,
    SpawnOnUnmatched, StandingConfig, StandingEntry, StandingSlackConfig, StateConfig, StreamConfig, TmuxConfig,
    TrustScope, Unsignalled, Verbosity, WebTerminalConfig, WebhooksConfig, WorkspaceConfig, WorkspaceStrategy,
};
pub use watch::{ConfigWatch, Reload};
pub use yaml::Position;

#[cfg(test)]
mod tests;
