//! Setting a damaged file aside: it gets a name with the time, and its bytes are kept (STA-1).

use std::{
    fs::{self, DirBuilder, OpenOptions},
    io,
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use jiff::{Timestamp, tz::TimeZone};

use super::durable::{folder_of, sync_folder};

/// What stands between a file's own name and the time in the name of a file that was set aside.
const MARK: &str = ".damaged-";

/// A file that was set aside earlier and that nobody has looked after yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetAside {
    /// The name that the file had.
    pub original: String,
    /// Where it is now.
    pub path: PathBuf,
}

/// Renames `path` to `<path>.damaged-<UTC time>` and says what it is called now. It never takes the place of another file.
///
/// # Errors
/// Whatever the system says; then the file is where it was.
pub fn set_aside(path: &Path, now: Timestamp) -> io::Result<PathBuf> {
    let is_folder = fs::symlink_metadata(path)?.is_dir();
    for attempt in 0u32.. {
        let target = aside_name(path, now, attempt);
        // The name is taken by an empty file or folder first, since a rename alone would silently replace what is there.
        let reserved = if is_folder {
            DirBuilder::new().mode(0o700).create(&target)
        } else {
            OpenOptions::new().write(true).create_new(true).mode(0o600).open(&target).map(drop)
        };
        match reserved {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
            Err(error) => return Err(error),
            Ok(()) => {}
        }
        if let Err(error) = fs::rename(path, &target) {
            let _ = if is_folder { fs::remove_dir(&target) } else { fs::remove_file(&target) };
            return Err(error);
        }
        sync_folder(folder_of(path))?;
        return Ok(target);
    }
    Err(io::Error::from(io::ErrorKind::AlreadyExists))
}

fn aside_name(path: &Path, now: Timestamp, attempt: u32) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(MARK);
    name.push(now.to_zoned(TimeZone::UTC).strftime("%Y%m%dT%H%M%S.%6fZ").to_string());
    if attempt > 0 {
        name.push(format!("-{attempt}"));
    }
    PathBuf::from(name)
}

/// What was set aside in `folder`, oldest first.
///
/// # Errors
/// When the folder cannot be listed.
pub(super) fn list(folder: &Path) -> io::Result<Vec<SetAside>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if let Some((original, _time)) = entry.file_name().to_string_lossy().split_once(MARK) {
            found.push(SetAside { original: original.to_owned(), path: entry.path() });
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sta_1_what_is_set_aside_keeps_its_bytes_and_replaces_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        let now: Timestamp = "2026-12-01T02:03:04.5Z".parse().unwrap();
        let mut kept = Vec::new();
        for bytes in ["first", "second", "third"] {
            fs::write(&path, bytes).unwrap();
            kept.push((set_aside(&path, now).unwrap(), bytes));
            assert!(!path.exists());
        }
        assert_eq!(kept[0].0, folder.path().join("a.json.damaged-20261201T020304.500000Z"));
        for (path, bytes) in &kept {
            assert_eq!(fs::read_to_string(path).unwrap(), *bytes);
        }
        let listed = list(folder.path()).unwrap();
        assert_eq!(listed.len(), 3);
        assert!(listed.iter().all(|found| found.original == "a.json"));
    }

    #[test]
    fn sta_1_a_folder_where_a_file_belongs_is_set_aside_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        fs::create_dir_all(path.join("inside")).unwrap();
        let aside = set_aside(&path, Timestamp::UNIX_EPOCH).unwrap();
        assert!(aside.join("inside").is_dir() && !path.exists());
    }
}
