//! The typed config: every key of the reference with its default.
//!
//! A plugin's own keys are not here: its fragment describes them and it reads them itself (see [`super::schema`]).

mod github;
mod lists;
mod loops;
mod routing;
mod section;
mod service;
mod sessions;
mod slack;
mod standing;

use section::section;

pub use github::{
    GhWebhookConfig, GithubApiConfig, GithubAppConfig, GithubCliConfig, GithubConfig, IntegrationsConfig,
    MonitorConfig, PollSource, PollingConfig, Provider, WebhooksConfig,
};
pub use lists::AuthorizedUser;
pub(super) use lists::ENV_PATTERNS;
pub use loops::{Consent, LoopIdle, LoopsConfig};
pub use routing::{
    AnnounceConfig, ControlConfig, Interaction, InteractionConfig, KeywordsConfig, LimitPolicy, PermissionPolicy,
    ReactionsConfig, RoutingConfig, SpawnOnUnmatched, Unsignalled,
};
pub use service::{CorsConfig, McpConfig, ServiceConfig, StreamConfig};
pub use sessions::{
    BypassPolicy, CloneProtocol, HarnessTrustConfig, SessionPerPr, TmuxConfig, TrustScope, WebTerminalConfig,
    WorkspaceConfig, WorkspaceStrategy,
};
pub use slack::{ChannelsConfig, SlackConfig, SlackRead, SlackReadConfig, Verbosity};
pub use standing::{StandingConfig, StandingEntry, StandingSlackConfig};

use std::path::PathBuf;

section! {
    /// The operator's config, with defaults filled in (CFG-2).
    Config {
        /// Accepted for files of the predecessor; any value.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(schema_with = "lists::anything")]
        version: Option<serde_json::Value> = None,
        /// Where the state is kept.
        state: StateConfig = StateConfig::default(),
        /// The control plane: REST, MCP, events, dashboard.
        service: ServiceConfig = ServiceConfig::default(),
        /// Ingress by webhook.
        webhooks: WebhooksConfig = WebhooksConfig::default(),
        /// Ingress by polling.
        polling: PollingConfig = PollingConfig::default(),
        /// How trackers are reached.
        integrations: IntegrationsConfig = IntegrationsConfig::default(),
        /// Who and what may act, and how sessions are run.
        routing: RoutingConfig = RoutingConfig::default(),
        /// What sessions see of the environment.
        env: EnvConfig = EnvConfig::default(),
        /// Sessions that belong to no work item.
        standing_sessions: StandingConfig = StandingConfig::default(),
        /// Conversation surfaces beside the ticket.
        channels: ChannelsConfig = ChannelsConfig::default(),
        /// Recurring prompts.
        loops: LoopsConfig = LoopsConfig::default(),
        /// The event log.
        event_log: EventLogConfig = EventLogConfig::default(),
    }
}

section! {
    /// Where the state is kept.
    StateConfig {
        /// The state root; everything the host writes is below it.
        #[schemars(length(min = 1))]
        root: PathBuf = PathBuf::from(".the-loop"),
    }
}

section! {
    /// What sessions see of the environment (TMX-7).
    EnvConfig {
        /// A file of `NAME=value` lines for every session; empty for none.
        file: PathBuf = PathBuf::new(),
        /// Names of the host's own variables that sessions get as well.
        #[schemars(schema_with = "lists::env_list")]
        session_passthrough: Vec<String> = Vec::new(),
    }
}

section! {
    /// The event log (EVT).
    EventLogConfig {
        /// Whether events are written.
        enabled: bool = true,
        /// The file; `<state.root>/logs/events.jsonl` when left out.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(length(min = 1))]
        path: Option<PathBuf> = None,
        /// Size at which the file is rotated.
        #[schemars(range(min = 4096))]
        max_bytes: u64 = 256 * 1024 * 1024,
        /// How many rotated files are kept.
        keep: u32 = 4,
    }
}
