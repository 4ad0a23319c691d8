//! [`Store`]: a folder of JSON records, one file each, in which a bad file costs one record and nothing else (STA-1).

use std::{
    fs::{self, File, Metadata, OpenOptions},
    io::{self, Read as _},
    marker::PhantomData,
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use jiff::Timestamp;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use super::{
    StateError,
    aside::{self, SetAside},
    check_name, durable,
};

/// The largest record that is read, in bytes. Records are a few kilobytes; what is larger is no record of ours.
const LARGEST: u64 = 4 << 20;

/// Something that [`Store`] keeps in a file of its own. Its JSON is an object with a `version`.
pub trait Record: Serialize + DeserializeOwned {
    /// The newest version this program writes.
    const VERSION: u32;

    /// The name that its file must have, without `.json`.
    fn name(&self) -> String;
}

/// Records by name, and the files that are no records.
pub type LoadedAll<T> = (Vec<(String, T)>, Vec<Damaged>);

/// A file that could not be loaded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} cannot be loaded: {problem}{}", .path.display(), aside_text(.set_aside.as_deref()))]
pub struct Damaged {
    /// The name of the record that is missing now. It may belong to a live session: nothing is to be spawned in its place.
    pub name: String,
    /// The file.
    pub path: PathBuf,
    /// Where its bytes are kept now; `None` while they are still in `path`.
    pub set_aside: Option<PathBuf>,
    /// What is wrong.
    pub problem: Problem,
}

fn aside_text(set_aside: Option<&Path>) -> String {
    set_aside.map_or_else(String::new, |path| format!("; its bytes are kept in {}", path.display()))
}

/// What is wrong with a record's file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// It has no bytes.
    #[error("the file is empty")]
    Empty,
    /// It is not a record: torn, filled with NULs, or something else altogether.
    #[error("the file is not a record: {0}")]
    Unparsable(String),
    /// It is a record of something else.
    #[error("the file is a record of {0}")]
    Foreign(String),
    /// It is a link, a folder or a device.
    #[error("it is not a plain file")]
    NotAFile,
    /// It is far larger than any record.
    #[error("the file has {0} bytes")]
    TooLarge(u64),
    /// A newer version of the program wrote it: it is left where it is, and never written to (STA-2).
    #[error("the file has version {found}, newer than {supported}; use the newer program")]
    Newer {
        /// Its version.
        found: u64,
        /// The newest version this program writes.
        supported: u32,
    },
    /// The system did not let it be read: it is left where it is.
    #[error("the file cannot be read: {0}")]
    Unreadable(String),
}

impl Problem {
    /// Whether the file's content is at fault, so that it is set aside to make room for a good one.
    fn is_content(&self) -> bool {
        match self {
            Self::Empty | Self::Unparsable(_) | Self::Foreign(_) | Self::NotAFile | Self::TooLarge(_) => true,
            Self::Newer { .. } | Self::Unreadable(_) => false,
        }
    }
}

/// JSON files that share a folder with records and are none: the derived list of `portable/`, and where the service listens.
const NOT_RECORDS: [&str; 2] = ["index", "service"];

/// Records of one type in one folder.
#[derive(Debug)]
pub struct Store<T> {
    folder: PathBuf,
    records: PhantomData<fn() -> T>,
}

impl<T> Clone for Store<T> {
    fn clone(&self) -> Self {
        Self { folder: self.folder.clone(), records: PhantomData }
    }
}

