//! Answering queries: the newest records that match, across rotated files (EVT-4, EVT-5).

use std::path::Path;

use jiff::Timestamp;
use serde_json::Value;

use super::{
    EventLogError, Query,
    backwards::{Block, Blocks},
    files::{self, LogFile},
    filter::{Filter, Seen, instant_of},
    time::record_instant,
};

/// How much of the log in a row must be older than asked for before the rest is taken to be older too. Records stand in
/// the order of writing; only a clock that was wrong for a while puts old times between newer ones.
const OLD_STRETCH: u64 = 2 * 1024 * 1024;

/// What a query found. What could not be read is counted among the lines that were looked at, which are those up to the
/// oldest record given and that may match.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QueryResult {
    /// The newest records that match, oldest first.
    pub records: Vec<Value>,
    /// Lines that are no record, and records whose time was asked about and cannot be read.
    pub unreadable: u64,
    /// Lines that a crash cut short.
    pub torn: u64,
    /// How many bytes of the log were read for this answer.
    pub bytes_read: u64,
}

/// The newest records that match, oldest first. A log that does not exist yet has none.
///
/// # Errors
/// When a file of the log cannot be read.
pub fn query(path: &Path, query: &Query) -> Result<QueryResult, EventLogError> {
    scan(&files::open_all(path)?, &Filter::new(query.clone()))
}

/// Scans files that are open already, newest first, each up to its known length.
pub(super) fn scan(files: &[LogFile], filter: &Filter) -> Result<QueryResult, EventLogError> {
    let mut scan = Scan { filter, found: QueryResult::default(), old: 0 };
    'files: for file in files {
        let mut blocks = Blocks::before(file, file.len);
        while !scan.is_full() {
            let Some(block) = blocks.next()? else { continue 'files };
            scan.take(&block);
        }
        break;
    }
    scan.found.records.reverse();
    Ok(scan.found)
}

struct Scan<'a> {
    filter: &'a Filter,
    found: QueryResult,
    /// How many bytes in a row were older than asked for.
    old: u64,
}

impl Scan<'_> {
    fn is_full(&self) -> bool {
        self.old >= OLD_STRETCH || self.filter.limit().is_some_and(|limit| self.found.records.len() >= limit)
    }

    fn take(&mut self, block: &Block<'_>) {
        self.found.bytes_read += block.lines.len() as u64;
        match self.filter.candidates(block.lines) {
            Some(candidates) => {
                for (begin, end) in candidates.into_iter().rev() {
                    if self.is_full() {
                        return;
                    }
                    self.judge(&block.lines[begin..end], end < block.lines.len());
                }
            }
            None => {
                for (begin, line) in block.lines_backwards() {
                    if self.is_full() {
                        return;
                    }
                    self.judge(line, begin + line.len() < block.lines.len());
                }
            }
        }
        if let Some(horizon) = self.filter.horizon()
            && let Some(oldest) = first_instant(block)
        {
            self.old = if oldest < horizon { self.old + block.lines.len() as u64 } else { 0 };
        }
    }

    fn judge(&mut self, line: &[u8], terminated: bool) {
        match self.filter.judge(line, terminated) {
            Seen::Wanted(record) => self.found.records.push(record),
            Seen::Other => {}
            Seen::Torn => self.found.torn += 1,
            Seen::Unreadable => self.found.unreadable += 1,
        }
    }
}

/// The instant of the block's first record.
fn first_instant(block: &Block<'_>) -> Option<Timestamp> {
    let line = block.lines.split(|&byte| byte == b'\n').next()?;
    instant_of(line).or_else(|| {
        let record: Value = serde_json::from_slice(line).ok()?;
        record_instant(record.get("ts")?.as_str()?)
    })
}
