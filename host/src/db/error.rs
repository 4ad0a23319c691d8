//! [`DbError`]: what a caller must tell apart, and the recovery of each.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use nix::sys::statvfs::statvfs;
use rusqlite::ErrorCode;
use the_loop_plugin_api::{DeliveryId, EventId};

use super::receipt::Receipt;

/// Below this many free bytes a failed write is taken for a full disk: SQLite does not always say so itself.
const NO_SPACE: u64 = 64 << 10;

/// Why the database did not do what was asked. Unless said otherwise nothing was changed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum DbError {
    /// The file cannot be trusted (STA-5). It is never written to again; `doctor --repair` restores the last snapshot.
    #[error(
        "{path} is damaged: {problem}; nothing is written to it, run `the-loop doctor --repair` to restore the last snapshot"
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// A newer version of the program wrote it (STA-2).
    #[error("{path} has version {found} and this program knows versions up to {supported}; use the newer program")]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u32,
        /// The newest version this program knows.
        supported: u32,
    },
    /// The disk is full (STA-4). The same call works once there is room.
    #[error("the disk that holds {path} is full; free some space, and work goes on by itself")]
    Full {
        /// The file.
        path: PathBuf,
    },
    /// Another process wrote for longer than a caller should wait. The same call may work now.
    #[error("{path} is being written by another process for too long; try again")]
    Busy {
        /// The file.
        path: PathBuf,
    },
    /// The file, or one beside it, is a symbolic link (SEC-6).
    #[error("{path} is a symbolic link, which state never follows; put the real file there")]
    Symlink {
        /// The link.
        path: PathBuf,
    },
    /// Permissions or a read-only disk are in the way.
    #[error("{path} cannot be opened or written: {problem}; make it writable for this user")]
    NotWritable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        problem: String,
    },
    /// [`super::Db::close`] was called.
    #[error("{path} was closed")]
    Closed {
        /// The file.
        path: PathBuf,
    },
    /// The event is larger than an inbox row may be.
    #[error("the event has {size} bytes; the limit is {limit}")]
    TooLarge {
        /// Its size, in bytes.
        size: usize,
        /// The limit, in bytes.
        limit: usize,
    },
    /// As many events wait as may wait (REL-7).
    #[error("the inbox is full ({pending} events wait); try again later")]
    Overloaded {
        /// How many events wait.
        pending: u64,
    },
    /// An event that the inbox does not have.
    #[error("the inbox has no event {0}; journal it first")]
    NoSuchEvent(EventId),
    /// A delivery that is not known.
    #[error("there is no delivery {0}")]
    NoSuchDelivery(DeliveryId),
    /// A receipt that cannot follow the one that stands.
    #[error("delivery {id} is {from}; it cannot become {to}")]
    Impossible {
        /// The delivery.
        id: DeliveryId,
        /// Its receipt.
        from: Receipt,
        /// What was asked.
        to: Receipt,
    },
    /// The lease was lost to another holder: what was done under it is to stop.
    #[error("the lease {name} is held under another number than {fence}; stop what was done under it")]
    LeaseLost {
        /// The lease.
        name: String,
        /// The number it was held under.
        fence: i64,
    },
    /// Anything else.
    #[error("{path} could not be used")]
    Sqlite {
        /// The file.
        path: PathBuf,
        /// What SQLite said.
        source: Arc<rusqlite::Error>,
    },
    /// A file beside the database could not be used.
    #[error("could not {action} {path}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        source: Arc<std::io::Error>,
    },
}

impl DbError {
    pub(super) fn of(path: &Path, error: rusqlite::Error) -> Self {
        let path = path.to_owned();
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => Self::Full { path },
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy { path },
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                Self::Damaged { path, problem: error.to_string() }
            }
            Some(ErrorCode::SystemIoFailure | ErrorCode::CannotOpen) if is_full(&path) => Self::Full { path },
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::CannotOpen) => {
                Self::NotWritable { path, problem: error.to_string() }
            }
            _ => Self::Sqlite { path, source: Arc::new(error) },
        }
    }

    pub(super) fn io(action: &'static str, path: &Path, source: std::io::Error) -> Self {
        use std::io::ErrorKind::{PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
        let path = path.to_owned();
        match source.kind() {
            StorageFull | QuotaExceeded => Self::Full { path },
            PermissionDenied | ReadOnlyFilesystem => Self::NotWritable { path, problem: source.to_string() },
            _ => Self::Io { action, path, source: Arc::new(source) },
        }
    }
}

fn is_full(path: &Path) -> bool {
    let folder = path.parent().unwrap_or(path);
    statvfs(folder).is_ok_and(|found| found.blocks_available().saturating_mul(found.fragment_size()) < NO_SPACE)
}

/// What goes wrong inside a piece of work on the database, before the file's name is added.
#[derive(Debug)]
pub(super) enum Fault {
    Sql(rusqlite::Error),
    Db(DbError),
}

impl Fault {
    pub(super) fn on(self, path: &Path) -> DbError {
        match self {
            Self::Sql(error) => DbError::of(path, error),
            Self::Db(error) => error,
        }
    }
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(error)
    }
}

impl From<DbError> for Fault {
    fn from(error: DbError) -> Self {
        Self::Db(error)
    }
}
