//! Where the host's socket is (STA-6). The system takes about a hundred bytes of path, and state roots can be deeper.

use std::{
    fs, io,
    os::unix::{ffi::OsStrExt as _, fs::MetadataExt as _},
    path::{Path, PathBuf},
};

use nix::unistd::geteuid;
use sha2::{Digest as _, Sha256};

use super::{StateError, StateRoot, durable};

/// The longest path of a socket, in bytes; the system's own limit is 107 on Linux and 103 elsewhere.
const LONGEST: usize = 100;

/// Folders outside the state root in which a socket may be put, read from the environment by the caller.
#[derive(Clone, Copy, Debug)]
pub struct SocketFolders<'a> {
    /// `$XDG_RUNTIME_DIR`, where it is set.
    pub runtime: Option<&'a Path>,
    /// The folder for temporary files.
    pub temporary: &'a Path,
}

impl StateRoot {
    /// Where the host is to listen. A path outside the root is written to `local/host.sock.path`, where
    /// [`StateRoot::find_socket`] reads it.
    ///
    /// # Errors
    /// When every candidate is too long, or the path cannot be written down.
    pub fn place_socket(&self, folders: SocketFolders<'_>) -> Result<PathBuf, StateError> {
        let path = self.choose_socket(folders)?;
        let note = self.socket_note();
        if path == self.inner_socket() {
            match fs::remove_file(&note) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(StateError::io("remove", &note, error));
                }
                _ => {}
            }
        } else {
            let mut bytes = path.as_os_str().as_bytes().to_vec();
            bytes.push(b'\n');
            durable::write(&note, &bytes).map_err(|error| StateError::io("write", &note, error))?;
        }
        Ok(path)
    }

    /// Where a client finds the host's socket; `None` where there is none. A socket of another user is none, since
    /// temporary folders are shared.
    #[must_use]
    pub fn find_socket(&self) -> Option<PathBuf> {
        find_socket(self.root())
    }

    fn inner_socket(&self) -> PathBuf {
        self.local().join("host.sock")
    }

    fn socket_note(&self) -> PathBuf {
        self.local().join("host.sock.path")
    }

    fn choose_socket(&self, folders: SocketFolders<'_>) -> Result<PathBuf, StateError> {
        let digest = Sha256::digest(self.root().as_os_str().as_bytes());
        let name = format!("the-loop-{}.sock", hex::encode(&digest[..8]));
        let outside = folders.runtime.into_iter().chain([folders.temporary]).map(|folder| folder.join(&name));
        let mut path = self.inner_socket();
        for candidate in outside {
            if path.as_os_str().len() <= LONGEST {
                break;
            }
            path = candidate;
        }
        if path.as_os_str().len() <= LONGEST { Ok(path) } else { Err(StateError::SocketPath { path, limit: LONGEST }) }
    }
}

/// [`StateRoot::find_socket`] of a root that need not exist: a client makes no folders.
#[must_use]
pub fn find_socket(root: &Path) -> Option<PathBuf> {
    let local = root.join("local");
    let path = match fs::read(local.join("host.sock.path")) {
        Ok(bytes) => PathBuf::from(std::ffi::OsStr::from_bytes(bytes.trim_ascii())),
        Err(_) => local.join("host.sock"),
    };
    let found = fs::symlink_metadata(&path).ok()?;
    (found.uid() == geteuid().as_raw() && !found.is_symlink()).then_some(path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::{UnixListener, UnixStream};

    use super::*;

    #[test]
    fn sta_6_the_socket_is_in_the_root_where_its_path_is_short_enough() {
        let base = tempfile::tempdir().unwrap();
        let root = base.path().join("r");
        let folders = SocketFolders { runtime: None, temporary: base.path() };
        let state = StateRoot::open(&root).unwrap();
        assert_eq!(state.place_socket(folders).unwrap(), state.local().join("host.sock"));
        assert!(!state.socket_note().exists());
    }

    #[test]
    fn sta_6_a_deep_root_has_its_socket_elsewhere_and_clients_find_it() {
        let base = tempfile::tempdir().unwrap();
        let runtime = base.path().join("run");
        fs::create_dir(&runtime).unwrap();
        let folders = SocketFolders { runtime: Some(&runtime), temporary: base.path() };
        let deep = |tail: &str| base.path().join("d".repeat(90)).join(tail);
        let (one, other) = (StateRoot::open(&deep("one")).unwrap(), StateRoot::open(&deep("other")).unwrap());
        let path = one.place_socket(folders).unwrap();
        assert!(path.starts_with(&runtime) && path.as_os_str().len() <= LONGEST, "{}", path.display());
        assert_ne!(path, other.place_socket(folders).unwrap());
        assert_eq!(one.find_socket(), None);

        let _listening = UnixListener::bind(&path).unwrap();
        let found = one.find_socket().unwrap();
        UnixStream::connect(found).unwrap();

        let long = base.path().join("x".repeat(100));
        let folders = SocketFolders { runtime: Some(&long), temporary: base.path() };
        assert_eq!(one.place_socket(folders).unwrap().parent(), Some(base.path()));
        let folders = SocketFolders { runtime: Some(&long), temporary: &long };
        assert!(matches!(one.place_socket(folders), Err(StateError::SocketPath { .. })));
    }
}
