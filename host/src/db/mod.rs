//! `local/host.db`: inbox, dedup ledger, deliveries with their transitions, leases.
//!
//! Invariants a reader should know:
//! * Whatever a call reports as done is on the disk (REL-1). One thread writes; what waits for it shares one sync.
//! * Several processes may have the database open; each write is one short transaction.
//! * A database that is damaged or of a newer version is never written to (STA-2, STA-5). What stands in the place of one is
//!   looked at through a connection that cannot write, before any other is made.
//! * A full disk fails calls with [`DbError::Full`] and changes nothing; the same call works once there is room (STA-4).
//! * No clock: callers say what time it is (ARC-7). Times are kept as whole microseconds.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

mod columns;
mod deliveries;
mod error;
mod inbox;
mod leases;
mod ledger;
mod open;
mod prune;
mod receipt;
mod snapshot;
#[cfg(test)]
mod tests;
mod worker;

pub use deliveries::{Answer, DeliveryFilter, DeliveryRow, Moved, NewDelivery, ReceiptEntry};
pub use error::DbError;
pub use inbox::{InboxRow, NewInbox};
pub use leases::Lease;
pub use ledger::{KeyClaim, Revision};
pub use prune::Pruned;
pub use receipt::{Receipt, ReceiptError};
pub use snapshot::{RepairError, Repaired, repair};

use worker::{Shared, Size, Workers};

/// The open database. Clones share it.
#[derive(Clone)]
pub struct Db {
    workers: Workers,
}

impl Db {
    /// Opens the database at `path`, making it where there is none. Blocks: the whole file is read to see that it is sound.
    ///
    /// # Errors
    /// [`DbError::Damaged`] and [`DbError::Newer`] say that nothing was written.
    pub fn open(path: &Path) -> Result<Self, DbError> {
        let files = open::Files::of(path)?;
        let writer = open::read_write(&files)?;
        let reader = open::read_only(&files.db)?;
        let shared = Arc::new(Shared::new(files.db)?);
        Ok(Self { workers: Workers::start(shared, writer, reader)? })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.workers.shared().path()
    }

    /// What stands in the way of writing, as of the last attempt; `None` when it worked. [`DbError::Damaged`] stays.
    #[must_use]
    pub fn trouble(&self) -> Option<DbError> {
        self.workers.shared().trouble()
    }

    /// Tries to write, so that [`Db::trouble`] is up to date (STA-4).
    ///
    /// # Errors
    /// What stands in the way.
    pub async fn probe(&self) -> Result<(), DbError> {
        self.workers
            .write(Size::OneStatement, |batch| {
                batch.connection.prepare_cached("UPDATE probes SET count = count + 1")?.execute([])?;
                Ok(())
            })
            .await
    }

    /// How many transactions were synced since it was opened.
    #[must_use]
    pub fn commits(&self) -> u64 {
        self.workers.shared().commits()
    }

    /// Copies the database, whole and sound, to `host.db.snapshot` beside it, in place of the last one. Writing goes on
    /// meanwhile. [`repair`] restores it.
    ///
    /// # Errors
    /// When the database is damaged or the copy cannot be written; the last snapshot stays.
    pub async fn snapshot(&self) -> Result<PathBuf, DbError> {
        if let Some(condemned) = self.workers.shared().condemned() {
            return Err(condemned);
        }
        let path = self.path().to_owned();
        let closed = DbError::Closed { path: path.clone() };
        tokio::task::spawn_blocking(move || snapshot::take(&path)).await.unwrap_or(Err(closed))
    }

    /// Finishes what was handed in and closes the file. Later calls, from any clone, are [`DbError::Closed`].
    pub async fn close(&self) {
        self.workers.close().await;
    }
}

impl std::fmt::Debug for Db {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Db").field("path", &self.path()).field("trouble", &self.trouble()).finish_non_exhaustive()
    }
}
