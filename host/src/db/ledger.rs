//! The ledger: what was handled is not handled again (admission, step 2), and which revision of a comment was judged (ADM-4).

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, params};
use the_loop_plugin_api::EventId;

use super::{
    Db, DbError,
    columns::{At, Spelled, at, spelled},
    worker::Size,
};

/// What became of a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyClaim {
    /// The event holds all keys.
    Fresh,
    /// Another event holds one or has settled it; this event holds none that it did not hold before.
    Duplicate {
        /// The key.
        key: String,
        /// The other event.
        event: EventId,
    },
}

/// The revision of a comment that was judged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Revision {
    /// When the revision was made, where the surface says it.
    pub updated_at: Option<Timestamp>,
    /// What tells its text from another.
    pub text_sha: String,
    /// The commands that it contained.
    pub commands: Vec<String>,
}

impl Db {
    /// Claims `keys` for an event, all or none. A key that another event holds, finished or not, or has settled as done, is
    /// a duplicate; one that it gave up is free. What an event holds already it may claim again: after a crash it is taken
    /// up from the start.
    ///
    /// # Errors
    /// [`DbError::NoSuchEvent`] for an event that is not in the inbox, or when the claim cannot be recorded.
    pub async fn claim_keys(&self, event: EventId, keys: Vec<String>) -> Result<KeyClaim, DbError> {
        self.workers
            .write(Size::Several, move |batch| {
                let connection = batch.connection;
                let known = connection.prepare_cached("SELECT 1 FROM inbox WHERE id = ?1")?.exists([Spelled(event)])?;
                if !known {
                    return Err(DbError::NoSuchEvent(event).into());
                }
                let mut holder = connection.prepare_cached("SELECT event FROM ledger WHERE key = ?1")?;
                for key in &keys {
                    let held = holder.query_row([key], |row| spelled::<EventId>(row, "event")).optional()?;
                    if let Some(other) = held.filter(|other| *other != event) {
                        return Ok(KeyClaim::Duplicate { key: key.clone(), event: other });
                    }
                }
                let mut claim =
                    connection.prepare_cached("INSERT OR IGNORE INTO ledger (key, event) VALUES (?1, ?2)")?;
                for key in &keys {
                    claim.execute(params![key, Spelled(event)])?;
                }
                Ok(KeyClaim::Fresh)
            })
            .await
    }

    /// Settles what an event holds: done for good, or given up and free.
    ///
    /// # Errors
    /// When it cannot be recorded.
    pub async fn settle_keys(&self, event: EventId, done: bool) -> Result<(), DbError> {
        self.workers.write(Size::OneStatement, move |batch| Ok(settle(batch.connection, event, done)?)).await
    }

    /// The revision of a comment that was judged last.
    ///
    /// # Errors
    /// When it cannot be read.
    pub async fn revision(&self, comment: &str) -> Result<Option<Revision>, DbError> {
        let comment = comment.to_owned();
        self.workers
            .read(move |connection| {
                let mut statement = connection
                    .prepare_cached("SELECT updated_at, text_sha, commands FROM revisions WHERE comment = ?1")?;
                let found = statement.query_row([comment], |row| {
                    let updated_at = row.get::<_, Option<i64>>("updated_at")?;
                    Ok(Revision {
                        updated_at: updated_at.map(|_| at(row, "updated_at")).transpose()?,
                        text_sha: row.get("text_sha")?,
                        // One a line: a command's word has no line break in it.
                        commands: row.get::<_, String>("commands")?.lines().map(str::to_owned).collect(),
                    })
                });
                Ok(found.optional()?)
            })
            .await
    }

    /// Records that a revision was judged, in place of the one before.
    ///
    /// # Errors
    /// When it cannot be recorded.
    pub async fn record_revision(&self, comment: &str, revision: Revision) -> Result<(), DbError> {
        let comment = comment.to_owned();
        self.workers
            .write(Size::OneStatement, move |batch| {
                let commands = revision.commands.join("\n");
                batch
                    .connection
                    .prepare_cached("INSERT OR REPLACE INTO revisions (comment, updated_at, text_sha, commands) VALUES (?1, ?2, ?3, ?4)")?
                    .execute(params![comment, revision.updated_at.map(At), revision.text_sha, commands])?;
                Ok(())
            })
            .await
    }
}

pub(super) fn settle(connection: &Connection, event: EventId, done: bool) -> rusqlite::Result<()> {
    // What an event has done before it failed stays done.
    let sql = if done {
        "UPDATE ledger SET done = 1 WHERE event = ?1"
    } else {
        "DELETE FROM ledger WHERE event = ?1 AND done = 0"
    };
    connection.prepare_cached(sql)?.execute([Spelled(event)])?;
    Ok(())
}
