//! [`Runner`]: what hosts a harness process and types into it.

use std::{path::PathBuf, time::Duration};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::{
    delivery::{Delivery, DeliveryOutcome},
    ids::IncarnationId,
    registry::HostKey,
};

/// Hosts harness processes. A runner decides nothing: whatever it does, it was given an order that only the host can make.
#[async_trait]
pub trait Runner: Send + Sync {
    /// Its version, where its sessions live, and whether it answers (TMX-8).
    async fn describe(&self) -> RunnerDescription;

    /// Everything that occupies it, in one look (TMX-9). `None` when it did not answer in time: that is not "nothing".
    async fn survey(&self) -> Option<Vec<Occupant>>;

    /// What stands under `name` now. `handle`, where given, tells our own process from a stranger under the same name.
    async fn probe(&self, name: &str, handle: Option<&RunnerHandle>) -> Liveness;

    /// Starts a process under a name that nothing occupies. A dead occupant is cleared and the clearing verified (TMX-4).
    ///
    /// # Errors
    /// [`SpawnError::Occupied`] when something lives under the name; it is left alone.
    async fn spawn(&self, order: &SpawnOrder) -> Result<RunnerHandle, SpawnError>;

    /// Pastes a text as one bracketed paste and submits it (DEL-1), after the gates of DEL-5.
    async fn deliver(&self, handle: &RunnerHandle, delivery: &Delivery) -> DeliveryOutcome;

    /// What the terminal shows.
    ///
    /// # Errors
    /// When the target is gone or the runner does not answer.
    async fn capture(&self, handle: &RunnerHandle, options: CaptureOptions) -> Result<Screen, RunnerError>;

    /// Ends the harness gracefully, then by force after the grace (TMX-5). The terminal stays readable.
    ///
    /// # Errors
    /// When the runner does not answer; nothing is signalled on doubt.
    async fn terminate(&self, handle: &RunnerHandle, order: &Termination) -> Result<Terminated, RunnerError>;

    /// Removes the terminal session of a handle, whatever runs in it. Nothing under another name or of another server is
    /// touched.
    ///
    /// # Errors
    /// When the runner does not answer, or the session is not ours.
    async fn kill(&self, handle: &RunnerHandle, order: &Termination) -> Result<(), RunnerError>;

    /// The agent's own process id, while it runs.
    fn agent_pid(&self, handle: &RunnerHandle) -> Option<u32>;

    /// The command with which a person attaches.
    fn attach(&self, name: &str, read_only: bool) -> Vec<String>;
}

/// The whole address of a hosted process (TMX-12), written into records. Only the runner that made it reads `data`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunnerHandle {
    /// The runner's registered name.
    pub runner: String,
    /// The session's name, as people type it.
    pub name: String,
    /// The spawn that it is.
    pub incarnation: IncarnationId,
    /// The runner's own address of it.
    pub data: serde_json::Value,
}

/// What a probe found. Unknown is never read as absent (TMX-3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Liveness {
    /// A process runs. `ours` says whether it is the one that the handle names.
    Live {
        /// Whether it is the handle's own process.
        ours: bool,
    },
    /// The terminal is kept and its process has exited.
    Dead {
        /// Whether it is the handle's own terminal.
        ours: bool,
    },
    /// The runner says that there is nothing.
    Absent,
    /// The runner did not answer.
    Unknown {
        /// What was tried and what came back.
        reason: String,
    },
}

/// One thing that occupies a runner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Occupant {
    /// The session's name.
    pub name: String,
    /// Whether its process has exited.
    pub dead: bool,
    /// The spawn that it is, where it was spawned by an order of ours, of whatever process.
    pub incarnation: Option<IncarnationId>,
    /// The runner's own address of it, in the shape of [`RunnerHandle::data`], as far as a look tells.
    pub data: serde_json::Value,
}

/// An order to start a process. Only the host can make one.
#[derive(Clone, Debug)]
pub struct SpawnOrder {
    name: String,
    incarnation: IncarnationId,
    cwd: PathBuf,
    command: Vec<String>,
    watch: Vec<String>,
    mark: PathBuf,
}

