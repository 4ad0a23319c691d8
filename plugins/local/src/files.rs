//! How files are read and replaced (STA-1, STA-2, STA-3).

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use nix::fcntl::OFlag;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use tokio::task::{JoinError, spawn_blocking};

/// The version of every format here. A file of a later one is neither understood nor written to (STA-2).
pub(crate) const VERSION: u32 = 1;

/// Why a file was not read or written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FileError {
    /// The system refused.
    #[error("{} cannot be {action}: {source}", path.display())]
    Io {
        path: PathBuf,
        action: &'static str,
        #[source]
        source: io::Error,
    },
    /// The content is not what belongs there.
    #[error("{} is damaged ({problem}); repair it or move it away", path.display())]
    Damaged { path: PathBuf, problem: String },
    /// The content is of a later version of this program.
    #[error("{} has format {found} and this program knows {VERSION}; update the-loop", path.display())]
    Newer { path: PathBuf, found: u32 },
    /// It is a symbolic link, or lies behind one.
    #[error("{} is a symbolic link, which state never follows; put the real file or folder there", path.display())]
    Linked { path: PathBuf },
    /// Another process keeps the lock.
    #[error("{} is held by another process; end that process or try again", path.display())]
    Held { path: PathBuf },
    /// The work itself did not end.
    #[error("the work on the files was broken off")]
    BrokenOff(#[source] JoinError),
}

impl FileError {
    /// Wraps what the system said about `path`.
    pub(crate) fn io(path: &Path, action: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { path: path.to_owned(), action, source }
    }
}

/// Runs work on files off the async threads (ARC-8).
pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, FileError> {
    spawn_blocking(work).await.map_err(FileError::BrokenOff)
}

/// Refuses a path of ours that leads through a symbolic link (SEC-6): the file itself, or a folder that this plugin made.
pub(crate) fn not_linked(path: &Path) -> Result<(), FileError> {
    /// An item's file lies this deep in the plugin's folder.
    const DEPTH: usize = 4;
    let linked = |path: &&Path| path.symlink_metadata().is_ok_and(|found| found.is_symlink());
    match path.ancestors().take(DEPTH).find(linked) {
        Some(link) => Err(FileError::Linked { path: link.to_owned() }),
        None => Ok(()),
    }
}

/// The content of a file, `None` where there is no such file.
pub(crate) fn read<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, FileError> {
    not_linked(path)?;
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(FileError::io(path, "read")(error)),
    };
    let damaged = |error: serde_json::Error| FileError::Damaged { path: path.to_owned(), problem: error.to_string() };
    let found = version(&bytes).map_err(damaged)?;
    if found > VERSION {
        return Err(FileError::Newer { path: path.to_owned(), found });
    }
    serde_json::from_slice(&bytes).map(Some).map_err(damaged)
}

/// The version that a JSON object says it has.
pub(crate) fn version(bytes: &[u8]) -> Result<u32, serde_json::Error> {
    #[derive(Deserialize)]
    struct Versioned {
        version: u32,
    }
    serde_json::from_slice::<Versioned>(bytes).map(|found| found.version)
}

/// Replaces a file: written aside, synced, renamed, the folder synced. There is one writer of a file at a time, so one
/// name beside it is enough, and what a killed writer left there is overwritten by the next.
pub(crate) fn write<T: Serialize>(path: &Path, content: &T) -> Result<(), FileError> {
    not_linked(path)?;
    let aside = path.with_extension("aside");
    let replace = || {
        let bytes = serde_json::to_vec(content)?;
        let mut file =
            owner_only().write(true).create(true).truncate(true).custom_flags(OFlag::O_NOFOLLOW.bits()).open(&aside)?;
        file.write_all(&bytes)?;
        file.sync_all()?;
        fs::rename(&aside, path)?;
        sync_folder_of(path)
    };
    replace().map_err(FileError::io(path, "written"))
}

/// Makes what was created, renamed or removed beside `path` survive a power cut.
pub(crate) fn sync_folder_of(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
}

/// Options for a file that only its owner may read (STA-3).
pub(crate) fn owner_only() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(0o600);
    options
}

/// Makes a folder with those above it, for their owner alone (STA-3).
pub(crate) fn make_folder(path: &Path) -> Result<(), FileError> {
    not_linked(path)?;
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(FileError::io(path, "made"))
}
