//! The config at `/integrations/github`.

use std::{fmt, path::PathBuf, time::Duration};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use the_loop_plugin_api::registry::ConfigFragment;

use crate::webhook::EnvNames;

/// Where the plugin's part of the config stands.
pub(super) const FRAGMENT: ConfigFragment =
    ConfigFragment::new("/integrations/github", || schemars::schema_for!(GithubConfig).to_value());

/// How GitHub is reached.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct GithubConfig {
    /// Its API.
    pub api: ApiConfig,
    /// Its command-line tool, as a source of a token.
    pub cli: CliConfig,
}

/// GitHub's API.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ApiConfig {
    /// The base URL; a GitHub Enterprise server has its own, such as `https://ghe.example/api/v3`.
    #[schemars(regex(pattern = r"^https?://[^\s?#]+$"))]
    pub base_url: String,
    /// The environment variable that holds the token, or several to be tried in order.
    pub token_env: EnvNames,
    /// A GitHub App to act as, instead of a token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub app: Option<AppConfig>,
    /// The time between two writes to one repository, in milliseconds. Waits that GitHub asks for come on top; where it asks
    /// for a wait and does not say how long, sixty of these are waited.
    #[schemars(range(min = 1, max = 60_000))]
    pub write_interval_milliseconds: u64,
}

/// A GitHub App, as its settings page names it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AppConfig {
    /// Its id, or its client id.
    pub id: TextOrNumber,
    /// The file of its private key, as GitHub gave it for download.
    #[schemars(length(min = 1))]
    pub key_file: PathBuf,
    /// The installation to act for.
    pub installation_id: TextOrNumber,
}

/// An id that may be written as a number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum TextOrNumber {
    /// A text.
    Text(#[schemars(length(min = 1))] String),
    /// A number.
    Number(#[schemars(range(min = 1))] u64),
}

impl fmt::Display for TextOrNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Number(number) => number.fmt(f),
        }
    }
}

/// GitHub's command-line tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct CliConfig {
    /// The program, used for `gh auth token` alone.
    #[schemars(length(min = 1))]
    pub binary: String,
}

impl Default for CliConfig {
    fn default() -> Self {
        Self { binary: "gh".to_owned() }
    }
}

impl Default for ApiConfig {
    fn default() -> Self {
        Self {
            base_url: "https://api.github.com".to_owned(),
            token_env: EnvNames::Several(vec!["GITHUB_TOKEN".to_owned(), "GH_TOKEN".to_owned()]),
            app: None,
            write_interval_milliseconds: 1000,
        }
    }
}

impl ApiConfig {
    /// The time between two writes to one repository.
    pub(super) fn pace(&self) -> Duration {
        Duration::from_millis(self.write_interval_milliseconds.max(1))
    }
}
