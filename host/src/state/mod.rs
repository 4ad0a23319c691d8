//! Files under the state root: layout, records, locks, durable writes (STA-1 to STA-6).
//!
//! Invariants a reader should know:
//! * Every file that is replaced is replaced by [`durable::write`]: after a crash it holds the old bytes or the new ones.
//! * A file that cannot be read costs that one record: [`Store`] sets it aside under a name of its own, and no bytes are lost.
//! * No path of ours is followed through a symbolic link (SEC-6), and everything is its owner's alone (STA-3).
//! * [`InstanceLock`] trusts the kernel's lock, never the number in the file.
//!
//! Everything here blocks on files: call it on a thread that may block (ARC-8).

use std::{io, path::Path, path::PathBuf};

mod aside;
pub mod durable;
mod layout;
mod lock;
mod records;
mod socket;
mod store;

pub use aside::{SetAside, set_aside};
pub use layout::{LAYOUT_VERSION, StateRoot, keep_out_of_git};
pub use lock::{InstanceLock, LockError, LockState};
pub use records::{
    ChannelRecord, CheckoutRecord, ControlRecord, PortableRecord, PullRequestRecord, RECENT_DELIVERIES, SessionRecord,
    SessionStatus,
};
pub use socket::{SocketFolders, find_socket};
pub use store::{Damaged, LoadedAll, Problem, Record, Store};

/// Why a file or folder of the state could not be used. Each names the path and what to do.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// A path of ours is a symbolic link (SEC-6).
    #[error(
        "{path} is a symbolic link, which state never follows; put the real file or folder there, or set state.root to where it is"
    )]
    Symlink {
        /// The link.
        path: PathBuf,
    },
    /// Something else stands where a folder belongs.
    #[error("{path} is not a folder; move it away, or set state.root to another place")]
    NotAFolder {
        /// What stands there.
        path: PathBuf,
    },
    /// Permissions or a read-only disk are in the way.
    #[error("{path} cannot be written; make it writable for this user, or set state.root to another place")]
    NotWritable {
        /// What cannot be written.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The disk is full (STA-4). Nothing was changed; the same call works once there is room.
    #[error("the disk that holds {path} is full; free some space, and work goes on by itself")]
    Full {
        /// What could not be written.
        path: PathBuf,
    },
    /// A newer version of the program wrote it (STA-2). Nothing was changed.
    #[error(
        "{path} has version {found} and this program knows versions up to {supported}; use the newer program, or set state.root to another place"
    )]
    Newer {
        /// What is newer.
        path: PathBuf,
        /// Its version.
        found: u64,
        /// The newest version this program writes.
        supported: u32,
    },
    /// A record cannot be loaded.
    #[error(transparent)]
    Damaged(Box<Damaged>),
    /// A name that cannot be a file's.
    #[error("{name:?} cannot name a state file: 1 to 200 characters of a-z, 0-9 and '-'")]
    BadName {
        /// The name.
        name: String,
    },
    /// A record that its own file could not be read back as.
    #[error("the record for {path} cannot be written as JSON")]
    Unwritable {
        /// The file it was meant for.
        path: PathBuf,
        /// Why.
        source: serde_json::Error,
    },
    /// No folder is short enough for a socket (STA-6).
    #[error(
        "no path for the socket has at most {limit} bytes ({path} was the last one tried); set XDG_RUNTIME_DIR to a short folder"
    )]
    SocketPath {
        /// The last path that was tried.
        path: PathBuf,
        /// How long a path may be.
        limit: usize,
    },
    /// Anything else that the system refused.
    #[error("could not {action} {path}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl StateError {
    /// The error for what the system said about `path`, telling a full disk and a missing permission from the rest.
    pub(crate) fn io(action: &'static str, path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::Full { path },
            io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => Self::NotWritable { path, source },
            _ => Self::Io { action, path, source },
        }
    }
}

/// Whether `name` can be a file's name without being a path: slugs, standing names and plugin names all can.
fn check_name(name: &str) -> Result<(), StateError> {
    let legal = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    if (1..=200).contains(&name.len()) && name.bytes().all(legal) {
        Ok(())
    } else {
        Err(StateError::BadName { name: name.chars().take(200).collect() })
    }
}
