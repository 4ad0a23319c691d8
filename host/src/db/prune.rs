//! Forgetting what is long settled, so that the file does not grow for ever (REL-5).

use jiff::Timestamp;
use rusqlite::params;

use super::{Db, DbError, columns::At, worker::Size};

/// How many rows one transaction removes: others want to write too.
const AT_ONCE: u32 = 200;

/// What was forgotten.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Finished events, with the keys that they settled.
    pub events: u64,
    /// Deliveries, with their texts and receipts.
    pub deliveries: u64,
}

impl Db {
    /// Forgets finished events that came before `older_than`, and deliveries that were settled before it. What waits, and
    /// what a person has yet to look at (`uncertain`), is kept however old it is. The ledger forgets with the events: keep
    /// them for longer than any source repeats itself.
    ///
    /// # Errors
    /// When it cannot be recorded; what was forgotten until then is forgotten.
    pub async fn prune(&self, older_than: Timestamp) -> Result<Pruned, DbError> {
        let events = "DELETE FROM inbox WHERE seq IN (
                          SELECT seq FROM inbox WHERE outcome IS NOT NULL AND received_at < ?1 LIMIT ?2)";
        let deliveries = "DELETE FROM deliveries WHERE seq IN (
                              SELECT seq FROM deliveries
                              WHERE receipt NOT IN ('queued', 'uncertain') AND changed_at < ?1 LIMIT ?2)";
        Ok(Pruned {
            events: self.remove(events, older_than).await?,
            deliveries: self.remove(deliveries, older_than).await?,
        })
    }

    async fn remove(&self, sql: &'static str, older_than: Timestamp) -> Result<u64, DbError> {
        let mut removed = 0;
        loop {
            let some = self
                .workers
                .write(Size::OneStatement, move |batch| {
                    let values = params![At(older_than), AT_ONCE];
                    Ok(batch.connection.prepare_cached(sql)?.execute(values)?)
                })
                .await?;
            if some == 0 {
                return Ok(removed);
            }
            removed += u64::try_from(some).unwrap_or(0);
        }
    }
}
