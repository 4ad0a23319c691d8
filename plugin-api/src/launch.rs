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
    /// What its process will find around it.
    pub surroundings: Surroundings,
}

/// What a session's process will find around it. A harness reads no environment of its own: the host's is not the session's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Surroundings {
    /// The variables that it will have, apart from those that the harness declares.
    pub environment: BTreeMap<String, String>,
    /// Where the files of [`LaunchPlan::files`] will be. It is this spawn's own.
    pub folder: PathBuf,
    /// The command that a hook of the harness is to run, with its payload on standard input (HAR-2); program first.
    pub hook: Vec<String>,
    /// Whether the operator lets the host accept a harness's warning that permissions are bypassed (HAR-4).
    pub accepts_bypass: bool,
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
    /// Files that the host writes, for the owner alone, into [`Surroundings::folder`] before the start, by name.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
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
