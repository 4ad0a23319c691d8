//! `standingSessions`: sessions that belong to no work item.

use std::path::PathBuf;

use super::section::section;

section! {
    /// Sessions that belong to no work item (STD). Off by default: enabling the host is no consent to spawn agents.
    StandingConfig {
        /// Whether `start` brings them up.
        enabled: bool = false,
        /// Their definitions.
        sessions: Vec<StandingEntry> = Vec::new(),
    }
}

section! {
    /// A declared standing session.
    #[schemars(extend("required" = ["name"]))]
    StandingEntry {
        /// Its name, of which tmux session and file names are made (STD-4).
        #[schemars(regex(pattern = r"^[a-z0-9][a-z0-9-]{0,39}$"))]
        name: String = String::new(),
        /// What it is for.
        description: String = String::new(),
        /// Its harness; `routing.defaultHarness` when left out.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(length(min = 1))]
        harness: Option<String> = None,
        /// Its harness's arguments; `routing.harnessArgs` when left out, none when empty (STD-5).
        #[serde(skip_serializing_if = "Option::is_none")]
        harness_args: Option<Vec<String>> = None,
        /// Where it starts; `routing.spawnWorkdir` when left out.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(length(min = 1))]
        cwd: Option<PathBuf> = None,
        /// Appended to its boot directive.
        prompt: String = String::new(),
        /// A file of which the same is read; never together with `prompt` (STD-6).
        prompt_file: PathBuf = PathBuf::new(),
        /// Whether `start` brings it up.
        auto_start: bool = true,
        /// Its Slack thread.
        slack: StandingSlackConfig = StandingSlackConfig::default(),
    }
}

section! {
    /// A standing session's Slack thread (STD-17).
    StandingSlackConfig {
        /// Whether it has one.
        enabled: bool = false,
        /// Its channel; `channels.slack.channel` when empty.
        channel: String = String::new(),
    }
}
