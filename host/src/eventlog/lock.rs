//! The lock file: its flock puts all writers of one log in a row, and its content is the last number given (EVT-1).

use std::{
    fs::{self, DirBuilder, File, OpenOptions, TryLockError},
    io::{self, Read},
    os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt},
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use super::{EventLogError, files::FileId};

/// Digits of the largest number. The text always has this length, so that a new number covers the old one wholly.
const DIGITS: usize = 20;

/// The lock file of one log, kept open between uses.
#[derive(Debug)]
pub(super) struct LockFile {
    path: PathBuf,
    patience: Duration,
    open: Option<File>,
}

/// Held while it lives: nobody else writes to the log or rotates it.
#[derive(Debug)]
pub(super) struct Held<'a> {
    path: &'a Path,
    file: &'a File,
}

impl LockFile {
    /// `patience` is how long another process may hold the lock before it is given up.
    pub(super) fn new(path: PathBuf, patience: Duration) -> Self {
        Self { path, patience, open: None }
    }

    /// Takes the lock, making the file and its folder where they are missing.
    pub(super) fn acquire(&mut self) -> Result<Held<'_>, EventLogError> {
        let deadline = Instant::now() + self.patience;
        let locked = || EventLogError::Locked { path: self.path.clone(), waited: self.patience };
        loop {
            let file = match self.open.take() {
                Some(file) => file,
                None => open(&self.path).map_err(|problem| EventLogError::open(&self.path, problem))?,
            };
            if !lock(&file, deadline).map_err(|problem| EventLogError::open(&self.path, problem))? {
                return Err(locked());
            }
            // A file that was removed or replaced meanwhile excludes nobody: others lock the new one.
            if is_current(&file, &self.path) {
                return Ok(Held { path: &self.path, file: self.open.insert(file) });
            }
            if Instant::now() > deadline {
                return Err(locked());
            }
        }
    }
}

impl Held<'_> {
    /// The last number given, or `None` when the file is new or does not hold one.
    pub(super) fn last_seq(&self) -> Option<u64> {
        let mut text = String::new();
        let mut from_start = PositionedReader { file: self.file, at: 0 }.take(DIGITS as u64 + 2);
        from_start.read_to_string(&mut text).ok()?;
        text.strip_suffix('\n').filter(|digits| digits.len() == DIGITS)?.parse().ok()
    }

    /// Records that `seq` is given.
    pub(super) fn store_seq(&self, seq: u64) -> Result<(), EventLogError> {
        let text = format!("{seq:0DIGITS$}\n");
        let written = self.file.write_all_at(text.as_bytes(), 0).and_then(|()| {
            // What a person or another program left behind the number would make it unreadable.
            if self.file.metadata()?.len() > text.len() as u64 { self.file.set_len(text.len() as u64) } else { Ok(()) }
        });
        written.map_err(|problem| EventLogError::write(self.path, problem))
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        // Cannot fail on an open file that is locked; closing it would release the lock as well.
        let _ = self.file.unlock();
    }
}

struct PositionedReader<'a> {
    file: &'a File,
    at: u64,
}

impl Read for PositionedReader<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(into, self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    // A link in its place would have another file overwritten (SEC-6).
    options.read(true).write(true).create(true).truncate(false).mode(0o600).custom_flags(nix::libc::O_NOFOLLOW);
    match options.open(path) {
        Err(problem) if problem.kind() == io::ErrorKind::NotFound => {
            let Some(folder) = path.parent() else { return Err(problem) };
            DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
            options.open(path)
        }
        answer => answer,
    }
}

/// Whether the lock could be taken before the deadline.
fn lock(file: &File, deadline: Instant) -> io::Result<bool> {
    // The kernel's own queue has no deadline, and without one a stopped process would stop all others with it. The first
    // tries come close together, since the usual holder is done within microseconds.
    let mut pause = Duration::from_micros(50);
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(true),
            Err(TryLockError::WouldBlock) if Instant::now() >= deadline => return Ok(false),
            Err(TryLockError::WouldBlock) => thread::park_timeout(pause),
            Err(TryLockError::Error(problem)) => return Err(problem),
        }
        pause = (pause * 2).min(Duration::from_millis(5));
    }
}

fn is_current(file: &File, path: &Path) -> bool {
    match (file.metadata(), fs::metadata(path)) {
        (Ok(open), Ok(named)) => FileId::of(&open) == FileId::of(&named),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evt_1_a_lock_that_is_not_released_is_an_error_and_a_replaced_file_is_locked_anew() -> anyhow::Result<()> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("logs/events.lock");
        let mut first = LockFile::new(path.clone(), Duration::from_millis(20));
        let mut second = LockFile::new(path.clone(), Duration::from_millis(20));
        let held = first.acquire()?;
        assert!(matches!(second.acquire(), Err(EventLogError::Locked { .. })));
        held.store_seq(7)?;
        drop(held);
        assert_eq!(second.acquire()?.last_seq(), Some(7));

        fs::remove_file(&path)?;
        let held = second.acquire()?;
        assert_eq!(held.last_seq(), None, "the file that was removed excludes nobody");
        assert!(matches!(first.acquire(), Err(EventLogError::Locked { .. })));
        Ok(())
    }
}
