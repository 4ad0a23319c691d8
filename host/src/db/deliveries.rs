//! Deliveries: each text's way into a session, with every receipt and what it rests on (RPL-5, DEL-7, DEL-10).

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, Row, named_params, params};
use serde::{Deserialize, Serialize};
use the_loop_plugin_api::{DeliveryId, EventId};

use super::{
    Db, DbError,
    columns::{At, Spelled, at, count, spelled},
    error::Fault,
    receipt::{Receipt, Step},
    worker::Size,
};

/// A text for a session. It begins as queued.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewDelivery {
    /// Its id.
    pub id: DeliveryId,
    /// The session, as its key is written.
    pub target: String,
    /// The surface it comes from.
    pub source: String,
    /// Who said it, where someone did.
    pub actor: Option<String>,
    /// The text, as it is to be pasted.
    pub text: String,
    /// The event that it comes from.
    pub event: Option<EventId>,
    /// What makes it an answer, where it is one.
    pub answer: Option<Answer>,
    /// When it was made.
    pub at: Timestamp,
}

/// What makes a text an answer to whoever waits for one. It is kept with the delivery, so that the answer is told when it
/// arrives, be it in a later process (RPL-3, ATT-2).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// The surface that it was given on, as events name it.
    pub surface: String,
    /// What the ticket is told was said; `None` where the ticket needs no telling.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quote: Option<String>,
}

/// A delivery and how far it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryRow {
    /// Its id.
    pub id: DeliveryId,
    /// The session, as its key is written.
    pub target: String,
    /// The surface it comes from.
    pub source: String,
    /// Who said it, where someone did.
    pub actor: Option<String>,
    /// The text, as it is to be pasted.
    pub text: String,
    /// The event that it comes from.
    pub event: Option<EventId>,
    /// What makes it an answer, where it is one.
    pub answer: Option<Answer>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When its receipt last changed.
    pub changed_at: Timestamp,
    /// How far it is known to be.
    pub receipt: Receipt,
    /// Why it is no further.
    pub reason: Option<String>,
    /// Whether a byte may have been written since the last receipt (REL-3).
    pub writing: bool,
    /// Every receipt, oldest first.
    pub history: Vec<ReceiptEntry>,
}

/// One receipt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceiptEntry {
    /// Which.
    pub receipt: Receipt,
    /// Since when.
    pub at: Timestamp,
    /// What says so.
    pub evidence: String,
    /// Why it is no further.
    pub reason: Option<String>,
}

/// Which deliveries to list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryFilter {
    /// Only those for this session.
    pub target: Option<String>,
    /// Only those with this receipt.
    pub receipt: Option<Receipt>,
    /// At most so many.
    pub limit: u32,
}

/// Whether a transition changed anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moved {
    /// The receipt is the new one now.
    Yes,
    /// It was that far already: the same again, or late news of an earlier step.
    Already,
}

/// The columns of [`DeliveryRow`], its history apart.
const COLUMNS: &str = "seq, id, target, source, actor, text, event, answer, created_at, changed_at, receipt, reason, writing FROM deliveries";

