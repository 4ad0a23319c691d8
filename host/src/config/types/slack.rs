//! `channels`: conversation surfaces beside the ticket.

use super::lists::{self, AuthorizedUser};
use super::section::{choice, section, text, texts};

section! {
    /// Conversation surfaces beside the ticket.
    ChannelsConfig {
        /// Slack.
        slack: SlackConfig = SlackConfig::default(),
    }
}

section! {
    /// Slack (SLK).
    SlackConfig {
        /// Whether it is used.
        enabled: bool = false,
        /// The variable that holds the bot token.
        #[serde(deserialize_with = "lists::one_or_many")]
        #[schemars(schema_with = "lists::env_names")]
        bot_token_env: Vec<String> = texts(&["THE_LOOP_SLACK_BOT_TOKEN"]),
        /// The variable that holds the app token.
        #[serde(deserialize_with = "lists::one_or_many")]
        #[schemars(schema_with = "lists::env_names")]
        app_token_env: Vec<String> = texts(&["THE_LOOP_SLACK_APP_TOKEN"]),
        /// The base URL of the Web API.
        #[schemars(regex(pattern = r"^https?://[^\s?#]+$"))]
        api_base_url: String = text("https://slack.com/api"),
        /// The channel that work items are announced in.
        channel: String = String::new(),
        /// Event types that are posted.
        #[schemars(inner(length(min = 1)))]
        events: Vec<String> = texts(&["session.awaiting_input"]),
        /// How much of each is said.
        verbosity: Verbosity = Verbosity::Normal,
        /// Who may answer; nobody when empty (ADM-2).
        #[serde(deserialize_with = "lists::slack_users")]
        #[schemars(schema_with = "lists::people_schema")]
        authorized_users: Vec<AuthorizedUser> = Vec::new(),
        /// How answers are read.
        read: SlackReadConfig = SlackReadConfig::default(),
    }
}

choice! {
    /// How much of an event is said.
    Verbosity {
        /// The least.
        Quiet,
        /// What one needs to answer.
        Normal,
        /// All.
        Verbose,
    }
}

section! {
    /// How answers are read (SLK-6).
    SlackReadConfig {
        /// The way.
        mode: SlackRead = SlackRead::Poll,
        /// Seconds between two reads.
        #[schemars(range(min = 1))]
        interval_seconds: u64 = 30,
    }
}

choice! {
    /// How answers are read (SLK-6).
    SlackRead {
        /// By Socket Mode.
        Socket,
        /// By asking now and then.
        Poll,
        /// Not at all.
        Off,
    }
}
