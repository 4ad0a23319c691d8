//! The event log (EVT-1 to EVT-5): what the host did and why, one JSON object a line, written by any number of processes
//! and read by the CLI, the API, channels and programs outside this repository.
//!
//! * [`EventType`] is the catalog, [`Event`] one record on its way in, [`EventLog`] the handle to write with.
//! * [`query`] answers "the newest N that match", reading backwards, so that its cost does not grow with the log.
//! * [`follow`] and [`Follower`] read what is added, across rotations.
//!
//! Invariants: a number is never given twice, even across crashes; a line is never cut by another writer; a log that
//! cannot be written never stops its caller, unless the caller asked to know ([`EventLog::append`]).

mod append;
mod backwards;
mod catalog;
mod error;
mod event;
mod files;
mod filter;
mod follow;
mod glob;
mod handle;
mod lock;
mod query;
mod queue;
mod time;
mod writer;

#[cfg(test)]
mod tests;

pub use catalog::EventType;
pub use error::EventLogError;
pub use event::{Event, Level, LevelError};
pub use filter::Query;
pub use follow::{Followed, Follower, follow};
pub use glob::TypeGlob;
pub use handle::{EventLog, LogOptions};
pub use query::{QueryResult, query};
pub use time::{ParsedTime, TimeError, parse_time, record_instant};
pub use writer::LogHealth;