impl<T: Record> Store<T> {
    /// The records in `folder`, which exists.
    #[must_use]
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into(), records: PhantomData }
    }

    /// The file of a record.
    ///
    /// # Errors
    /// When `name` cannot be a file's.
    pub fn path(&self, name: &str) -> Result<PathBuf, StateError> {
        check_name(name)?;
        Ok(self.folder.join(format!("{name}.json")))
    }

    /// Loads every record, by name, and says which files are damaged. Those whose content is at fault are set aside.
    ///
    /// # Errors
    /// Only when the folder itself cannot be listed.
    pub fn load_all(&self) -> Result<LoadedAll<T>, StateError> {
        let failed = |error| StateError::io("list", &self.folder, error);
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.folder).map_err(failed)? {
            let file = entry.map_err(failed)?.file_name().to_string_lossy().into_owned();
            if let Some(name) = file.strip_suffix(".json")
                && check_name(name).is_ok()
                && !NOT_RECORDS.contains(&name)
            {
                names.push(name.to_owned());
            }
        }
        names.sort();
        let (mut records, mut damaged) = (Vec::new(), Vec::new());
        for name in names {
            let path = self.path(&name)?;
            match self.read(&name, &path) {
                Ok(Some(record)) => records.push((name, record)),
                Ok(None) => {}
                Err(found) => damaged.push(found),
            }
        }
        Ok((records, damaged))
    }

    /// Loads one record; `None` where there is none.
    ///
    /// # Errors
    /// [`StateError::Damaged`] when its file cannot be loaded; one whose content is at fault is set aside.
    pub fn load(&self, name: &str) -> Result<Option<T>, StateError> {
        let path = self.path(name)?;
        self.read(name, &path).map_err(|damaged| StateError::Damaged(Box::new(damaged)))
    }

    /// Writes a derived list beside the records; nothing reads it back.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write_list(&self, name: &'static str, list: &Value) -> Result<(), StateError> {
        let path = self.path(name)?;
        super::durable::write(&path, format!("{list:#}\n").as_bytes())
            .map_err(|error| StateError::io("write", &path, error))
    }

    /// Writes a record into its own file. A damaged file that stands there is set aside first.
    ///
    /// # Errors
    /// When the file is of a newer version ([`StateError::Newer`]), the disk is full ([`StateError::Full`]), or it cannot
    /// be written for another reason. Then what was there is there still.
    pub fn save(&self, name: &str, record: &T) -> Result<(), StateError> {
        let path = self.path(name)?;
        if let Err(found) = self.read(name, &path) {
            match found.problem {
                Problem::Newer { found, supported } => return Err(StateError::Newer { path, found, supported }),
                problem if found.set_aside.is_none() => {
                    return Err(StateError::io("replace", &path, io::Error::other(problem)));
                }
                _ => {}
            }
        }
        let unwritable = |source| StateError::Unwritable { path: path.clone(), source };
        let mut bytes = serde_json::to_vec_pretty(record).map_err(unwritable)?;
        bytes.push(b'\n');
        // What could not be read back would be set aside at the next start, and with it the session.
        parse::<T>(&bytes, name).map_err(|problem| unwritable(serde::de::Error::custom(problem)))?;
        durable::write(&path, &bytes).map_err(|error| StateError::io("write", &path, error))
    }

    /// Removes a record. One that is not there is removed already; one of a newer version is left (STA-2).
    ///
    /// # Errors
    /// When it is of a newer version or cannot be removed.
    pub fn remove(&self, name: &str) -> Result<(), StateError> {
        let path = self.path(name)?;
        if let Err(Damaged { problem: Problem::Newer { found, supported }, .. }) = self.read(name, &path) {
            return Err(StateError::Newer { path, found, supported });
        }
        match fs::remove_file(&path) {
            Ok(()) => durable::sync_folder(&self.folder).map_err(|error| StateError::io("sync", &self.folder, error)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(StateError::io("remove", &path, error)),
        }
    }

    /// Files of this folder that were set aside, now or by an earlier start, for as long as they lie there.
    ///
    /// # Errors
    /// When the folder cannot be listed.
    pub fn set_aside(&self) -> Result<Vec<SetAside>, StateError> {
        aside::list(&self.folder).map_err(|error| StateError::io("list", &self.folder, error))
    }

    fn read(&self, name: &str, path: &Path) -> Result<Option<T>, Damaged> {
        match read_file(path) {
            Ok(None) => Ok(None),
            Ok(Some((bytes, seen))) => {
                parse(&bytes, name).map(Some).map_err(|problem| Self::damaged(name, path, Some(&seen), problem))
            }
            Err(problem) => Err(Self::damaged(name, path, None, problem)),
        }
    }

    fn damaged(name: &str, path: &Path, seen: Option<&Metadata>, problem: Problem) -> Damaged {
        // Another process may have put a good file there since the bad one was read.
        let unchanged = |seen: &Metadata| fs::symlink_metadata(path).is_ok_and(|now| now.ino() == seen.ino());
        let movable = problem.is_content() && seen.is_none_or(unchanged);
        let set_aside = if movable { aside::set_aside(path, Timestamp::now()).ok() } else { None };
        Damaged { name: name.to_owned(), path: path.to_owned(), set_aside, problem }
    }
}

fn read_file(path: &Path) -> Result<Option<(Vec<u8>, Metadata)>, Problem> {
    let unreadable = |error: io::Error| Problem::Unreadable(error.to_string());
    let mut file: File =
        match OpenOptions::new().read(true).custom_flags(nix::libc::O_NOFOLLOW | nix::libc::O_NONBLOCK).open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) if error.raw_os_error() == Some(nix::libc::ELOOP) => return Err(Problem::NotAFile),
            // What cannot be opened for being a socket or a device is no record either.
            Err(error) if error.raw_os_error() == Some(nix::libc::ENXIO) => return Err(Problem::NotAFile),
            Err(error) => return Err(unreadable(error)),
        };
    let found = file.metadata().map_err(unreadable)?;
    if !found.is_file() {
        return Err(Problem::NotAFile);
    }
    if found.len() > LARGEST {
        return Err(Problem::TooLarge(found.len()));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(found.len()).unwrap_or(0));
    file.read_to_end(&mut bytes).map_err(unreadable)?;
    Ok(Some((bytes, found)))
}

fn parse<T: Record>(bytes: &[u8], name: &str) -> Result<T, Problem> {
    if bytes.is_empty() {
        return Err(Problem::Empty);
    }
    let unparsable = |error: serde_json::Error| Problem::Unparsable(error.to_string());
    let value: Value = serde_json::from_slice(bytes).map_err(unparsable)?;
    match value.get("version").and_then(Value::as_u64) {
        Some(found) if found > u64::from(T::VERSION) => {
            return Err(Problem::Newer { found, supported: T::VERSION });
        }
        Some(1..) => {}
        _ => return Err(Problem::Unparsable("it has no version".to_owned())),
    }
    let record = T::deserialize(value).map_err(unparsable)?;
    if record.name() == name { Ok(record) } else { Err(Problem::Foreign(record.name())) }
}

#[cfg(test)]
mod tests;
