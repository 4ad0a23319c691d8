//! How values of ours are columns: times as whole microseconds, ids as text.

use std::{fmt, str::FromStr};

use jiff::Timestamp;
use rusqlite::{
    Row, ToSql,
    types::{FromSql, FromSqlError, FromSqlResult, ToSqlOutput, ValueRef},
};

/// A time in a column.
pub(super) struct At(pub(super) Timestamp);

impl ToSql for At {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::from(self.0.as_microsecond()))
    }
}

impl FromSql for At {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let micros = value.as_i64()?;
        Timestamp::from_microsecond(micros).map(Self).map_err(|_| FromSqlError::OutOfRange(micros))
    }
}

/// Something that is written as text and reads back from it.
pub(super) struct Spelled<T>(pub(super) T);

impl<T: fmt::Display> ToSql for Spelled<T> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::from(self.0.to_string()))
    }
}

impl<T: FromStr<Err: std::error::Error + Send + Sync + 'static>> FromSql for Spelled<T> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        value.as_str()?.parse().map(Self).map_err(FromSqlError::other)
    }
}

/// The column `name` of a row as a time.
pub(super) fn at(row: &Row<'_>, name: &str) -> rusqlite::Result<Timestamp> {
    row.get::<_, At>(name).map(|At(at)| at)
}

/// The column `name` of a row as something that is written as text.
pub(super) fn spelled<T: FromStr<Err: std::error::Error + Send + Sync + 'static>>(
    row: &Row<'_>,
    name: &str,
) -> rusqlite::Result<T> {
    row.get::<_, Spelled<T>>(name).map(|Spelled(value)| value)
}

/// The one column of a row as a count.
pub(super) fn count(row: &Row<'_>) -> rusqlite::Result<u64> {
    let found: i64 = row.get(0)?;
    u64::try_from(found).map_err(|_| rusqlite::Error::IntegralValueOutOfRange(0, found))
}
