//! Reading what is added to the log, across rotations (EVT-3, EVT-4).

use std::{
    collections::VecDeque,
    fs, io,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

use memchr::memrchr;
use serde_json::Value;

use super::{
    EventLogError, Query, QueryResult,
    backwards::{self, Blocks},
    files::{self, FileId, LogFile},
    filter::{Filter, Seen},
    query::scan,
};

/// How much one [`Follower::poll`] reads at most, so that a caller who is far behind stays in charge of its memory.
const PORTION: u64 = 1024 * 1024;

/// What was added since the last look.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Followed {
    /// New records that match, oldest first.
    pub records: Vec<Value>,
    /// New lines that are no record, or whose time was asked about and cannot be read.
    pub unreadable: u64,
    /// New lines that a crash cut short.
    pub torn: u64,
    /// Whether records were missed: the file that was being read was rotated out of existence, or cut. Say so, never skip
    /// silently (API-3).
    pub missed: bool,
    /// Whether there is more to read at once.
    pub more: bool,
}

/// Reads a log as it grows. It looks when it is asked to and costs one `stat` when nothing is new; the caller decides how
/// often, and keeps the calls off the async threads (ARC-8).
#[derive(Debug)]
pub struct Follower {
    path: PathBuf,
    filter: Filter,
    current: Option<Place>,
    /// Files that were rotated away unread or half read, oldest first; the current one is older than all of them.
    next: VecDeque<Place>,
    missed: bool,
}

/// How far one file was read.
#[derive(Debug)]
struct Place {
    file: LogFile,
    offset: u64,
}

/// Answers `query`, then follows from exactly there: no record is given twice and none falls in between.
///
/// # Errors
/// When a file of the log cannot be read.
pub fn follow(path: &Path, query: Query) -> Result<(QueryResult, Follower), EventLogError> {
    let mut files = files::open_all(path)?;
    let filter = Filter::new(query);
    if let Some(newest) = files.first_mut() {
        // A line that is being written belongs to what follows.
        newest.len = end_of_lines(newest)?;
    }
    let found = scan(&files, &filter)?;
    let current = files.into_iter().next().map(|file| Place { offset: file.len, file });
    Ok((found, Follower { path: path.to_path_buf(), filter, current, next: VecDeque::new(), missed: false }))
}

impl Follower {
    /// Follows from the record after number `seq`, as a client asks for that comes back (API-3). Where that record is gone,
    /// the first [`Followed`] says that records were missed, and the oldest that is left comes first.
    ///
    /// # Errors
    /// When a file of the log cannot be read.
    pub fn after(path: &Path, seq: u64, query: Query) -> Result<Self, EventLogError> {
        let mut places = VecDeque::new();
        let mut seen = Numbers { oldest: None, newest: None };
        let mut reached = false;
        for file in files::open_all(path)? {
            let after = seen.end_of(&file, seq)?;
            reached = after.is_some();
            places.push_front(Place { offset: after.unwrap_or(0), file });
            if reached {
                break;
            }
        }
        let gap = !reached && seen.oldest.is_some_and(|oldest| oldest > seq.saturating_add(1));
        // A client that knows a later number than the log does has seen another log.
        let other_log = seen.newest.unwrap_or(0) < seq;
        let current = places.pop_front();
        let filter = Filter::new(query);
        Ok(Self { path: path.to_path_buf(), filter, current, next: places, missed: gap || other_log })
    }

    /// What was added since the last call.
    ///
    /// # Errors
    /// When a file of the log cannot be read. The next call tries again from the same place.
    pub fn poll(&mut self) -> Result<Followed, EventLogError> {
        let mut found = Followed { missed: std::mem::take(&mut self.missed), ..Followed::default() };
        if self.current.is_none() {
            self.next = files::open_all(&self.path)?.into_iter().rev().map(Place::start).collect();
            self.current = self.next.pop_front();
        }
        while let Some(place) = &mut self.current {
            // Asked before reading: nobody writes to a file after it was rotated, so what is read then is all there is.
            let rotated = !self.next.is_empty() || !is_named(&self.path, place)?;
            if place.read(&self.filter, rotated, &mut found)? {
                found.more = true;
                break;
            }
            if !rotated {
                break;
            }
            if self.next.is_empty() {
                let (next, missed) = newer_than(&self.path, place.file.id)?;
                if next.is_empty() {
                    // Rotated, and the new file is not there yet.
                    break;
                }
                self.next = next;
                found.missed |= missed;
            }
            self.current = self.next.pop_front();
        }
        Ok(found)
    }
}

