//! The items, and changes to them that are made whole or not at all.

use std::{
    ffi::OsStr,
    fs, io,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use the_loop_plugin_api::WorkItemRef;

use crate::{
    PROVIDER,
    files::{self, FileError, VERSION},
    item::ItemRecord,
    journal::{self, Entry},
    lock::Held,
};

/// The folder. Reading needs no lock: every item is replaced in one step.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    folder: PathBuf,
}

/// A change that is being made. Once it is on disk the change will happen, whoever is killed: the item and its activity
/// are two files, and an item that changed without a word in the journal would never reach the host.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Pending {
    version: u32,
    item: ItemRecord,
    line: Option<String>,
}

impl Store {
    pub(crate) fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned() }
    }

    pub(crate) fn lock(&self) -> PathBuf {
        self.folder.join("lock")
    }

    pub(crate) fn journal(&self) -> PathBuf {
        self.folder.join("activity.jsonl")
    }

    pub(crate) fn cursor(&self) -> PathBuf {
        self.folder.join("cursor.json")
    }

    pub(crate) fn pending(&self) -> PathBuf {
        self.folder.join("pending.json")
    }

    fn items(&self) -> PathBuf {
        self.folder.join("items")
    }

    fn repository_folder(&self, item: &WorkItemRef) -> PathBuf {
        self.items().join(item.owner()).join(item.repo())
    }

    pub(crate) fn item(&self, item: &WorkItemRef) -> PathBuf {
        self.repository_folder(item).join(format!("{}.json", item.number()))
    }

    /// An item, `None` where it was never opened.
    pub(crate) fn read(&self, reference: &WorkItemRef) -> Result<Option<ItemRecord>, FileError> {
        let path = self.item(reference);
        match files::read::<ItemRecord>(&path)? {
            Some(record) if record.reference != *reference => {
                Err(FileError::Damaged { problem: format!("it holds {}", record.reference), path })
            }
            found => Ok(found),
        }
    }

    /// Every item of a repository, by number.
    pub(crate) fn repository(&self, repository: &WorkItemRef) -> Result<Vec<ItemRecord>, FileError> {
        let mut records = Vec::new();
        for number in self.numbers(repository)? {
            if let Ok(reference) = WorkItemRef::new(PROVIDER, None, repository.owner(), repository.repo(), number) {
                records.extend(self.read(&reference)?);
            }
        }
        Ok(records)
    }

    /// Every item, by ref, and what is wrong with those that are damaged.
    pub(crate) fn all(&self) -> Result<(Vec<ItemRecord>, Vec<FileError>), FileError> {
        let (mut records, mut damaged) = (Vec::new(), Vec::new());
        for owner in names(&self.items())? {
            for repo in names(&self.items().join(&owner))? {
                // A folder whose name no repository has holds nothing of ours.
                let named = owner.to_str().zip(repo.to_str());
                let repository = named.and_then(|(owner, repo)| WorkItemRef::new(PROVIDER, None, owner, repo, 1).ok());
                let Some(repository) = repository else { continue };
                for number in self.numbers(&repository)? {
                    let named = WorkItemRef::new(PROVIDER, None, repository.owner(), repository.repo(), number);
                    match named.map(|reference| self.read(&reference)) {
                        Ok(Ok(record)) => records.extend(record),
                        Ok(Err(error)) => damaged.push(error),
                        Err(_) => {}
                    }
                }
            }
        }
        Ok((records, damaged))
    }

    /// The number that the next item of a repository gets. It is read from names alone, so that a damaged item keeps its
    /// number.
    pub(crate) fn next_number(&self, repository: &WorkItemRef, _held: &Held) -> Result<u64, FileError> {
        Ok(self.numbers(repository)?.last().map_or(1, |last| last + 1))
    }

    fn numbers(&self, repository: &WorkItemRef) -> Result<Vec<u64>, FileError> {
        let named = names(&self.repository_folder(repository))?;
        let mut numbers: Vec<u64> = named.iter().filter_map(|name| number(name)).collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// Makes a change: the item as it is from now on, and what the journal says of it.
    pub(crate) fn commit(&self, held: &Held, item: ItemRecord, entry: Option<&Entry>) -> Result<(), FileError> {
        files::make_folder(&self.repository_folder(&item.reference))?;
        let line = entry.map(serde_json::to_string).transpose().map_err(|error| {
            // Cannot happen to plain data; if it does, nothing has been written.
            FileError::io(&self.journal(), "written")(error.into())
        })?;
        let pending = Pending { version: VERSION, item, line };
        files::write(&self.pending(), &pending)?;
        if let Err(error) = files::write(&self.item(&pending.item.reference), &pending.item) {
            // Without its item the change has not happened, and it must not happen later behind its author's back.
            fs::remove_file(self.pending()).map_err(FileError::io(&self.pending(), "removed"))?;
            return Err(error);
        }
        // From here on the change has happened. If its activity cannot be written now, whoever holds the lock next does it.
        let _ = self.complete(held, &pending);
        Ok(())
    }

    /// Completes the change that a killed writer began. Whoever takes the lock to write does this first.
    pub(crate) fn recover(&self, held: &Held) -> Result<(), FileError> {
        let Some(pending) = files::read::<Pending>(&self.pending())? else { return Ok(()) };
        files::write(&self.item(&pending.item.reference), &pending.item)?;
        self.complete(held, &pending)
    }

    fn complete(&self, _held: &Held, pending: &Pending) -> Result<(), FileError> {
        if let Some(line) = &pending.line {
            journal::append(&self.journal(), line)?;
        }
        fs::remove_file(self.pending()).map_err(FileError::io(&self.pending(), "removed"))
    }
}

/// What is in a folder, sorted; nothing where there is none.
fn names(folder: &Path) -> Result<Vec<std::ffi::OsString>, FileError> {
    let listed = fs::read_dir(folder).and_then(|entries| entries.map(|entry| Ok(entry?.file_name())).collect());
    match listed {
        Ok(names) => {
            let mut names: Vec<_> = names;
            names.sort();
            Ok(names)
        }
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(Vec::new()),
        Err(error) => Err(FileError::io(folder, "listed")(error)),
    }
}

/// The number that an item's file is named by.
fn number(name: &OsStr) -> Option<u64> {
    let digits = name.to_str()?.strip_suffix(".json")?;
    digits.parse().ok().filter(|number: &u64| *number > 0 && number.to_string() == digits)
}
