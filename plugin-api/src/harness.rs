//! [`Harness`]: an agent program.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::Duration,
};

use async_trait::async_trait;
use serde::Serialize;

use crate::{
    delivery::Readiness,
    launch::{LaunchPlan, LaunchRequest},
    signal::{ObservedState, TurnSignal},
};

/// An agent program: how it is started, how it is told from a shell that merely echoes, and what it says of itself.
///
/// A harness never starts a process and never writes to a terminal. It describes, and the host acts.
#[async_trait]
pub trait Harness: Send + Sync {
    /// What it can do. A start that needs something else fails saying so (HAR-1).
    fn capabilities(&self) -> Capabilities;

    /// Makes a folder ready before any start in it: trust, onboarding, settings (HAR-4). `environment` is what the session's
    /// process will have.
    ///
    /// # Errors
    /// When the harness's own files cannot be read or merged.
    async fn prepare(&self, cwd: &Path, environment: &BTreeMap<String, String>) -> Result<Prepared, HarnessError>;

    /// How to start it.
    ///
    /// # Errors
    /// When the request needs a capability that is missing, or holds an id that is not the harness's.
    fn launch(&self, request: &LaunchRequest) -> Result<LaunchPlan, HarnessError>;

    /// How a runner tells that it takes input.
    fn readiness(&self) -> Readiness;

    /// What the harness itself says of its state right now, in its own files; `None` where it says nothing.
    async fn observe(&self, process: &ProcessFacts) -> Option<ObservedState>;

    /// Where the transcript of a conversation is, if it keeps one.
    fn transcript(&self, conversation: &str, process: &ProcessFacts) -> Option<PathBuf>;

    /// What a hook's payload says; `None` for a payload that says nothing of a turn.
    fn signal(&self, payload: &serde_json::Value) -> Option<TurnSignal>;
}

/// What a harness can do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Capabilities {
    /// The host may choose the id of a new conversation.
    pub assignable_conversation: bool,
    /// A recorded conversation can be taken up again.
    pub resume: bool,
    /// It signals its turns, by hook, event or state file.
    pub turn_signals: bool,
    /// It keeps a transcript that can be read.
    pub transcript: bool,
    /// It can be given an MCP server.
    pub mcp: bool,
    /// It asks for permissions.
    pub permission_prompts: bool,
}

/// What was done to make a folder ready.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prepared {
    /// Changes that were applied to the harness's own files, in words; empty when all was right already.
    pub applied: Vec<String>,
}

/// What is known of a harness's process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessFacts {
    /// The agent's own process id, while it runs.
    pub pid: Option<u32>,
    /// The folder it was started in.
    pub cwd: PathBuf,
    /// The recorded conversation id.
    pub conversation: Option<String>,
    /// How long ago it was started.
    pub age: Duration,
    /// The variables that it has, apart from those that the harness declares.
    pub environment: BTreeMap<String, String>,
}

/// Why a harness cannot do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum HarnessError {
    /// It lacks a capability.
    #[error("the harness cannot {what}")]
    Unsupported {
        /// What it cannot do.
        what: &'static str,
    },
    /// A conversation id is not one of its ids.
    #[error("{id:?} is not a conversation id of this harness")]
    InvalidConversation {
        /// The id.
        id: String,
    },
    /// A file of the harness cannot be read or written.
    #[error("{path} could not be {action}")]
    File {
        /// The file.
        path: PathBuf,
        /// What was tried, as a past participle.
        action: &'static str,
        /// Why not.
        source: std::io::Error,
    },
    /// A file of the harness does not parse, and is left alone.
    #[error("{path} does not parse and was left alone: {problem}")]
    Unparsable {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
}
