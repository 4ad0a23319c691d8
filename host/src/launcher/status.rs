//! How an agent's process went. tmux 3.3a often shows a dead pane without its exit status, so the launcher keeps it.

use std::{fs, io, os::unix::process::ExitStatusExt as _, path::Path, process::ExitStatus};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// How an agent's process went.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LaunchStatus {
    /// The agent's process id; none when it did not start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// When it started, or should have.
    pub started_at: Timestamp,
    /// When it ended; none while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exited_at: Option<Timestamp>,
    /// Its exit code, when it exited by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<i32>,
    /// The signal that ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// Why it did not start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

impl LaunchStatus {
    /// Of a process that has just started.
    pub(super) fn started(pid: Option<u32>) -> Self {
        Self { pid, started_at: Timestamp::now(), exited_at: None, code: None, signal: None, problem: None }
    }

    /// Of the same process, which has ended.
    pub(super) fn ended(self, status: ExitStatus) -> Self {
        Self { exited_at: Some(Timestamp::now()), code: status.code(), signal: status.signal(), ..self }
    }

    /// Of a process that could not be started.
    pub(super) fn failed(problem: String, code: u8) -> Self {
        let ended = Some(Timestamp::now());
        Self { exited_at: ended, code: Some(code.into()), problem: Some(problem), ..Self::started(None) }
    }

    pub(super) fn write(&self, path: &Path) -> io::Result<()> {
        super::write_private(path, &serde_json::to_vec(self)?)
    }
}

/// Reads a status; `None` while there is none.
///
/// # Errors
/// When the file is there and cannot be read.
pub fn read_status(path: &Path) -> io::Result<Option<LaunchStatus>> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(serde_json::from_slice(&bytes)?)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
