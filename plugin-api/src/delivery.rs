//! A text on its way into a session, as a runner sees it.

use std::{fmt, sync::Arc, time::Duration};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::{ids::DeliveryId, registry::HostKey};

/// A text that the host has admitted for one session. Only the host can make one (ARC-4).
pub struct Delivery {
    id: DeliveryId,
    text: String,
    readiness: Readiness,
    gate: Arc<dyn InputGate>,
}

impl Delivery {
    /// Makes a delivery of a text that is already sanitised (DEL-2) and framed (DEL-3).
    #[must_use]
    pub fn new(_key: &HostKey, id: DeliveryId, text: String, readiness: Readiness, gate: Arc<dyn InputGate>) -> Self {
        Self { id, text, readiness, gate }
    }

    /// Its id.
    #[must_use]
    pub fn id(&self) -> DeliveryId {
        self.id
    }

    /// The text, to be pasted as it is and as a whole.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What the runner itself must see before it writes a byte.
    #[must_use]
    pub fn readiness(&self) -> Readiness {
        self.readiness
    }

    /// What the host must say before the text, and again before the return.
    #[must_use]
    pub fn gate(&self) -> &dyn InputGate {
        &*self.gate
    }
}

impl fmt::Debug for Delivery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Delivery").field("id", &self.id).field("bytes", &self.text.len()).finish_non_exhaustive()
    }
}

/// How a runner tells that a harness takes input (DEL-5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Readiness {
    /// A harness without turn signals: it is the foreground program, bracketed paste is on, and its screen has been quiet
    /// for this long apart from the echo of our own deliveries.
    Screen {
        /// How long the screen must have been quiet.
        quiet_for: Duration,
    },
    /// The harness tells by itself; the [`InputGate`] asks it.
    Signals,
}

/// Asked before the text is pasted and again before the return is sent: a return is a key that can approve a command.
#[async_trait]
pub trait InputGate: Send + Sync {
    /// Whether the harness takes input at this moment.
    async fn check(&self) -> Result<(), HoldReason>;
}

/// Why a delivery waits. Each is shown in its receipt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HoldReason {
    /// The harness has not shown yet that it takes input.
    NotReady,
    /// The harness's state is not known.
    StateUnknown,
    /// A dialog is open.
    DialogOpen,
    /// The pane is in copy mode, where brackets are lost.
    CopyMode,
    /// Another program has the terminal.
    NotForeground,
    /// The screen is still changing.
    ScreenBusy,
    /// A person who may write was active a moment ago.
    ClientActive,
    /// The composer holds a person's unsent draft.
    Draft,
    /// The session is paused.
    Paused,
    /// Routing is off, or only shown what it would do (ADM-6).
    RoutingOff,
    /// The runner did not answer in time.
    RunnerSilent,
}

impl HoldReason {
    /// The word used in receipts and events.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::NotReady => "not-ready",
            Self::StateUnknown => "state-unknown",
            Self::DialogOpen => "dialog-open",
            Self::CopyMode => "copy-mode",
            Self::NotForeground => "not-foreground",
            Self::ScreenBusy => "screen-busy",
            Self::ClientActive => "client-active",
            Self::Draft => "draft",
            Self::Paused => "paused",
            Self::RoutingOff => "routing-off",
            Self::RunnerSilent => "runner-silent",
        }
    }
}

/// What became of a delivery at the runner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeliveryOutcome {
    /// The whole text was pasted and the return was sent.
    Delivered,
    /// No byte was written; it waits for this.
    Held(HoldReason),
    /// The text was pasted and the return was withheld for this: the text stands in the composer.
    Unsubmitted(HoldReason),
    /// No byte was written, and trying the same again may help.
    NotWritten {
        /// What went wrong.
        error: String,
    },
    /// The target is gone; no byte was written.
    Gone {
        /// What the runner found instead.
        found: String,
    },
    /// A byte may have been written, and nothing tells whether (DEL-7).
    Uncertain {
        /// What went wrong.
        error: String,
    },
}
