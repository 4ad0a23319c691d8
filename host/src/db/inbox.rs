//! The inbox: an accepted event is here before its source is told so (REL-1; admission, step 1).

use jiff::Timestamp;
use rusqlite::{Connection, named_params, params};
use the_loop_plugin_api::EventId;

use super::{
    Db, DbError,
    columns::{At, Spelled, at, count, spelled},
    error::Fault,
    worker::{Batch, Size},
};

/// An event to be kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewInbox {
    /// Its id.
    pub id: EventId,
    /// The kind of source it came from.
    pub source: String,
    /// When it came.
    pub received_at: Timestamp,
    /// The event, as JSON.
    pub payload: String,
    /// The largest payload that is taken, in bytes.
    pub max_bytes: usize,
    /// How many events may wait, this one included.
    pub max_pending: u64,
}

/// An event that is not finished.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InboxRow {
    /// Its id.
    pub id: EventId,
    /// The kind of source it came from.
    pub source: String,
    /// When it came.
    pub received_at: Timestamp,
    /// The event, as JSON.
    pub payload: String,
}

impl Db {
    /// Keeps an event. It is durable when this returns `Ok`, and then the source may acknowledge it.
    ///
    /// # Errors
    /// [`DbError::TooLarge`] and [`DbError::Overloaded`] by the bounds in `row`; any error means that nothing was kept.
    pub async fn journal(&self, row: NewInbox) -> Result<(), DbError> {
        if row.payload.len() > row.max_bytes {
            return Err(DbError::TooLarge { size: row.payload.len(), limit: row.max_bytes });
        }
        self.workers
            .write(Size::OneStatement, move |batch| {
                let pending = batch.pending()?;
                if pending >= row.max_pending {
                    return Err(DbError::Overloaded { pending }.into());
                }
                batch
                    .connection
                    .prepare_cached("INSERT INTO inbox (id, source, received_at, payload) VALUES (?1, ?2, ?3, ?4)")?
                    .execute(params![Spelled(row.id), row.source, At(row.received_at), row.payload])?;
                batch.pending = Some(pending + 1);
                Ok(())
            })
            .await
    }

    /// Events that are not finished, in the order in which they came.
    ///
    /// # Errors
    /// When they cannot be read.
    pub async fn unfinished(&self) -> Result<Vec<InboxRow>, DbError> {
        self.workers
            .read(|connection| {
                let mut statement = connection.prepare_cached(
                    "SELECT id, source, received_at, payload FROM inbox WHERE outcome IS NULL ORDER BY seq",
                )?;
                let rows = statement.query_map([], |row| {
                    Ok(InboxRow {
                        id: spelled(row, "id")?,
                        source: row.get("source")?,
                        received_at: at(row, "received_at")?,
                        payload: row.get("payload")?,
                    })
                })?;
                Ok(rows.collect::<Result<_, _>>()?)
            })
            .await
    }

    /// Records what became of an event, which is not taken up again after that. Keys that it still holds in the ledger stay
    /// held: settle them first, or use [`Db::conclude`].
    ///
    /// # Errors
    /// [`DbError::NoSuchEvent`], or when it cannot be recorded.
    pub async fn finish(&self, id: EventId, outcome: &str) -> Result<(), DbError> {
        let outcome = outcome.to_owned();
        self.workers.write(Size::OneStatement, move |batch| finish(batch, id, &outcome)).await
    }

    /// Settles the keys of an event and finishes it, both or neither.
    ///
    /// # Errors
    /// [`DbError::NoSuchEvent`], or when it cannot be recorded.
    pub async fn conclude(&self, id: EventId, outcome: &str, done: bool) -> Result<(), DbError> {
        let outcome = outcome.to_owned();
        self.workers
            .write(Size::Several, move |batch| {
                super::ledger::settle(batch.connection, id, done)?;
                finish(batch, id, &outcome)
            })
            .await
    }

    /// How many events wait.
    ///
    /// # Errors
    /// When they cannot be counted.
    pub async fn pending_count(&self) -> Result<u64, DbError> {
        self.workers.read(|connection| Ok(pending(connection)?)).await
    }
}

impl Batch<'_> {
    fn pending(&mut self) -> rusqlite::Result<u64> {
        match self.pending {
            Some(pending) => Ok(pending),
            None => pending(self.connection),
        }
    }
}

fn pending(connection: &Connection) -> rusqlite::Result<u64> {
    connection.prepare_cached("SELECT count(*) FROM inbox WHERE outcome IS NULL")?.query_row([], count)
}

fn finish(batch: &mut Batch<'_>, id: EventId, outcome: &str) -> Result<(), Fault> {
    let changed = batch
        .connection
        .prepare_cached("UPDATE inbox SET outcome = :outcome WHERE id = :id")?
        .execute(named_params! {":outcome": outcome, ":id": Spelled(id)})?;
    batch.pending = None;
    if changed == 0 { Err(DbError::NoSuchEvent(id).into()) } else { Ok(()) }
}
