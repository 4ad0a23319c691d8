//! How far the ingress source has come in the journal.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::{
    files::{self, FileError, VERSION},
    journal::{self, Line},
};

/// A place in the journal: everything before it was taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Cursor {
    version: u32,
    pub(crate) offset: u64,
    /// The last entry before it, by which the journal is known to be the one that was read.
    last: Option<Mark>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Mark {
    offset: u64,
    id: String,
}

impl Cursor {
    /// The beginning.
    pub(crate) fn start() -> Self {
        Self { version: VERSION, offset: 0, last: None }
    }

    /// The place that was kept, and what is wrong with it. A cursor that is damaged, or of another journal, begins again:
    /// what was taken before has the same ids, by which the host tells repeats, while a skipped entry would be lost.
    pub(crate) fn load(path: &Path, journal: &Path) -> Result<(Self, Option<String>), FileError> {
        match files::read::<Self>(path) {
            Ok(Some(cursor)) => cursor.placed(journal),
            Ok(None) => Ok((Self::start(), None)),
            Err(error @ FileError::Damaged { .. }) => {
                Ok((Self::start(), Some(format!("{error}; the journal is read from its beginning"))))
            }
            Err(error) => Err(error),
        }
    }

    /// This place, if the journal still has the entry before it there; else where that entry is now, else the beginning.
    pub(crate) fn placed(self, journal: &Path) -> Result<(Self, Option<String>), FileError> {
        let length = journal::length(journal)?;
        let known = match &self.last {
            None => true,
            Some(mark) => mark.offset < length && id_at(journal, mark.offset)?.as_ref() == Some(&mark.id),
        };
        if known && self.offset <= length {
            return Ok((self, None));
        }
        let mut walked = Self::start();
        while walked.offset < length {
            let lines = journal::read_from(journal, walked.offset)?;
            if lines.is_empty() {
                break;
            }
            for line in lines {
                walked = walked.after(&line);
                if self.last.is_some() && walked.last.as_ref().map(|mark| &mark.id) == self.last.as_ref().map(|m| &m.id)
                {
                    return Ok((walked, None));
                }
            }
        }
        let problem =
            format!("{} is not the journal that was read before; it is read from its beginning", journal.display());
        Ok((Self::start(), Some(problem)))
    }

    /// The place behind one more line.
    pub(crate) fn after(&self, line: &[u8]) -> Self {
        let last = match journal::parse(line) {
            Line::Entry(entry) => Some(Mark { offset: self.offset, id: entry.id }),
            Line::Garbage | Line::Newer(_) => self.last.clone(),
        };
        Self { version: VERSION, offset: self.offset + line.len() as u64 + 1, last }
    }

    /// Makes this the place to go on from.
    pub(crate) fn save(&self, path: &Path) -> Result<(), FileError> {
        files::write(path, self)
    }
}

/// The id of the entry at a place of the journal, if one is there.
fn id_at(journal: &Path, offset: u64) -> Result<Option<String>, FileError> {
    Ok(journal::read_from(journal, offset)?.first().and_then(|line| match journal::parse(line) {
        Line::Entry(entry) => Some(entry.id),
        Line::Garbage | Line::Newer(_) => None,
    }))
}