impl Db {
    /// Queues a text, behind those that wait for the same session. `None` when its event made a delivery already: one event
    /// makes one, however often it is decided.
    ///
    /// # Errors
    /// When it cannot be recorded; then it is not to be delivered.
    pub async fn create_delivery(&self, new: NewDelivery) -> Result<Option<DeliveryRow>, DbError> {
        // Plain texts always serialise.
        let answer = new.answer.as_ref().and_then(|answer| serde_json::to_string(answer).ok());
        self.workers
            .write(Size::Several, move |batch| {
                let connection = batch.connection;
                let inserted = connection
                    .prepare_cached(
                        "INSERT OR IGNORE INTO deliveries (id, target, source, actor, text, event, answer, created_at, changed_at, receipt)
                         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?8, 'queued')",
                    )?
                    .execute(params![
                        Spelled(new.id),
                        new.target,
                        new.source,
                        new.actor,
                        new.text,
                        new.event.map(Spelled),
                        answer,
                        At(new.at)
                    ])?;
                if inserted == 0 {
                    return Ok(None);
                }
                let seq = connection.last_insert_rowid();
                let entry = ReceiptEntry { receipt: Receipt::Queued, at: new.at, evidence: "host".to_owned(), reason: None };
                record(connection, seq, &entry)?;
                Ok(Some(DeliveryRow {
                    id: new.id,
                    target: new.target,
                    source: new.source,
                    actor: new.actor,
                    text: new.text,
                    event: new.event,
                    answer: new.answer,
                    created_at: new.at,
                    changed_at: new.at,
                    receipt: Receipt::Queued,
                    reason: None,
                    writing: false,
                    history: vec![entry],
                }))
            })
            .await
    }

    /// Moves a delivery to another receipt and clears its mark of [`Db::mark_writing`].
    ///
    /// # Errors
    /// [`DbError::Impossible`] when that receipt cannot follow, [`DbError::NoSuchDelivery`], or when it cannot be recorded.
    pub async fn transition(
        &self,
        id: DeliveryId,
        to: Receipt,
        reason: Option<String>,
        evidence: String,
        at: Timestamp,
    ) -> Result<Moved, DbError> {
        let entry = ReceiptEntry { receipt: to, at, evidence, reason };
        self.workers.write(Size::Several, move |batch| transition(batch.connection, id, &entry, Mark::Cleared)).await
    }

    /// Notes why a queued delivery waits. Its mark of [`Db::mark_writing`] stays: a text that stands in the composer waits
    /// too, and must not look after a crash as if no byte of it had been written.
    ///
    /// # Errors
    /// [`DbError::Impossible`] when it is not queued, [`DbError::NoSuchDelivery`], or when it cannot be recorded.
    pub async fn note_wait(&self, id: DeliveryId, reason: String, at: Timestamp) -> Result<Moved, DbError> {
        let entry = ReceiptEntry { receipt: Receipt::Queued, at, evidence: "host".to_owned(), reason: Some(reason) };
        self.workers.write(Size::Several, move |batch| transition(batch.connection, id, &entry, Mark::Kept)).await
    }

    /// Records that a byte may be written from now on: after a crash, a delivery with this mark is settled from the
    /// transcript and not simply tried again (DEL-7, REL-3).
    ///
    /// # Errors
    /// [`DbError::Impossible`] when it is not queued, [`DbError::NoSuchDelivery`], or when it cannot be recorded; then no
    /// byte is to be written.
    pub async fn mark_writing(&self, id: DeliveryId) -> Result<(), DbError> {
        self.workers
            .write(Size::Several, move |batch| {
                let (seq, from, _) = current(batch.connection, id)?;
                if from != Receipt::Queued {
                    return Err(DbError::Impossible { id, from, to: Receipt::Delivered }.into());
                }
                batch.connection.prepare_cached("UPDATE deliveries SET writing = 1 WHERE seq = ?1")?.execute([seq])?;
                Ok(())
            })
            .await
    }

    /// Takes the mark of [`Db::mark_writing`] back: no byte was written.
    ///
    /// # Errors
    /// When it cannot be recorded; the delivery is then settled as one that may have been written.
    pub async fn clear_writing(&self, id: DeliveryId) -> Result<(), DbError> {
        self.workers
            .write(Size::Several, move |batch| {
                batch
                    .connection
                    .prepare_cached("UPDATE deliveries SET writing = 0 WHERE id = ?1")?
                    .execute([Spelled(id)])?;
                Ok(())
            })
            .await
    }

    /// What waits for a session, in order.
    ///
    /// # Errors
    /// When it cannot be read.
    pub async fn queued(&self, target: &str) -> Result<Vec<DeliveryRow>, DbError> {
        let sql = format!("SELECT {COLUMNS} WHERE receipt = 'queued' AND target = ?1 ORDER BY seq");
        let target = target.to_owned();
        self.workers.read(move |connection| Ok(rows(connection, &sql, [target])?)).await
    }

    /// How much waits for a session.
    ///
    /// # Errors
    /// When it cannot be counted.
    pub async fn queued_count(&self, target: &str) -> Result<u64, DbError> {
        let target = target.to_owned();
        self.workers
            .read(move |connection| {
                let sql = "SELECT count(*) FROM deliveries WHERE receipt = 'queued' AND target = ?1";
                Ok(connection.prepare_cached(sql)?.query_row([target], count)?)
            })
            .await
    }

    /// Everything that waits, in order: what a start of the host takes up.
    ///
    /// # Errors
    /// When it cannot be read.
    pub async fn open_deliveries(&self) -> Result<Vec<DeliveryRow>, DbError> {
        let sql = format!("SELECT {COLUMNS} WHERE receipt = 'queued' ORDER BY seq");
        self.workers.read(move |connection| Ok(rows(connection, &sql, [])?)).await
    }

    /// One delivery.
    ///
    /// # Errors
    /// When it cannot be read.
    pub async fn delivery(&self, id: DeliveryId) -> Result<Option<DeliveryRow>, DbError> {
        let sql = format!("SELECT {COLUMNS} WHERE id = ?1");
        self.workers.read(move |connection| Ok(rows(connection, &sql, [Spelled(id)])?.pop())).await
    }

    /// The newest deliveries, newest first.
    ///
    /// # Errors
    /// When they cannot be read.
    pub async fn deliveries(&self, filter: DeliveryFilter) -> Result<Vec<DeliveryRow>, DbError> {
        self.workers
            .read(move |connection| {
                let target = filter.target.as_ref().map_or("", |_| "AND target = :target");
                let receipt = filter.receipt.map_or("", |_| "AND receipt = :receipt");
                let sql =
                    format!("SELECT {COLUMNS} WHERE :limit > 0 {target} {receipt} ORDER BY seq DESC LIMIT :limit");
                let mut values: Vec<(&str, &dyn rusqlite::ToSql)> = vec![(":limit", &filter.limit)];
                let word = filter.receipt.map(Spelled);
                if let Some(target) = &filter.target {
                    values.push((":target", target));
                }
                if let Some(receipt) = &word {
                    values.push((":receipt", receipt));
                }
                Ok(rows(connection, &sql, &values[..])?)
            })
            .await
    }
}

