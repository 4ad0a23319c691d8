//! The files that one log consists of: `events.jsonl`, then `events.jsonl.1` and on, newest first.

use std::{
    ffi::OsString,
    fs::{self, File, Metadata},
    io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use super::EventLogError;

/// Which file it is, whatever its name: rotation renames, and never copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    pub(super) fn of(metadata: &Metadata) -> Self {
        Self { device: metadata.dev(), inode: metadata.ino() }
    }
}

/// An open file of the log. While it is open its id is not given to another file.
#[derive(Debug)]
pub(super) struct LogFile {
    pub(super) path: PathBuf,
    pub(super) file: File,
    pub(super) id: FileId,
    pub(super) len: u64,
}

/// The lock file beside the log: `events.lock` for `events.jsonl`.
pub(super) fn lock_path(log: &Path) -> PathBuf {
    log.with_extension("lock")
}

/// The name of the `number`th rotated file, 1 being the newest.
pub(super) fn rotated(log: &Path, number: u32) -> PathBuf {
    let mut name = OsString::from(log);
    name.push(format!(".{number}"));
    PathBuf::from(name)
}

/// Opens all files of the log, newest first. A rotation in between moves files to higher numbers, one at a time and the
/// oldest first, so that a file may be met twice, which is seen by its id, or one number may be free for a moment; no file
/// is missed.
pub(super) fn open_all(log: &Path) -> Result<Vec<LogFile>, EventLogError> {
    let mut all: Vec<LogFile> = Vec::new();
    let mut free = 0;
    for number in 0.. {
        let path = if number == 0 { log.to_path_buf() } else { rotated(log, number) };
        match open(&path) {
            Ok(found) => {
                free = 0;
                if !all.iter().any(|known| known.id == found.id) {
                    all.push(found);
                }
            }
            Err(problem) if problem.kind() == io::ErrorKind::NotFound => {
                free += 1;
                if free == 2 {
                    break;
                }
            }
            Err(problem) => return Err(EventLogError::read(path, problem)),
        }
    }
    Ok(all)
}

fn open(path: &Path) -> io::Result<LogFile> {
    let file = File::open(path)?;
    let metadata = file.metadata()?;
    Ok(LogFile { path: path.to_path_buf(), id: FileId::of(&metadata), len: metadata.len(), file })
}

/// Makes room for a new log file: every file moves one number up, and those past `keep` are removed.
pub(super) fn shift(log: &Path, keep: u32) -> io::Result<()> {
    // Also those that an earlier, larger `keep` left behind.
    let mut number = keep.max(1);
    while remove_if_there(&rotated(log, number))? {
        number += 1;
    }
    if keep == 0 {
        return fs::remove_file(log);
    }
    for number in (1..keep).rev() {
        match fs::rename(rotated(log, number), rotated(log, number + 1)) {
            Err(problem) if problem.kind() != io::ErrorKind::NotFound => return Err(problem),
            _ => {}
        }
    }
    fs::rename(log, rotated(log, 1))
}

fn remove_if_there(path: &Path) -> io::Result<bool> {
    match fs::remove_file(path) {
        Ok(()) => Ok(true),
        Err(problem) if problem.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(problem) => Err(problem),
    }
}
