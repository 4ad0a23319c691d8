//! The journal of activity: one JSON object a line, each with the item as it was then.

use std::{
    fs::File,
    io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write as _},
    path::Path,
};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use the_loop_plugin_api::event::{Actor, CommentChange, Content, InboundEvent, Ingress, Item, ItemChange, Upstream};
use ulid::Ulid;

use crate::files::{FileError, VERSION, not_linked, owner_only, sync_folder_of, version};

/// No line is longer: two texts of the greatest length, every byte of them escaped, and an item around them.
const MAX_LINE: u64 = 16 << 20;
/// How much is read at once, apart from the line that passes it.
const BATCH: u64 = 1 << 20;

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Entry {
    version: u32,
    pub(crate) id: String,
    at: Timestamp,
    actor: Actor,
    item: Item,
    content: Content,
}

/// A line of the journal, as it reads.
#[derive(Debug)]
pub(crate) enum Line {
    /// An entry.
    Entry(Box<Entry>),
    /// Not an entry.
    Garbage,
    /// An entry of a later version of this program.
    Newer(u32),
}

impl Entry {
    /// An entry with an id of its own.
    pub(crate) fn new(at: Timestamp, actor: Actor, item: Item, content: Content) -> Self {
        Self { version: VERSION, id: format!("act_{}", Ulid::generate()), at, actor, item, content }
    }

    /// What the host is told. Nothing of what it trusts is read from the line.
    pub(crate) fn event(self) -> InboundEvent {
        let (event, action) = words(&self.content);
        InboundEvent {
            ingress: Ingress::Local,
            upstream: Upstream {
                event: event.to_owned(),
                action: action.to_owned(),
                delivery_id: Some(self.id),
                verified: true,
            },
            actor: self.actor,
            item: Some(self.item),
            content: self.content,
        }
    }
}

/// GitHub's words for what happened, so that events of both trackers read alike.
pub(crate) fn words(content: &Content) -> (&'static str, &str) {
    match content {
        Content::Comment { change, .. } => (
            "issue_comment",
            match change {
                CommentChange::Created => "created",
                CommentChange::Edited { .. } => "edited",
                CommentChange::Deleted => "deleted",
            },
        ),
        Content::Item { change } => (
            "issues",
            match change {
                ItemChange::Opened => "opened",
                ItemChange::Reopened => "reopened",
                ItemChange::Labeled { .. } => "labeled",
                ItemChange::Unlabeled { .. } => "unlabeled",
                ItemChange::Closed => "closed",
                ItemChange::Other { action } => action,
            },
        ),
        Content::Check { .. } => ("check", "completed"),
        Content::Moved { .. } => ("repository", "renamed"),
        Content::Ping => ("ping", ""),
    }
}

/// Reads one line.
pub(crate) fn parse(line: &[u8]) -> Line {
    match version(line) {
        Ok(found) if found > VERSION => Line::Newer(found),
        Ok(_) => serde_json::from_slice(line).map_or(Line::Garbage, |entry| Line::Entry(Box::new(entry))),
        Err(_) => Line::Garbage,
    }
}

/// Makes `line` the journal's last line, once. A writer that was killed may have left all of it or its beginning, which is
/// completed; the rest of some other line is ended first, so that it costs itself alone. The caller holds the lock.
pub(crate) fn append(path: &Path, line: &str) -> Result<(), FileError> {
    not_linked(path)?;
    let write = || {
        let mut file = owner_only().read(true).append(true).create(true).open(path)?;
        let length = file.metadata()?.len();
        let start = length.saturating_sub(line.len() as u64 + 1);
        file.seek(SeekFrom::Start(start))?;
        let mut tail = Vec::new();
        (&file).take(length - start).read_to_end(&mut tail)?;
        let written = tail.strip_suffix(b"\n").is_some_and(|tail| tail == line.as_bytes());
        if !written {
            let torn = tail.rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
            // A tail without any end of line that does not begin the file began before it, so it is longer than our line.
            let ours = line.as_bytes().strip_prefix(torn).filter(|_| torn.len() < tail.len() || start == 0);
            let missing = match ours {
                Some(rest) => [rest, b"\n"].concat(),
                None => [b"\n", line.as_bytes(), b"\n"].concat(),
            };
            file.write_all(&missing)?;
        }
        file.sync_all()?;
        if length == 0 { sync_folder_of(path) } else { Ok(()) }
    };
    write().map_err(FileError::io(path, "written"))
}

/// The length of the journal; 0 while there is none.
pub(crate) fn length(path: &Path) -> Result<u64, FileError> {
    match std::fs::metadata(path) {
        Ok(metadata) => Ok(metadata.len()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
        Err(error) => Err(FileError::io(path, "read")(error)),
    }
}

/// Some whole lines from `from` on, without their ends. A last line without an end is still being written and is left.
pub(crate) fn read_from(path: &Path, from: u64) -> Result<Vec<Vec<u8>>, FileError> {
    not_linked(path)?;
    let read = || {
        let mut file = File::open(path)?;
        file.seek(SeekFrom::Start(from))?;
        let mut reader = BufReader::new(file);
        let (mut lines, mut taken) = (Vec::new(), 0);
        while taken < BATCH {
            let mut line = Vec::new();
            let count = (&mut reader).take(MAX_LINE).read_until(b'\n', &mut line)? as u64;
            if line.pop_if(|last| *last == b'\n').is_none() {
                if count == MAX_LINE {
                    let problem = format!("the line at byte {} has no end within {MAX_LINE} bytes", from + taken);
                    return Err(io::Error::new(io::ErrorKind::InvalidData, problem));
                }
                break;
            }
            taken += count;
            lines.push(line);
        }
        Ok(lines)
    };
    read().map_err(FileError::io(path, "read"))
}
