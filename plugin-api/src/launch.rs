//! How a harness process is started.

use std::{collections::BTreeMap, path::PathBuf};

use serde::{Deserialize, Serialize};

use crate::{ids::IncarnationId, session::SessionKey};

/// What a harness is asked to start.
#[derive(Clone, Debug)]
pub struct LaunchRequest {
    /// The session that it will be.
    pub session: SessionKey,
    /// This spawn of it.
    pub incarnation: IncarnationId,
    /// The folder to work in; it exists.
    pub cwd: PathBuf,
    /// Arguments that the operator configured for this harness.
    pub args: Vec<String>,
    /// A new conversation, or one to take up again.
    pub conversation: Conversation,
    /// The first prompt, whole.
    pub prompt: String,
}

/// Which conversation a process is started for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Conversation {
    /// A new one; with this id where the harness can be told one.
    New {
        /// The id that the host chose.
        id: String,
    },
    /// A recorded one.
    Resume {
        /// The harness's id of it.
        id: String,
    },
}

/// How to start a harness process. It says nothing of terminals: the runner hosts it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaunchPlan {
    /// Program and arguments; never empty. A program without `/` is looked up in the session's `PATH`.
    pub argv: Vec<String>,
    /// Variables that the harness declares, beside the host's allow-list (TMX-7).
    pub env: BTreeMap<String, String>,
    /// The folder to start in.
    pub cwd: PathBuf,
    /// How the first prompt reaches the harness.
    pub first_prompt: FirstPrompt,
    /// The conversation id to record, where it is known before the start.
    pub conversation: Option<String>,
}

/// How a first prompt is handed over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FirstPrompt {
    /// It is in [`LaunchPlan::argv`] already.
    InArguments,
    /// The host delivers it as the first text, once the harness takes input.
    Delivered,
}
