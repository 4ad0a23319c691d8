//! Leases: what only one holder may do at a time, with a number that tells a late one.

use jiff::Timestamp;
use rusqlite::{OptionalExtension as _, params};

use super::{Db, DbError, columns::At, worker::Size};

/// A lease that is held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// What is leased.
    pub name: String,
    /// Grows with every acquisition. Whatever is done under the lease carries it, so that the work of a holder that lost
    /// the lease unawares can be told from the present one's.
    pub fence: i64,
    /// When it ends unless it is renewed.
    pub until: Timestamp,
}

impl Db {
    /// Acquires a lease until `until`; `None` while another holder has it. Whoever has the same name of a holder takes it
    /// over, under a new number.
    ///
    /// # Errors
    /// When it cannot be recorded; then it is not held.
    pub async fn acquire_lease(
        &self,
        name: &str,
        holder: &str,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<Option<Lease>, DbError> {
        let (name, holder) = (name.to_owned(), holder.to_owned());
        self.workers
            .write(Size::OneStatement, move |batch| {
                let fence = batch
                    .connection
                    .prepare_cached(
                        "INSERT INTO leases (name, holder, until, fence) VALUES (?1, ?2, ?4, 1)
                         ON CONFLICT (name) DO UPDATE SET holder = ?2, until = ?4, fence = fence + 1
                         WHERE holder IS NULL OR holder = ?2 OR until <= ?3
                         RETURNING fence",
                    )?
                    .query_row(params![name, holder, At(now), At(until)], |row| row.get(0))
                    .optional()?;
                Ok(fence.map(|fence| Lease { name, fence, until }))
            })
            .await
    }

    /// Prolongs a lease.
    ///
    /// # Errors
    /// [`DbError::LeaseLost`] when another has it by now, or when it cannot be recorded.
    pub async fn renew_lease(&self, lease: &Lease, until: Timestamp) -> Result<Lease, DbError> {
        let mut lease = lease.clone();
        self.workers
            .write(Size::OneStatement, move |batch| {
                let sql = "UPDATE leases SET until = ?3 WHERE name = ?1 AND fence = ?2 AND holder IS NOT NULL";
                let values = params![lease.name, lease.fence, At(until)];
                if batch.connection.prepare_cached(sql)?.execute(values)? == 0 {
                    return Err(DbError::LeaseLost { name: lease.name, fence: lease.fence }.into());
                }
                lease.until = until;
                Ok(lease)
            })
            .await
    }

    /// Gives a lease back. One that was lost is given back already.
    ///
    /// # Errors
    /// When it cannot be recorded.
    pub async fn release_lease(&self, lease: &Lease) -> Result<(), DbError> {
        let lease = lease.clone();
        self.workers
            .write(Size::OneStatement, move |batch| {
                let sql = "UPDATE leases SET holder = NULL WHERE name = ?1 AND fence = ?2";
                batch.connection.prepare_cached(sql)?.execute(params![lease.name, lease.fence])?;
                Ok(())
            })
            .await
    }
}
