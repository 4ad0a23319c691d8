//! [`Channel`]: a conversation surface beside the ticket.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::{registry::HostKey, session::SessionKey};

/// A conversation surface beside the ticket. What people say in it reaches the host through the sink of its context, as
/// [`crate::event::Ingress::Channel`] events; what it posts was ordered by the host.
#[async_trait]
pub trait Channel: Send + Sync {
    /// Whether the config asks for it.
    fn enabled(&self) -> bool;

    /// Whether its config asks for events of this type, such as `session.awaiting_input`, to be posted.
    fn subscribes(&self, event_type: &str) -> bool;

    /// Opens a conversation for a session with its first message. Opening with one message key twice opens one
    /// conversation, and gives it both times: the host may have died before it had noted the answer down.
    ///
    /// # Errors
    /// When it could not be opened. A channel's failure never changes what the host does otherwise.
    async fn open(&self, session: &SessionKey, message: &Message) -> Result<Thread, ChannelError>;

    /// Posts into a conversation. Posting one key twice posts it once.
    ///
    /// # Errors
    /// When it was not posted.
    async fn post(&self, thread: &Thread, message: &Message) -> Result<(), ChannelError>;

    /// Reads replies until the stop signal of its context, by push or by poll, into the sink.
    ///
    /// # Errors
    /// When it cannot go on.
    async fn listen(&self) -> Result<(), ChannelError>;

    /// Says what it is and where, without secrets.
    fn describe(&self) -> String;

    /// Checks itself: credentials, reach, membership. One line a finding.
    async fn doctor(&self) -> Vec<Finding>;
}

/// Names one conversation in a channel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thread {
    /// The place that holds it.
    pub place: String,
    /// The conversation in it.
    pub id: String,
}

/// Something the host says in a channel. Only the host can make one.
#[derive(Clone, Debug)]
pub struct Message {
    key: String,
    markdown: String,
    choices: Vec<String>,
}

impl Message {
    /// Makes a message; `key` names it for ever.
    #[must_use]
    pub fn new(_key: &HostKey, key: String, markdown: String, choices: Vec<String>) -> Self {
        Self { key, markdown, choices }
    }

    /// What names this message.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Its text.
    #[must_use]
    pub fn markdown(&self) -> &str {
        &self.markdown
    }

    /// Answers that one tap gives.
    #[must_use]
    pub fn choices(&self) -> &[String] {
        &self.choices
    }
}

/// One thing a self-check found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Whether it is as it should be.
    pub ok: bool,
    /// What was looked at and what was found.
    pub text: String,
}

/// Why a channel did not do what it was asked.
#[derive(Debug, thiserror::Error)]
#[error("the channel could not {action}: {problem}")]
pub struct ChannelError {
    /// What was tried.
    pub action: &'static str,
    /// What came back.
    pub problem: String,
}
