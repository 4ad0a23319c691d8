//! The one way in which a state file is replaced (STA-1): written aside, synced, renamed, the folder synced.

use std::{
    fs::{self, File},
    io::{self, Write as _},
    os::unix::fs::MetadataExt as _,
    path::Path,
};

use tempfile::NamedTempFile;

/// What the name of every file that is being written starts with. Whatever lists a folder skips names that start with a dot.
const ASIDE_PREFIX: &str = ".aside-";

/// Replaces `path` by `bytes`, for its owner alone (STA-3). When this returns `Ok` the bytes survive a power cut; when it
/// returns an error, or the process is killed within it, the file is as it was.
///
/// # Errors
/// When `path` or its folder is a symbolic link (SEC-6), and whatever the system says; a full disk is
/// [`io::ErrorKind::StorageFull`].
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = folder_of(path);
    refuse_link(folder)?;
    refuse_link(path)?;
    let mut aside = create_aside(folder)?;
    aside.write_all(bytes)?;
    aside.as_file().sync_all()?;
    aside.persist(path).map_err(|error| error.error)?;
    sync_folder(folder)
}

/// Makes what was created, renamed or removed in `folder` survive a power cut.
///
/// # Errors
/// Whatever the system says.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Removes what writers that were killed left behind in `folder`. A file that is being written is locked by its writer, so
/// that what is not locked has no writer any more.
///
/// # Errors
/// When the folder cannot be listed.
pub fn sweep(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if !entry.file_name().to_string_lossy().starts_with(ASIDE_PREFIX) || !entry.file_type()?.is_file() {
            continue;
        }
        // What goes away between listing and opening was another's to remove.
        if let Ok(file) = File::open(entry.path())
            && file.try_lock().is_ok()
        {
            let _ = fs::remove_file(entry.path());
        }
    }
    Ok(())
}

/// The folder that holds `path`.
pub(crate) fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// A new file beside the one to replace, locked so that [`sweep`] leaves it alone.
pub(crate) fn create_aside(folder: &Path) -> io::Result<NamedTempFile> {
    loop {
        let aside = tempfile::Builder::new().prefix(ASIDE_PREFIX).tempfile_in(folder)?;
        // A sweep may have seen the file before it was locked, and taken it for a dead writer's.
        if aside.as_file().try_lock().is_ok() && aside.as_file().metadata()?.nlink() > 0 {
            return Ok(aside);
        }
    }
}

fn refuse_link(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_symlink() => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("{} is a symbolic link, which state never follows", path.display()),
        )),
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn sta_3_a_written_file_is_its_owners_alone_and_nothing_is_left_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        write(&path, b"old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        write(&path, b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(names(folder.path()), ["a.json"]);
    }

    #[test]
    fn sta_1_a_write_that_fails_leaves_what_was_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        fs::create_dir_all(path.join("not-empty")).unwrap();
        assert!(write(&path, b"new").is_err());
        assert_eq!(names(folder.path()), ["a.json"]);
        assert!(path.join("not-empty").is_dir());
    }

    #[test]
    fn sec_6_neither_a_linked_file_nor_a_linked_folder_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let victim = folder.path().join("victim");
        fs::write(&victim, "untouched").unwrap();
        symlink(&victim, folder.path().join("a.json")).unwrap();
        assert!(write(&folder.path().join("a.json"), b"new").is_err());

        fs::create_dir(folder.path().join("real")).unwrap();
        symlink(folder.path().join("real"), folder.path().join("linked")).unwrap();
        assert!(write(&folder.path().join("linked/a.json"), b"new").is_err());

        assert_eq!(fs::read(&victim).unwrap(), b"untouched");
        assert!(names(&folder.path().join("real")).is_empty());
    }

    #[test]
    fn sta_1_a_sweep_takes_what_a_dead_writer_left_and_not_what_is_being_written() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(".aside-dead"), "torn").unwrap();
        fs::write(folder.path().join("a.json"), "kept").unwrap();
        let living = create_aside(folder.path()).unwrap();
        sweep(folder.path()).unwrap();
        let living = living.path().file_name().unwrap().to_str().unwrap().to_owned();
        assert_eq!(names(folder.path()), [living, "a.json".to_owned()]);
    }
}