impl Place {
    fn start(file: LogFile) -> Self {
        Self { file, offset: 0 }
    }

    /// Reads one portion of whole lines and answers whether there is more. The rest of a file that is `complete` counts as
    /// a line.
    fn read(&mut self, filter: &Filter, complete: bool, found: &mut Followed) -> Result<bool, EventLogError> {
        let failed = |problem| EventLogError::read(&self.file.path, problem);
        let len = self.file.file.metadata().map_err(failed)?.len();
        if len < self.offset {
            // Not this product's doing, which only ever takes back what has no newline yet.
            found.missed = true;
            self.offset = 0;
        }
        let mut portion = PORTION;
        loop {
            let take = portion.min(len - self.offset);
            let mut bytes = vec![0; take as usize];
            let got = read_up_to(&self.file, self.offset, &mut bytes).map_err(failed)?;
            bytes.truncate(got);
            let at_end = self.offset + got as u64 >= len;
            let whole = if at_end && complete { got } else { memrchr(b'\n', &bytes).map_or(0, |newline| newline + 1) };
            if whole == 0 && !at_end {
                // One line longer than the portion.
                portion *= 2;
                continue;
            }
            for line in bytes[..whole].split_inclusive(|&byte| byte == b'\n') {
                let text = line.strip_suffix(b"\n").unwrap_or(line);
                match filter.judge(text, text.len() < line.len()) {
                    Seen::Wanted(record) => found.records.push(record),
                    Seen::Other => {}
                    Seen::Torn => found.torn += 1,
                    Seen::Unreadable => found.unreadable += 1,
                }
            }
            self.offset += whole as u64;
            return Ok(!at_end);
        }
    }
}

fn read_up_to(file: &LogFile, offset: u64, bytes: &mut [u8]) -> io::Result<usize> {
    let mut got = 0;
    while got < bytes.len() {
        match file.file.read_at(&mut bytes[got..], offset + got as u64) {
            Ok(0) => break,
            Ok(more) => got += more,
            Err(problem) if problem.kind() == io::ErrorKind::Interrupted => {}
            Err(problem) => return Err(problem),
        }
    }
    Ok(got)
}

/// Whether the log's name still means this file.
fn is_named(path: &Path, place: &Place) -> Result<bool, EventLogError> {
    match fs::metadata(path) {
        Ok(named) => Ok(FileId::of(&named) == place.file.id),
        Err(problem) if problem.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(problem) => Err(EventLogError::read(path, problem)),
    }
}

/// The files that are newer than the one with this id, oldest first; all of them, and that some were missed, when it is gone.
fn newer_than(path: &Path, id: FileId) -> Result<(VecDeque<Place>, bool), EventLogError> {
    let mut newer = VecDeque::new();
    for file in files::open_all(path)? {
        if file.id == id {
            return Ok((newer, false));
        }
        newer.push_front(Place::start(file));
    }
    let missed = !newer.is_empty();
    Ok((newer, missed))
}

/// The numbers met while looking backwards for one.
struct Numbers {
    oldest: Option<u64>,
    newest: Option<u64>,
}

impl Numbers {
    /// Where the newest record with this number or an earlier one ends in the file.
    fn end_of(&mut self, file: &LogFile, seq: u64) -> Result<Option<u64>, EventLogError> {
        let mut blocks = Blocks::before(file, file.len);
        while let Some(block) = blocks.next()? {
            for (begin, line) in block.lines_backwards() {
                let Some(found) = backwards::seq_of(line) else { continue };
                self.newest = self.newest.or(Some(found));
                if found <= seq {
                    let newline = block.offset + (begin + line.len()) as u64;
                    return Ok(Some((newline + 1).min(file.len)));
                }
                self.oldest = Some(found);
            }
        }
        Ok(None)
    }
}

/// Where the last whole line ends.
fn end_of_lines(file: &LogFile) -> Result<u64, EventLogError> {
    let mut blocks = Blocks::before(file, file.len);
    while let Some(block) = blocks.next()? {
        if let Some(newline) = memrchr(b'\n', block.lines) {
            return Ok(block.offset + newline as u64 + 1);
        }
    }
    Ok(0)
}
