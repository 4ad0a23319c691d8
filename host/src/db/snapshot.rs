//! Snapshots of `host.db`, and restoring the last one in place of a damaged file (STA-5).

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use jiff::Timestamp;
use rusqlite::{OpenFlags, backup::Backup};
use the_loop_plugin_api::{DeliveryId, EventId};

use super::{
    DbError, Receipt, ReceiptEntry,
    columns::{Spelled, spelled},
    deliveries::{self, Mark},
    error::Fault,
    open::{self, Files},
};
use crate::state::{durable, set_aside};

/// What stands in the receipts of deliveries that a snapshot cannot know.
const REASON: &str = "restored from a snapshot; it may have been delivered since that was taken";

/// Why nothing was repaired. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum RepairError {
    /// The database can be used as it is.
    #[error("{path} is sound; there is nothing to repair")]
    Sound {
        /// The file.
        path: PathBuf,
    },
    /// There is nothing to restore.
    #[error(
        "there is no snapshot {path}; to begin with an empty database, move the damaged one away by hand: what was accepted and delivered before is then unknown"
    )]
    NoSnapshot {
        /// Where it would be.
        path: PathBuf,
    },
    /// The snapshot is no better than the file.
    #[error("the snapshot cannot be restored")]
    Snapshot(#[source] DbError),
    /// The file is not damaged but cannot be used otherwise.
    #[error(transparent)]
    Db(#[from] DbError),
}

/// What was restored, and what nobody can know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repaired {
    /// What was wrong.
    pub problem: String,
    /// Where the damaged files are now.
    pub set_aside: Vec<PathBuf>,
    /// When the snapshot was taken. What was accepted or delivered after it is not known any more; a source that repeats
    /// such an event is believed.
    pub snapshot_at: Timestamp,
    /// Deliveries that waited then: delivered since or not, which is `uncertain` now and for a person to look at.
    pub uncertain: Vec<DeliveryId>,
    /// Events that were not finished then. They were handled since, most likely, and so are not handled again.
    pub unknown_events: Vec<EventId>,
}

/// Copies the database at `path` to its snapshot.
pub(super) fn take(path: &Path) -> Result<PathBuf, DbError> {
    let files = Files::of(path)?;
    let source = open::read_only(&files.db)?;
    let aside = durable::create_aside(durable::folder_of(&files.db))
        .map_err(|error| DbError::io("write", &files.snapshot, error))?;
    let failed = |error| DbError::of(&files.snapshot, error);
    let mut copy = open::connect(aside.path(), OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    Backup::new(&source, &mut copy)
        .and_then(|backup| backup.step(-1))
        .map_err(|error| DbError::of(&files.db, error))?;
    // One file without a log beside it.
    copy.pragma_update(None, "journal_mode", "delete").map_err(failed)?;
    open::check(&copy, &files.db)?;
    drop(copy);
    publish(aside, &files.snapshot)?;
    Ok(files.snapshot)
}

/// Restores the last snapshot in place of a database that is damaged or gone, whose files are set aside. No process may
/// have the database open: take the host's lock first. Blocks.
///
/// # Errors
/// When there is nothing to repair or nothing to restore.
pub fn repair(path: &Path, now: Timestamp) -> Result<Repaired, RepairError> {
    let files = Files::of(path)?;
    let problem = match open::inspect(&files) {
        Ok(_) => return Err(RepairError::Sound { path: files.db }),
        Err(DbError::Damaged { problem, .. }) => problem,
        Err(error) => return Err(error.into()),
    };
    let taken = match fs::metadata(&files.snapshot).and_then(|found| found.modified()) {
        Ok(taken) => taken,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(RepairError::NoSnapshot { path: files.snapshot });
        }
        Err(error) => return Err(DbError::io("look at", &files.snapshot, error).into()),
    };
    let snapshot = Files { db: files.snapshot.clone(), ..files.clone() };
    open::inspect(&snapshot).map_err(RepairError::Snapshot)?;

    // The new file is ready before the damaged one is moved, so that a crash in between leaves something to repair.
    let aside = durable::create_aside(durable::folder_of(&files.db)).map_err(|e| DbError::io("write", &files.db, e))?;
    fs::copy(&files.snapshot, aside.path()).map_err(|error| DbError::io("copy", &files.snapshot, error))?;
    let (uncertain, unknown_events) = mark_unknown(aside.path(), now).map_err(|fault| fault.on(&files.db))?;
    let set_aside = set_all_aside(&files, now)?;
    publish(aside, &files.db)?;
    Ok(Repaired {
        problem,
        set_aside,
        snapshot_at: Timestamp::try_from(taken).unwrap_or(Timestamp::UNIX_EPOCH),
        uncertain,
        unknown_events,
    })
}

/// Settles what the snapshot says is still to do, so that nothing is done twice.
fn mark_unknown(path: &Path, now: Timestamp) -> Result<(Vec<DeliveryId>, Vec<EventId>), Fault> {
    let mut connection = open::connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    // No file of SQLite's own beside one that is about to be renamed.
    connection.pragma_update(None, "journal_mode", "memory")?;
    let transaction = connection.transaction()?;
    let queued: Vec<DeliveryId> = transaction
        .prepare("SELECT id FROM deliveries WHERE receipt = 'queued' ORDER BY seq")?
        .query_map([], |row| spelled(row, "id"))?
        .collect::<Result<_, _>>()?;
    let events: Vec<EventId> = transaction
        .prepare("SELECT id FROM inbox WHERE outcome IS NULL ORDER BY seq")?
        .query_map([], |row| spelled(row, "id"))?
        .collect::<Result<_, _>>()?;
    for id in &queued {
        let (receipt, evidence, reason) = (Receipt::Uncertain, "repair".to_owned(), Some(REASON.to_owned()));
        deliveries::transition(&transaction, *id, &ReceiptEntry { receipt, at: now, evidence, reason }, Mark::Cleared)?;
    }
    for id in &events {
        transaction.execute("UPDATE ledger SET done = 1 WHERE event = ?1", [Spelled(*id)])?;
        transaction.execute("UPDATE inbox SET outcome = 'unknown' WHERE id = ?1", [Spelled(*id)])?;
    }
    transaction.commit()?;
    Ok((queued, events))
}

/// Moves the database and the files that belong to it away, under one name, so that SQLite's own tools can open them.
fn set_all_aside(files: &Files, now: Timestamp) -> Result<Vec<PathBuf>, DbError> {
    let mut moved = Vec::new();
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |error| DbError::io("set aside", &path, error)
    };
    let exists = |path: &Path| fs::symlink_metadata(path).is_ok();
    let base = if exists(&files.db) {
        let aside = set_aside(&files.db, now).map_err(failed(&files.db))?;
        moved.push(aside.clone());
        Some(aside)
    } else {
        None
    };
    for (path, suffix) in [(&files.wal, "-wal"), (&files.shm, "-shm")] {
        if !exists(path) {
            continue;
        }
        let aside = match &base {
            Some(base) => {
                let mut name = base.clone().into_os_string();
                name.push(suffix);
                fs::rename(path, &name).map(|()| PathBuf::from(name))
            }
            None => set_aside(path, now),
        };
        moved.push(aside.map_err(failed(path))?);
    }
    Ok(moved)
}

fn publish(aside: tempfile::NamedTempFile, path: &Path) -> Result<(), DbError> {
    let failed = |error| DbError::io("write", path, error);
    aside.as_file().sync_all().map_err(failed)?;
    aside.persist(path).map_err(|error| failed(error.error))?;
    durable::sync_folder(durable::folder_of(path)).map_err(failed)
}
