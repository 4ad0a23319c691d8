//! What can go wrong with the event log.

use std::{io, path::PathBuf, sync::Arc, time::Duration};

/// Why the event log could not be written or read. Cheap to clone, since one failure may answer many waiting records.
#[derive(Clone, Debug, thiserror::Error)]
pub enum EventLogError {
    /// The path names no file.
    #[error("the event log's path {path} names no file; set eventLog.path to a file")]
    NoFile {
        /// The path as configured.
        path: PathBuf,
    },
    /// The log, its folder or its lock file could not be opened or made.
    #[error("cannot open {path}; check the folder's owner, its mode and the free space")]
    Open {
        /// What was to be opened.
        path: PathBuf,
        /// The system's answer.
        source: Arc<io::Error>,
    },
    /// A record could not be written; what had been written of it was taken back.
    #[error("cannot write to the event log {path}; check the free space and whether the file system is read-only")]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's answer.
        source: Arc<io::Error>,
    },
    /// The log could not be read.
    #[error("cannot read the event log {path}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's answer.
        source: Arc<io::Error>,
    },
    /// Another process kept the lock for too long.
    #[error("the event log's lock {path} was held by another process for {waited:?}; find it with `fuser`")]
    Locked {
        /// The lock file.
        path: PathBuf,
        /// How long it was waited for.
        waited: Duration,
    },
    /// The thread that writes could not be started.
    #[error("cannot start the event log's thread")]
    Thread {
        /// The system's answer.
        source: Arc<io::Error>,
    },
    /// The writer has ended, so nothing can be recorded any more.
    #[error("the event log is closed; restart the service")]
    Closed,
}

impl EventLogError {
    /// Names the file of a failed open.
    pub(super) fn open(path: impl Into<PathBuf>, source: io::Error) -> Self {
        Self::Open { path: path.into(), source: Arc::new(source) }
    }

    /// Names the file of a failed write.
    pub(super) fn write(path: impl Into<PathBuf>, source: io::Error) -> Self {
        Self::Write { path: path.into(), source: Arc::new(source) }
    }

    /// Names the file of a failed read.
    pub(super) fn read(path: impl Into<PathBuf>, source: io::Error) -> Self {
        Self::Read { path: path.into(), source: Arc::new(source) }
    }
}
