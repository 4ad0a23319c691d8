//! The config at `/integrations/github/api`.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use the_loop_plugin_api::registry::ConfigFragment;

use crate::webhook::EnvNames;

/// Where the plugin's part of the config stands.
pub(super) const FRAGMENT: ConfigFragment =
    ConfigFragment::new("/integrations/github/api", || schemars::schema_for!(ApiConfig).to_value());

/// GitHub's API.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ApiConfig {
    /// The base URL; a GitHub Enterprise server has its own, such as `https://ghe.example/api/v3`.
    #[schemars(regex(pattern = r"^https?://[^\s?#]+$"))]
    pub base_url: String,
    /// The environment variable that holds the token, or several to be tried in order.
    pub token_env: EnvNames,
    /// The time between two writes to one repository, in milliseconds. Waits that GitHub asks for come on top; where it asks
    /// for a wait and does not say how long, sixty of these are waited.
    #[schemars(range(min = 1, max = 60_000))]
    pub write_interval_milliseconds: u64,
}

impl Default for ApiConfig {
    fn default() -> Self {
        Self {
            base_url: "https://api.github.com".to_owned(),
            token_env: EnvNames::Several(vec!["GITHUB_TOKEN".to_owned(), "GH_TOKEN".to_owned()]),
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
