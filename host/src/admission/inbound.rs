//! What enters admission, and from where (ADM-0).

use serde::{Deserialize, Serialize};
use the_loop_plugin_api::{InboundEvent, WorkItemRef, event::Ingress};

use super::control::Command;

/// Everything that may ask the host to act.
#[derive(Debug)]
pub enum Inbound {
    /// What a plugin saw outside.
    Event(Box<InboundEvent>),
    /// What the operator asks for, past the boundary (BND): judged by policy, not by author.
    Operator(OperatorCall),
    /// What the host does by itself.
    Host(HostAct),
}

/// Where something came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// A pushed delivery of a tracker.
    Webhook,
    /// A listing of a tracker.
    Poll,
    /// The local tracker.
    Local,
    /// A conversation surface.
    Channel,
    /// CLI, REST, MCP, SDK or dashboard.
    ControlPlane,
    /// The host itself: retries, auto-start, sweeps.
    Host,
}

impl Source {
    /// All of them.
    pub const ALL: [Self; 6] = [Self::Webhook, Self::Poll, Self::Local, Self::Channel, Self::ControlPlane, Self::Host];

    /// The word used in the event log and in the policy table.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Webhook => Ingress::Webhook.as_str(),
            Self::Poll => Ingress::Poll.as_str(),
            Self::Local => Ingress::Local.as_str(),
            Self::Channel => Ingress::Channel.as_str(),
            Self::ControlPlane => "control-plane",
            Self::Host => "host",
        }
    }
}

impl From<Ingress> for Source {
    fn from(ingress: Ingress) -> Self {
        match ingress {
            Ingress::Webhook => Self::Webhook,
            Ingress::Poll => Self::Poll,
            Ingress::Local => Self::Local,
            Ingress::Channel => Self::Channel,
        }
    }
}

/// A face of the control plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Surface {
    /// The command line.
    Cli,
    /// The REST API.
    Api,
    /// An embedding program.
    Sdk,
}

impl Surface {
    /// The word used as `source` of a command (CTL-8).
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cli => "cli",
            Self::Api => "api",
            Self::Sdk => "sdk",
        }
    }
}

/// A call of the operator's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperatorCall {
    /// The face it came through.
    pub surface: Surface,
    /// Who the caller says to be: recorded, never trusted as authentication (ADM-1).
    pub claimed_actor: String,
    /// What is asked.
    pub act: OperatorAct,
}

/// What an operator can ask that acts on a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OperatorAct {
    /// One of the five commands (CTL-10).
    Command {
        /// Which.
        command: Command,
        /// On what.
        item: WorkItemRef,
        /// Post the keyword to the ticket, marked.
        comment: bool,
        /// Remove a checkout although work in it would be lost.
        discard_work: bool,
    },
    /// Take over a conversation that was started elsewhere.
    Register(Registration),
    /// Record by hand that a pull request delivers an item (LNK-2).
    LinkPullRequest {
        /// The item.
        item: WorkItemRef,
        /// The pull request.
        pull_request: WorkItemRef,
    },
    /// End a session; the next start is a fresh conversation.
    Close {
        /// Whose.
        item: WorkItemRef,
        /// Keep the terminal for reading; `None` follows the config.
        keep_terminal: Option<bool>,
    },
    /// Forget what this machine knows of an item.
    Reset {
        /// Which.
        item: WorkItemRef,
        /// Remove a checkout although work in it would be lost.
        discard_work: bool,
    },
    /// Put an answer into a session that runs (RPL-1).
    Reply {
        /// Whose.
        item: WorkItemRef,
        /// What was said, not empty and within the bound.
        text: String,
        /// Tell the ticket of it (RPL-3).
        comment: bool,
    },
}

/// What an agent asks a person, on its way to the ticket (ASK-1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// Its id, which names its comment.
    pub id: the_loop_plugin_api::QuestionId,
    /// The item that it is about.
    pub item: WorkItemRef,
    /// What is asked.
    pub text: String,
    /// What the agent does if nobody answers.
    pub default: Option<String>,
    /// Answers to choose from.
    pub choices: Vec<String>,
    /// Who asks, as it says itself.
    pub actor: String,
}

impl OperatorAct {
    /// The item it is about.
    #[must_use]
    pub fn item(&self) -> &WorkItemRef {
        match self {
            Self::Command { item, .. }
            | Self::LinkPullRequest { item, .. }
            | Self::Close { item, .. }
            | Self::Reset { item, .. }
            | Self::Reply { item, .. } => item,
            Self::Register(registration) => &registration.item,
        }
    }

    /// Whether the tracker is asked for the item. A start needs what is true now; what ends, holds or forgets a session is
    /// about this machine's own records, and must work for an item that the tracker no longer has.
    #[must_use]
    pub fn needs_tracker(&self) -> bool {
        matches!(self, Self::Command { command: Command::Start, .. } | Self::Register(_))
    }
}

/// A conversation to take over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registration {
    /// The item that it works on.
    pub item: WorkItemRef,
    /// The harness.
    pub harness: String,
    /// The harness's conversation id.
    pub conversation: String,
    /// The folder it works in.
    pub cwd: std::path::PathBuf,
    /// Replace a registered conversation.
    pub force: bool,
}

/// What the host does by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostAct {
    /// Try a start again that was admitted and did not come up (CTL-9).
    RetryStart {
        /// Of which item.
        item: WorkItemRef,
    },
}
