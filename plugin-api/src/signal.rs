//! What is known of a harness's turn, and on what evidence (SES-3, HAR-2).

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Whether a harness takes input. Unknown is never shown as idle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HarnessState {
    /// It waits for input.
    Idle,
    /// It works on a turn.
    Busy,
    /// It shows a permission prompt: a return would approve it.
    AwaitingPermission,
    /// Not known.
    Unknown,
    /// Its process is gone.
    Gone,
}

/// What a state is known from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Evidence {
    /// A hook of the harness.
    Hook,
    /// The harness's own state file.
    StateFile,
    /// Its transcript.
    Transcript,
    /// The terminal's screen.
    Screen,
    /// The runner's probe of the process.
    Probe,
    /// Nothing.
    None,
}

/// A state with what it rests on and since when it holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObservedState {
    /// The state.
    pub state: HarnessState,
    /// What it is known from.
    pub evidence: Evidence,
    /// Since when it holds, as far as the evidence tells.
    pub since: Timestamp,
    /// What the harness shows, such as the permission that it asks for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// What a harness said of a turn by itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnSignal {
    /// The state from then on.
    pub state: HarnessState,
    /// The harness's conversation id, where the signal names one.
    pub conversation: Option<String>,
    /// The prompt that it took, where the signal carries one.
    pub prompt: Option<String>,
    /// What it shows.
    pub detail: Option<String>,
}
