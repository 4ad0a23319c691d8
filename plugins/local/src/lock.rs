//! The one lock of the folder. The kernel releases it when its holder ends, however that comes about.

use std::{
    fs::{File, TryLockError},
    path::{Path, PathBuf},
    time::Duration,
};

use the_loop_plugin_api::Clock;

use crate::files::{FileError, blocking, owner_only};

/// How often a writer asks, and how long it waits between two askings: ten seconds in all. A writer is done within
/// milliseconds; whoever keeps the lock for so long has been stopped, and waiting longer would only hide it.
const ATTEMPTS: u32 = 1_000;
const PAUSE: Duration = Duration::from_millis(10);

/// Proof that this process may write; what writes items or the journal takes it.
#[derive(Debug)]
pub(crate) struct Held(
    #[expect(dead_code, reason = "the open file is the lock: the kernel releases it when the file is closed")] File,
);

impl Held {
    /// Waits for the lock. Each asking is short, so that no blocking thread waits on another process.
    pub(crate) async fn acquire(path: &Path, clock: &dyn Clock) -> Result<Self, FileError> {
        for _ in 0..ATTEMPTS {
            let path: PathBuf = path.to_owned();
            if let Some(held) = blocking(move || Self::try_acquire(&path)).await?? {
                return Ok(held);
            }
            clock.sleep(PAUSE).await;
        }
        Err(FileError::Held { path: path.to_owned() })
    }

    /// The lock, if nobody has it.
    pub(crate) fn try_acquire(path: &Path) -> Result<Option<Self>, FileError> {
        let file = owner_only()
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(FileError::io(path, "opened for writing"))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Self(file))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(FileError::io(path, "locked")(error)),
        }
    }
}
