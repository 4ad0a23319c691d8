//! `webhooks`, `polling` and `integrations`: how trackers are heard and reached.

use std::path::PathBuf;

use super::lists;
use super::section::{choice, section, text, texts};

section! {
    /// Ingress by webhook.
    WebhooksConfig {
        /// GitHub's. All keys but `enabled` belong to the plugin.
        gh_webhook: GhWebhookConfig = GhWebhookConfig::default(),
    }
}

section! {
    /// What the host itself reads of the GitHub webhook.
    GhWebhookConfig {
        /// Whether it listens.
        enabled: bool = false,
    }
}

section! {
    /// Ingress by polling.
    PollingConfig {
        /// Whether the poller runs.
        enabled: bool = false,
        /// Seconds between two cycles.
        #[schemars(range(min = 1))]
        interval_seconds: u64 = 60,
        /// How often a failing read is tried again within a cycle.
        max_retries: u32 = 3,
        /// What is polled.
        sources: Vec<PollSource> = Vec::new(),
    }
}

choice! {
    /// A tracker that can be polled.
    Provider {
        /// GitHub.
        Github,
    }
}

section! {
    /// One source of the poller.
    PollSource {
        /// The tracker.
        provider: Provider = Provider::Github,
        /// Repositories: `owner/name`, or `host/owner/name`.
        #[schemars(inner(regex(pattern = r"^([A-Za-z0-9.-]+(:[0-9]+)?/)?[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+$")))]
        repos: Vec<String> = Vec::new(),
        /// The label that arms; `routing.autoExecuteLabel` when empty.
        label: String = String::new(),
        /// What is looked at.
        monitor: MonitorConfig = MonitorConfig::default(),
    }
}

section! {
    /// What a source looks at.
    MonitorConfig {
        /// Issues.
        issues: bool = true,
        /// Pull requests.
        pull_requests: bool = true,
    }
}

section! {
    /// How trackers are reached.
    IntegrationsConfig {
        /// GitHub.
        github: GithubConfig = GithubConfig::default(),
    }
}

section! {
    /// How GitHub is reached.
    GithubConfig {
        /// Its API.
        api: GithubApiConfig = GithubApiConfig::default(),
        /// Its command-line tool, as a source of a token.
        cli: GithubCliConfig = GithubCliConfig::default(),
    }
}

section! {
    /// GitHub's API.
    GithubApiConfig {
        /// The base URL; a GitHub Enterprise server has its own.
        #[schemars(regex(pattern = r"^https?://[^\s?#]+$"))]
        base_url: String = text("https://api.github.com"),
        /// Variables that may hold the token, tried in order.
        #[serde(deserialize_with = "lists::one_or_many")]
        #[schemars(schema_with = "lists::env_names")]
        token_env: Vec<String> = texts(&["GITHUB_TOKEN", "GH_TOKEN"]),
        /// A GitHub App to act as, instead of a token.
        #[serde(skip_serializing_if = "Option::is_none")]
        app: Option<GithubAppConfig> = None,
    }
}

section! {
    /// A GitHub App.
    GithubAppConfig {
        /// Its id.
        #[serde(deserialize_with = "lists::text_or_number", skip_serializing_if = "Option::is_none")]
        #[schemars(schema_with = "lists::text_or_number_schema")]
        id: Option<String> = None,
        /// The file of its private key.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(length(min = 1))]
        key_file: Option<PathBuf> = None,
        /// The installation to act for.
        #[serde(deserialize_with = "lists::text_or_number", skip_serializing_if = "Option::is_none")]
        #[schemars(schema_with = "lists::text_or_number_schema")]
        installation_id: Option<String> = None,
    }
}

section! {
    /// GitHub's command-line tool.
    GithubCliConfig {
        /// The program, used for `gh auth token` alone.
        #[schemars(length(min = 1))]
        binary: String = text("gh"),
    }
}