/// The parts of a [`SpawnOrder`].
#[derive(Clone, Debug)]
pub struct SpawnParts {
    /// The session's name.
    pub name: String,
    /// This spawn of it.
    pub incarnation: IncarnationId,
    /// The folder to start in.
    pub cwd: PathBuf,
    /// The launcher and its plan: short, whatever the agent's own arguments are (TMX-7).
    pub command: Vec<String>,
    /// A program that reads the terminal's output from its standard input and creates [`SpawnParts::mark`] when bracketed
    /// paste is switched on (DEL-5).
    pub watch: Vec<String>,
    /// The file that says that bracketed paste is on, for this incarnation.
    pub mark: PathBuf,
}

impl SpawnOrder {
    /// Makes an order.
    #[must_use]
    pub fn new(_key: &HostKey, parts: SpawnParts) -> Self {
        let SpawnParts { name, incarnation, cwd, command, watch, mark } = parts;
        Self { name, incarnation, cwd, command, watch, mark }
    }

    /// The session's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// This spawn of it.
    #[must_use]
    pub fn incarnation(&self) -> IncarnationId {
        self.incarnation
    }

    /// The folder to start in.
    #[must_use]
    pub fn cwd(&self) -> &std::path::Path {
        &self.cwd
    }

    /// What to run.
    #[must_use]
    pub fn command(&self) -> &[String] {
        &self.command
    }

    /// What reads the terminal's output.
    #[must_use]
    pub fn watch(&self) -> &[String] {
        &self.watch
    }

    /// The file that says that bracketed paste is on.
    #[must_use]
    pub fn mark(&self) -> &std::path::Path {
        &self.mark
    }
}

/// An order to end a process or to remove its terminal. Only the host can make one.
#[derive(Clone, Copy, Debug)]
pub struct Termination {
    grace: Duration,
}

impl Termination {
    /// Makes an order; `grace` is the time between the polite signal and the forced one.
    #[must_use]
    pub fn new(_key: &HostKey, grace: Duration) -> Self {
        Self { grace }
    }

    /// The time between the polite signal and the forced one.
    #[must_use]
    pub fn grace(&self) -> Duration {
        self.grace
    }
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Terminated {
    /// It had ended already.
    AlreadyGone,
    /// It ended within the grace.
    Gracefully,
    /// It had to be killed.
    Forced,
}

/// What to capture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CaptureOptions {
    /// Lines of scrollback above the screen.
    pub scrollback: u32,
    /// Keep colours, as escape sequences.
    pub colours: bool,
}

/// What a terminal shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Screen {
    /// The lines, joined by line feeds.
    pub text: String,
    /// Column and row of the cursor, from 0.
    pub cursor: Option<(u16, u16)>,
    /// Columns and rows.
    pub size: Option<(u16, u16)>,
}

/// What a runner says of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RunnerDescription {
    /// The program's version; `None` when it is missing or did not answer.
    pub version: Option<String>,
    /// Where its sessions live.
    pub address: String,
    /// What is wrong and what to do, when something is.
    pub problem: Option<String>,
}

/// Why a process was not started.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// Something lives under the name.
    #[error(
        "a session named {name} is already live and is left alone; look at it with `{attach}`, end what runs there and start again, or take its conversation over with `the-loop sessions register`"
    )]
    Occupied {
        /// The name.
        name: String,
        /// The command with which to look at it.
        attach: String,
    },
    /// The runner did not answer.
    #[error("the runner did not answer, so nothing was started: {reason}")]
    Silent {
        /// What was tried and what came back.
        reason: String,
    },
    /// The folder is gone.
    #[error("the folder {} does not exist; make it or change routing.spawnWorkdir", path.display())]
    NoFolder {
        /// The folder.
        path: PathBuf,
    },
    /// The runner's program is missing or said no.
    #[error("{reason}")]
    Failed {
        /// What it said, and what to do.
        reason: String,
    },
}

/// Why a runner did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum RunnerError {
    /// The target is gone.
    #[error("the session {name} is gone")]
    Gone {
        /// Its name.
        name: String,
    },
    /// What stands under the name is not ours.
    #[error("the session {name} is not the one that was started here; it is left alone")]
    NotOurs {
        /// Its name.
        name: String,
    },
    /// No answer in time.
    #[error("the runner did not answer: {reason}")]
    Silent {
        /// What was tried and what came back.
        reason: String,
    },
}