/// What stands of a delivery: its place, its receipt and whether a byte may have been written.
fn current(connection: &Connection, id: DeliveryId) -> Result<(i64, Receipt, bool), Fault> {
    let found = connection
        .prepare_cached("SELECT seq, receipt, writing FROM deliveries WHERE id = ?1")?
        .query_row([Spelled(id)], |row| Ok((row.get("seq")?, spelled(row, "receipt")?, row.get("writing")?)))
        .optional()?;
    found.ok_or_else(|| DbError::NoSuchDelivery(id).into())
}

/// What a transition makes of the mark of [`Db::mark_writing`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    Cleared,
    Kept,
}

pub(super) fn transition(
    connection: &Connection,
    id: DeliveryId,
    entry: &ReceiptEntry,
    mark: Mark,
) -> Result<Moved, Fault> {
    let (seq, from, writing) = current(connection, id)?;
    let to = entry.receipt;
    match from.step(to) {
        Step::Moves => {}
        Step::MovesIfWritten if was_written(connection, seq)? => {}
        Step::Stays => return Ok(Moved::Already),
        Step::Refused | Step::MovesIfWritten => return Err(DbError::Impossible { id, from, to }.into()),
    }
    connection
        .prepare_cached(
            "UPDATE deliveries SET receipt = :receipt, reason = :reason, changed_at = :at, writing = writing AND :kept WHERE seq = :seq",
        )?
        .execute(named_params! {
            ":receipt": Spelled(to), ":reason": entry.reason, ":at": At(entry.at), ":seq": seq, ":kept": mark == Mark::Kept,
        })?;
    // A wait that goes on for the same reason is no new step.
    let mut last = connection
        .prepare_cached("SELECT receipt, reason FROM receipts WHERE delivery = ?1 ORDER BY step DESC LIMIT 1")?;
    let same = last.query_row([seq], |row| {
        Ok(spelled::<Receipt>(row, "receipt")? == to && row.get::<_, Option<String>>("reason")? == entry.reason)
    })?;
    if !same || (writing && mark == Mark::Cleared) {
        record(connection, seq, entry)?;
    }
    Ok(Moved::Yes)
}

/// Whether a text may have reached the session at some time.
fn was_written(connection: &Connection, seq: i64) -> rusqlite::Result<bool> {
    let sql = "SELECT 1 FROM receipts WHERE delivery = ?1 AND receipt IN ('delivered', 'uncertain')";
    connection.prepare_cached(sql)?.exists([seq])
}

fn record(connection: &Connection, seq: i64, entry: &ReceiptEntry) -> rusqlite::Result<()> {
    let sql = "INSERT INTO receipts (delivery, step, receipt, at, evidence, reason)
               SELECT ?1, coalesce(max(step), 0) + 1, ?2, ?3, ?4, ?5 FROM receipts WHERE delivery = ?1";
    let values = params![seq, Spelled(entry.receipt), At(entry.at), entry.evidence, entry.reason];
    connection.prepare_cached(sql)?.execute(values)?;
    Ok(())
}

fn rows(connection: &Connection, sql: &str, values: impl rusqlite::Params) -> rusqlite::Result<Vec<DeliveryRow>> {
    let mut history = connection
        .prepare_cached("SELECT receipt, at, evidence, reason FROM receipts WHERE delivery = ?1 ORDER BY step")?;
    let mut statement = connection.prepare_cached(sql)?;
    let found = statement.query_map(values, |row| Ok((row.get::<_, i64>("seq")?, delivery(row)?)))?;
    found
        .map(|found| {
            let (seq, mut delivery) = found?;
            let entries = history.query_map([seq], |row| {
                Ok(ReceiptEntry {
                    receipt: spelled(row, "receipt")?,
                    at: at(row, "at")?,
                    evidence: row.get("evidence")?,
                    reason: row.get("reason")?,
                })
            })?;
            delivery.history = entries.collect::<Result<_, _>>()?;
            Ok(delivery)
        })
        .collect()
}

fn delivery(row: &Row<'_>) -> rusqlite::Result<DeliveryRow> {
    let event = row.get::<_, Option<String>>("event")?;
    let answer = row.get::<_, Option<String>>("answer")?;
    Ok(DeliveryRow {
        id: spelled(row, "id")?,
        target: row.get("target")?,
        source: row.get("source")?,
        actor: row.get("actor")?,
        text: row.get("text")?,
        event: event.map(|_| spelled(row, "event")).transpose()?,
        // One that a later version wrote otherwise costs its telling, not the text.
        answer: answer.and_then(|json| serde_json::from_str(&json).ok()),
        created_at: at(row, "created_at")?,
        changed_at: at(row, "changed_at")?,
        receipt: spelled(row, "receipt")?,
        reason: row.get("reason")?,
        writing: row.get("writing")?,
        history: Vec::new(),
    })
}
