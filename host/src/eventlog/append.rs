//! Appending under the lock: whole lines, numbers that only rise, rotation by size (EVT-1, EVT-3).

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::{FileExt, OpenOptionsExt},
    path::PathBuf,
    time::Duration,
};

use super::{
    EventLogError, backwards,
    event::Record,
    files::{self, FileId},
    lock::{Held, LockFile},
};

/// How long another process may hold the lock. A holder writes a few hundred lines at most, so one that takes longer is
/// stopped or stuck.
const PATIENCE: Duration = Duration::from_secs(2);

/// How much of the log's end is looked at to see that the lock file is not behind it.
const TAIL: u64 = 64 * 1024;

/// Writes to one log. Each process that writes has one; the lock file puts them in a row.
#[derive(Debug)]
pub(super) struct Appender {
    lock: LockFile,
    log: Log,
}

/// The log under the lock.
#[derive(Debug)]
struct Log {
    path: PathBuf,
    max_bytes: u64,
    keep: u32,
    end: Option<End>,
    /// Whether this appender has compared the lock file's number with the log.
    checked: bool,
    line: Vec<u8>,
    torn: u64,
}

/// The open log and where it ends.
#[derive(Debug)]
struct End {
    file: File,
    id: FileId,
    len: u64,
    /// Whether it is known that the file ends with a whole line.
    whole: bool,
}

impl Appender {
    /// `max_bytes` 0 never rotates.
    pub(super) fn new(path: PathBuf, max_bytes: u64, keep: u32) -> Self {
        let lock = LockFile::new(files::lock_path(&path), PATIENCE);
        let log = Log { path, max_bytes, keep, end: None, checked: false, line: Vec::new(), torn: 0 };
        Self { lock, log }
    }

    /// How many torn last lines were completed so far.
    pub(super) fn torn(&self) -> u64 {
        self.log.torn
    }

    /// Appends each record with one write, all under one lock, and answers for each with its number.
    pub(super) fn append(&mut self, records: &[Record]) -> Result<Vec<Result<u64, EventLogError>>, EventLogError> {
        let held = self.lock.acquire()?;
        let mut last = self.log.last_seq(&held)?;
        // The numbers are taken before the lines are written: a crash in between leaves a gap, and no number twice.
        let reserved = last + records.len() as u64;
        held.store_seq(reserved)?;
        self.log.look_again();
        let mut answers = Vec::with_capacity(records.len());
        for record in records {
            let answer = self.log.append(record, last + 1);
            if answer.is_ok() {
                last += 1;
            }
            answers.push(answer.map(|()| last));
        }
        if last < reserved {
            // Best effort: where it fails, the numbers that were not used are a gap.
            let _ = held.store_seq(last);
        }
        Ok(answers)
    }
}

impl Log {
    /// Forgets the open file if the name means another one by now (another process rotated the log, or a person moved it
    /// away), and sees how far others have written.
    fn look_again(&mut self) {
        self.end = self.end.take().and_then(|end| {
            let named = fs::metadata(&self.path).ok().filter(|named| FileId::of(named) == end.id)?;
            let whole = end.whole && named.len() == end.len;
            Some(End { len: named.len(), whole, ..end })
        });
    }

    fn append(&mut self, record: &Record, seq: u64) -> Result<(), EventLogError> {
        let mut end = self.end.take().map_or_else(|| self.open(), Ok)?;
        let torn = end.len > 0 && !end.whole && !ends_a_line(&end);
        self.line.clear();
        if torn {
            self.line.push(b'\n');
        }
        record.render(seq, &mut self.line);
        // A log that cannot be rotated is better appended to than lost.
        if self.max_bytes > 0
            && end.len > 0
            && end.len + self.line.len() as u64 > self.max_bytes
            && files::shift(&self.path, self.keep).is_ok()
        {
            end = self.open()?;
            self.line.drain(..usize::from(torn));
        }
        let written = write_whole(&mut end.file, &self.line);
        if written.is_ok() {
            self.torn += u64::from(torn);
            end.len += self.line.len() as u64;
            end.whole = true;
        } else if end.file.set_len(end.len).is_err() {
            // What was written of the line could not be taken back: the next record completes it.
            end.len = end.file.metadata().map_or(end.len, |metadata| metadata.len());
            end.whole = false;
        }
        self.end = Some(end);
        written.map_err(|problem| EventLogError::write(&self.path, problem))
    }

    fn open(&self) -> Result<End, EventLogError> {
        let open = || {
            // Reading is for the last byte.
            // A link in its place would carry the log to where others read it (SEC-6). Tests of this module put one to
            // `/dev/full` there; that links are refused is tried over the built binary.
            let no_link = if cfg!(test) { 0 } else { nix::fcntl::OFlag::O_NOFOLLOW.bits() };
            let file = OpenOptions::new()
                .append(true)
                .read(true)
                .create(true)
                .mode(0o600)
                .custom_flags(no_link)
                .open(&self.path)?;
            let metadata = file.metadata()?;
            Ok(End { id: FileId::of(&metadata), len: metadata.len(), whole: false, file })
        };
        open().map_err(|problem| EventLogError::open(&self.path, problem))
    }

    /// The last number given. The lock file's word counts, unless the log's end shows a later one (the lock file was
    /// restored from a copy) or the lock file is missing or damaged: then the log's own records are read, backwards.
    fn last_seq(&mut self, held: &Held<'_>) -> Result<u64, EventLogError> {
        let stored = held.last_seq();
        if let (Some(stored), true) = (stored, self.checked) {
            return Ok(stored);
        }
        let within = if stored.is_some() { TAIL } else { u64::MAX };
        let written = backwards::last_seq(&files::open_all(&self.path)?, within)?;
        self.checked = true;
        Ok(stored.into_iter().chain(written).max().unwrap_or(0))
    }
}

/// Whether the file's last byte is a newline. Read anew each time: another process may have crashed since.
fn ends_a_line(end: &End) -> bool {
    let mut last = [0];
    match end.file.read_at(&mut last, end.len - 1) {
        Ok(1) => last[0] == b'\n',
        // Cannot be read: a newline too many costs less than two records on one line.
        _ => false,
    }
}

/// One write, unless the system takes only part of it.
fn write_whole(file: &mut File, line: &[u8]) -> io::Result<()> {
    let mut rest = line;
    while !rest.is_empty() {
        match file.write(rest) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(taken) => rest = &rest[taken..],
            Err(problem) if problem.kind() == io::ErrorKind::Interrupted => {}
            Err(problem) => return Err(problem),
        }
    }
    Ok(())
}
