//! [`InstanceLock`]: one process at a time. The kernel's lock is the truth; the number in the file is a hint.

use std::{
    fs::{File, OpenOptions, TryLockError},
    io::{self, Read as _, Seek as _, Write as _},
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

/// How long [`InstanceLock::acquire`] goes on trying. A process that was killed while it was starting a child leaves its
/// lock with that child until the child has become another program.
const PATIENCE: Duration = Duration::from_secs(1);

/// A lock that this process holds until the value is dropped. Whatever the file says, a process that is gone holds nothing.
#[derive(Debug)]
pub struct InstanceLock {
    file: File,
    path: PathBuf,
}

/// Why a lock was not got.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process has it.
    #[error("{path} is held by {}; stop that process first", holder_text(*pid))]
    Held {
        /// The lock.
        path: PathBuf,
        /// Who has it, where that can be told.
        pid: Option<u32>,
    },
    /// The file could not be used.
    #[error("could not use the lock {path}; it must be a plain file that this user may write")]
    Io {
        /// The lock.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

fn holder_text(pid: Option<u32>) -> String {
    pid.map_or_else(|| "another process".to_owned(), |pid| format!("process {pid}"))
}

/// Whether someone holds a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockState {
    /// Nobody does, whatever the file says.
    Free,
    /// Someone does.
    Held {
        /// Who, where that can be told.
        pid: Option<u32>,
    },
}

impl InstanceLock {
    /// Takes the lock at `path` for the process `pid`, trying for about a second. Take it before starting any child.
    ///
    /// # Errors
    /// [`LockError::Held`] while another process has it; [`LockError::Io`] when the file cannot be used.
    pub fn acquire(path: &Path, pid: u32) -> Result<Self, LockError> {
        let failed = |source| LockError::Io { path: path.to_owned(), source };
        let file = open(path, true).map_err(failed)?;
        let deadline = Instant::now() + PATIENCE;
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::Error(source)) => return Err(failed(source)),
                Err(TryLockError::WouldBlock) if Instant::now() >= deadline => {
                    return Err(LockError::Held { path: path.to_owned(), pid: holder_of(&file) });
                }
                Err(TryLockError::WouldBlock) => pause(),
            }
        }
        let lock = Self { file, path: path.to_owned() };
        // The number is only a hint: where it cannot be written, on a full disk for one, the lock holds all the same.
        let _ = lock.write_pid(pid);
        Ok(lock)
    }

    /// Whether anyone holds the lock at `path` now.
    #[must_use]
    pub fn state(path: &Path) -> LockState {
        let Ok(file) = open(path, false) else { return LockState::Free };
        // A shared lock, so that two who look do not take each other for a holder. One that takes the lock at this very
        // moment tries again.
        match file.try_lock_shared() {
            Ok(()) | Err(TryLockError::Error(_)) => LockState::Free,
            Err(TryLockError::WouldBlock) => LockState::Held { pid: holder_of(&file) },
        }
    }

    /// Who holds the lock at `path`; `None` while nobody does, and where it cannot be told. Only a process that this names
    /// may be signalled.
    #[must_use]
    pub fn holder(path: &Path) -> Option<u32> {
        match Self::state(path) {
            LockState::Held { pid } => pid,
            LockState::Free => None,
        }
    }

    /// The file of the lock.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn write_pid(&self, pid: u32) -> io::Result<()> {
        self.file.set_len(0)?;
        (&self.file).write_all(format!("{pid}\n").as_bytes())?;
        self.file.sync_all()
    }
}

impl Drop for InstanceLock {
    fn drop(&mut self) {
        // Closing the file is not enough while a child that is being started still shares it.
        let _ = self.file.unlock();
    }
}

fn open(path: &Path, create: bool) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(create)
        .create(create)
        .truncate(false)
        .mode(0o600)
        .custom_flags(nix::libc::O_NOFOLLOW | nix::libc::O_NONBLOCK)
        .open(path)
}

/// Who holds a lock that someone holds. What the kernel says goes before what the file says: anyone can write a number.
fn holder_of(file: &File) -> Option<u32> {
    let named = named_pid(file);
    let (Ok(locks), Ok(found)) = (std::fs::read_to_string("/proc/locks"), file.metadata()) else { return named };
    let holders = flock_holders(&locks, found.ino());
    match named {
        Some(pid) if holders.is_empty() || holders.contains(&pid) => Some(pid),
        // Inode numbers repeat on other disks, so more than one candidate is none.
        _ => match holders[..] {
            [pid] => Some(pid),
            _ => None,
        },
    }
}

/// The first word of the file, if it is a number of a process.
fn named_pid(mut file: &File) -> Option<u32> {
    let mut text = [0; 32];
    file.rewind().ok()?;
    let length = file.read(&mut text).ok()?;
    let text = std::str::from_utf8(&text[..length]).ok()?;
    text.split_whitespace().next()?.parse().ok().filter(|pid| *pid > 0)
}

/// Processes that hold an exclusive flock on a file with this inode number: `1: FLOCK ADVISORY WRITE 812 08:01:2883 0 EOF`.
fn flock_holders(locks: &str, inode: u64) -> Vec<u32> {
    let holder = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [_, "FLOCK", _, "WRITE", pid, place, ..] = words[..] else { return None };
        let found: u64 = place.rsplit(':').next()?.parse().ok()?;
        if found == inode { pid.parse().ok().filter(|pid| *pid > 0) } else { None }
    };
    locks.lines().filter_map(holder).collect()
}

#[expect(
    clippy::disallowed_methods,
    reason = "between two looks at a lock, for which the system has no wait with a deadline"
)]
fn pause() {
    std::thread::sleep(Duration::from_millis(10));
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        io::{BufRead as _, BufReader},
        os::unix::fs::symlink,
        process::{Child, ChildStdin, Command, Stdio},
    };

    use super::*;

    const LOCK: &str = "THE_LOOP_TEST_LOCK";

    /// Another process that takes the lock, says so, and holds it until its input ends.
    struct Other {
        child: Child,
        said: String,
        _input: ChildStdin,
    }

    impl Other {
        fn start(path: &Path) -> Self {
            let mut child = Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "state::lock::tests::child_takes_the_lock", "--ignored", "--nocapture"])
                .env(LOCK, path)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            let input = child.stdin.take().unwrap();
            let lines = BufReader::new(child.stdout.take().unwrap()).lines();
            let said = lines.map(Result::unwrap).find_map(|line| line.split_once("said: ").map(|l| l.1.to_owned()));
            Self { child, said: said.unwrap(), _input: input }
        }

        fn kill(mut self) -> u32 {
            self.child.kill().unwrap();
            self.child.wait().unwrap();
            self.child.id()
        }
    }

    impl Drop for Other {
        fn drop(&mut self) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }

    #[test]
    #[ignore = "another process of the tests of this module"]
    fn child_takes_the_lock() {
        let Some(path) = std::env::var_os(LOCK) else { return };
        let taken = InstanceLock::acquire(Path::new(&path), std::process::id());
        println!("said: {}", taken.as_ref().map_or_else(ToString::to_string, |_| "held".to_owned()));
        let _ = io::stdin().read(&mut [0]);
    }

    #[test]
    fn st_02_whatever_the_file_says_a_lock_that_nobody_holds_is_free() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("service.pid");
        let mut living = Command::new("sleep").arg("600").stdin(Stdio::null()).spawn().unwrap();
        let foreign = living.id().to_string();
        let case = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/fixtures/cases/ST-02/pidfile.txt");
        let pid_1 = fs::read_to_string(case).unwrap();
        for content in ["", "garbage\n", &pid_1, "\0\0\0\0", "999999999999999999999", "-1", &foreign] {
            fs::write(&path, content).unwrap();
            assert_eq!(InstanceLock::state(&path), LockState::Free, "{content:?}");
            let lock = InstanceLock::acquire(&path, std::process::id()).unwrap();
            assert_eq!(InstanceLock::holder(&path), Some(std::process::id()), "{content:?}");
            assert_eq!(fs::read_to_string(&path).unwrap(), format!("{}\n", std::process::id()));
            drop(lock);
            assert_eq!(InstanceLock::holder(&path), None);
        }
        living.kill().unwrap();
        living.wait().unwrap();
    }

    #[test]
    fn st_02_of_two_processes_one_has_the_lock_and_the_other_names_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("service.pid");
        let first = Other::start(&path);
        assert_eq!(first.said, "held");
        assert_eq!(InstanceLock::holder(&path), Some(first.child.id()));
        let second = Other::start(&path);
        assert!(second.said.contains(&format!("held by process {}", first.child.id())), "{}", second.said);
        drop(second);

        let gone = first.kill();
        assert_eq!(fs::read_to_string(&path).unwrap(), format!("{gone}\n"));
        assert_eq!(InstanceLock::state(&path), LockState::Free);
        InstanceLock::acquire(&path, 1).unwrap();
    }

    #[test]
    fn st_02_two_starts_at_once_leave_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("service.pid");
        let others: Vec<Other> = std::thread::scope(|scope| {
            let starts: Vec<_> = (0..3).map(|_| scope.spawn(|| Other::start(&path))).collect();
            starts.into_iter().map(|start| start.join().unwrap()).collect()
        });
        assert_eq!(others.iter().filter(|other| other.said == "held").count(), 1);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn st_02_a_number_written_over_that_of_the_holder_is_not_believed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("service.pid");
        let holder = Other::start(&path);
        for content in ["1\n", "garbage", ""] {
            fs::write(&path, content).unwrap();
            assert_eq!(InstanceLock::state(&path), LockState::Held { pid: Some(holder.child.id()) }, "{content:?}");
        }
    }

    #[test]
    fn sec_6_a_linked_lock_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("service.pid");
        fs::write(folder.path().join("victim"), "untouched").unwrap();
        symlink(folder.path().join("victim"), &path).unwrap();
        assert!(matches!(InstanceLock::acquire(&path, 7), Err(LockError::Io { .. })));
        assert_eq!(fs::read_to_string(folder.path().join("victim")).unwrap(), "untouched");
    }
}
