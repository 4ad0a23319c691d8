//! [`StateRoot`]: where everything is, and that it is ours alone.

use std::{
    fs::{self, DirBuilder, OpenOptions, Permissions},
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

use jiff::Timestamp;
use nix::unistd::{AccessFlags, access};

use super::{StateError, aside::set_aside, check_name, durable};

/// The version of the layout of the folders, kept in `local/version` (STA-2). Records have versions of their own.
pub const LAYOUT_VERSION: u32 = 1;

/// Only what travels to another machine, and the config, can be committed (STA-3).
const GITIGNORE: &str = "\
# Written by the-loop. Only portable/ and the config may be committed; the rest belongs to this machine.
/*
!/.gitignore
!/cli-config.yaml
!/cli-config.schema.json
!/portable/
/portable/.*
/portable/*.damaged-*
";

/// Says in a folder what of it may be committed (STA-3), where nothing says so yet.
///
/// # Errors
/// When it cannot be written.
pub fn keep_out_of_git(folder: &Path) -> Result<(), StateError> {
    let path = folder.join(".gitignore");
    let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
    match made.and_then(|mut file| file.write_all(GITIGNORE.as_bytes())) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(StateError::io("write", &path, error)),
        _ => Ok(()),
    }
}

/// The folder that holds all state (`state.root`), and the places in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateRoot {
    root: PathBuf,
}

impl StateRoot {
    /// Opens the root at `path`, making what is missing, and removes what writers that were killed left behind. Several
    /// processes may do so at once.
    ///
    /// # Errors
    /// When the root or a folder in it is a symbolic link, is no folder or cannot be written, and when a newer version of
    /// the program made it. A full disk is an error only while something is missing.
    pub fn open(path: &Path) -> Result<Self, StateError> {
        // Taking the components drops a trailing slash, with which a link would be followed unseen.
        let path: PathBuf = path.components().collect();
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(|error| StateError::io("make the folder", parent, error))?;
        }
        ensure_folder(&path)?;
        let root = fs::canonicalize(&path).map_err(|error| StateError::io("find", &path, error))?;
        let state = Self { root };
        // The version is looked at before anything is made, so that a newer layout is left as it is.
        let known = state.read_version()?;
        for folder in state.folders() {
            ensure_folder(&folder)?;
            access(&folder, AccessFlags::W_OK | AccessFlags::X_OK)
                .map_err(|errno| StateError::io("write in", &folder, io::Error::from(errno)))?;
            durable::sweep(&folder).map_err(|error| StateError::io("list", &folder, error))?;
        }
        state.write_once(&state.root.join(".gitignore"), GITIGNORE)?;
        if known.is_none() {
            let text = format!("{LAYOUT_VERSION}\n");
            let version = state.version_file();
            durable::write(&version, text.as_bytes()).map_err(|error| StateError::io("write", &version, error))?;
        }
        Ok(state)
    }

    /// The root itself, absolute.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Records of work items that travel to another machine.
    #[must_use]
    pub fn portable(&self) -> PathBuf {
        self.root.join("portable")
    }

    /// What belongs to this machine, and the session records.
    #[must_use]
    pub fn local(&self) -> PathBuf {
        self.root.join("local")
    }

    /// Records of standing sessions.
    #[must_use]
    pub fn standing(&self) -> PathBuf {
        self.local().join("standing")
    }

    /// Plans of the processes that were started (TMX-7).
    #[must_use]
    pub fn launch(&self) -> PathBuf {
        self.local().join("launch")
    }

    /// Hook payloads that came while the host was down.
    #[must_use]
    pub fn spool(&self) -> PathBuf {
        self.local().join("spool")
    }

    /// What channels keep.
    #[must_use]
    pub fn channels(&self) -> PathBuf {
        self.root.join("channels")
    }

    /// The event log and the output of processes.
    #[must_use]
    pub fn logs(&self) -> PathBuf {
        self.root.join("logs")
    }

    /// The database.
    #[must_use]
    pub fn db(&self) -> PathBuf {
        self.local().join("host.db")
    }

    /// A lock that one process holds: `local/<name>.pid`, such as `service`, `poll` and `gh-webhook`.
    #[must_use]
    pub fn lock(&self, name: &str) -> PathBuf {
        self.local().join(format!("{name}.pid"))
    }

    /// The lock of the one scheduler.
    #[must_use]
    pub fn scheduler_lock(&self) -> PathBuf {
        self.local().join("loops").join("scheduler.lock")
    }

    /// A folder of a plugin's own, which is there when this returns.
    ///
    /// # Errors
    /// When the name cannot be a folder's, or the folder cannot be made.
    pub fn plugin_folder(&self, name: &str) -> Result<PathBuf, StateError> {
        check_name(name)?;
        let folders = self.local().join("plugins");
        ensure_folder(&folders)?;
        let folder = folders.join(name);
        ensure_folder(&folder)?;
        Ok(folder)
    }

    fn folders(&self) -> [PathBuf; 8] {
        let loops = self.local().join("loops");
        [
            self.portable(),
            self.local(),
            self.standing(),
            self.launch(),
            self.spool(),
            loops,
            self.channels(),
            self.logs(),
        ]
    }

    fn version_file(&self) -> PathBuf {
        self.local().join("version")
    }

    /// The layout's version, `None` where there is none yet. A version that cannot be read is set aside and written again:
    /// every record still has a version of its own.
    fn read_version(&self) -> Result<Option<u32>, StateError> {
        let path = self.version_file();
        let text = match fs::read(&path) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                return Ok(None);
            }
            Err(error) => return Err(StateError::io("read", &path, error)),
        };
        match text.trim().parse::<u32>() {
            Ok(found) if found > LAYOUT_VERSION => {
                Err(StateError::Newer { path, found: found.into(), supported: LAYOUT_VERSION })
            }
            Ok(found) if found > 0 => Ok(Some(found)),
            _ => {
                set_aside(&path, Timestamp::now()).map_err(|error| StateError::io("set aside", &path, error))?;
                Ok(None)
            }
        }
    }

    fn write_once(&self, path: &Path, text: &str) -> Result<(), StateError> {
        match fs::symlink_metadata(path) {
            Ok(_) => Ok(()),
            Err(_) => durable::write(path, text.as_bytes()).map_err(|error| StateError::io("write", path, error)),
        }
    }
}

/// Makes `path` a folder for its owner alone; its parent exists.
fn ensure_folder(path: &Path) -> Result<(), StateError> {
    match DirBuilder::new().mode(0o700).create(path) {
        Ok(()) => return Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(StateError::io("make the folder", path, error)),
    }
    let found = fs::symlink_metadata(path).map_err(|error| StateError::io("look at", path, error))?;
    if found.is_symlink() {
        return Err(StateError::Symlink { path: path.to_owned() });
    }
    if !found.is_dir() {
        return Err(StateError::NotAFolder { path: path.to_owned() });
    }
    if found.permissions().mode() & 0o777 != 0o700 {
        fs::set_permissions(path, Permissions::from_mode(0o700))
            .map_err(|error| StateError::io("make private", path, error))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::{
        os::unix::{fs::symlink, process::CommandExt as _},
        process::Command,
    };

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn sta_3_folders_are_the_owners_alone_even_where_they_were_not() {
        let base = tempfile::tempdir().unwrap();
        let path = base.path().join("deep/.the-loop");
        fs::create_dir_all(path.join("local")).unwrap();
        fs::set_permissions(path.join("local"), Permissions::from_mode(0o755)).unwrap();
        let state = StateRoot::open(&path).unwrap();
        let plugin = state.plugin_folder("tmux").unwrap();
        for folder in state.folders().iter().chain([&state.root, &plugin]) {
            assert_eq!(mode(folder), 0o700, "{}", folder.display());
        }
        assert_eq!(StateRoot::open(&path).unwrap(), state);
        assert!(matches!(state.plugin_folder("../../x"), Err(StateError::BadName { .. })));
    }

    #[test]
    fn sta_3_only_what_travels_and_the_config_can_be_committed() {
        let base = tempfile::tempdir().unwrap();
        let state = StateRoot::open(&base.path().join(".the-loop")).unwrap();
        let files = [
            ".the-loop/.gitignore",
            ".the-loop/cli-config.yaml",
            ".the-loop/portable/a.json",
            ".the-loop/portable/a.json.damaged-20261201T000000Z",
            ".the-loop/portable/.aside-x",
            ".the-loop/local/host.db",
            ".the-loop/logs/events.jsonl",
            ".the-loop/channels/slack.json",
            ".the-loop/surprise",
        ];
        for file in files {
            fs::OpenOptions::new().create(true).append(true).open(base.path().join(file)).unwrap();
        }
        assert!(state.root().join("local/version").is_file());
        let git = |arguments: &[&str]| {
            let run = Command::new("git")
                .args(arguments)
                .current_dir(base.path())
                .env("GIT_CONFIG_GLOBAL", "/dev/null")
                .env("GIT_CONFIG_SYSTEM", "/dev/null")
                .output()
                .unwrap();
            assert!(run.status.success(), "{run:?}");
            String::from_utf8(run.stdout).unwrap()
        };
        git(&["init", "-q"]);
        let seen = git(&["ls-files", "--others", "--exclude-standard"]);
        assert_eq!(
            seen.lines().collect::<Vec<_>>(),
            [".the-loop/.gitignore", ".the-loop/cli-config.yaml", ".the-loop/portable/a.json"]
        );
    }

    #[test]
    fn sec_6_a_linked_root_or_folder_is_refused() {
        let base = tempfile::tempdir().unwrap();
        let real = base.path().join("real");
        fs::create_dir(&real).unwrap();
        symlink(&real, base.path().join("linked")).unwrap();
        for spelling in ["linked", "linked/"] {
            let refused = StateRoot::open(&base.path().join(spelling));
            assert!(matches!(refused, Err(StateError::Symlink { .. })), "{refused:?}");
        }
        let elsewhere = base.path().join("elsewhere");
        fs::create_dir(&elsewhere).unwrap();
        symlink(&elsewhere, real.join("local")).unwrap();
        let refused = StateRoot::open(&real);
        assert!(matches!(&refused, Err(StateError::Symlink { path }) if path.ends_with("local")), "{refused:?}");
        assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
    }

    #[test]
    fn sta_2_a_newer_layout_is_left_as_it_is() {
        let base = tempfile::tempdir().unwrap();
        let root = base.path().join(".the-loop");
        fs::create_dir_all(root.join("local")).unwrap();
        fs::write(root.join("local/version"), "2\n").unwrap();
        let refused = StateRoot::open(&root);
        assert!(matches!(refused, Err(StateError::Newer { found: 2, supported: 1, .. })), "{refused:?}");
        assert!(!root.join("portable").exists() && !root.join(".gitignore").exists());
    }

    #[test]
    fn sta_1_a_torn_layout_version_is_set_aside_and_written_again() {
        let base = tempfile::tempdir().unwrap();
        let state = StateRoot::open(base.path()).unwrap();
        fs::write(state.version_file(), "\0\0").unwrap();
        StateRoot::open(base.path()).unwrap();
        assert_eq!(fs::read_to_string(state.version_file()).unwrap(), "1\n");
        assert_eq!(super::super::aside::list(&state.local()).unwrap().len(), 1);
    }

    const READ_ONLY: &str = "THE_LOOP_TEST_READ_ONLY";

    #[test]
    #[ignore = "the process, without a superuser's rights, of the test below"]
    fn child_opens_a_read_only_root() {
        let Some(path) = std::env::var_os(READ_ONLY) else { return };
        let refused = StateRoot::open(Path::new(&path));
        assert!(matches!(refused, Err(StateError::NotWritable { .. })), "{refused:?}");
        println!("said: {}", refused.unwrap_err());
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn sta_4_a_read_only_root_is_refused_by_name() {
        let base = tempfile::tempdir().unwrap();
        let state = StateRoot::open(&base.path().join("root")).unwrap();
        let logs = state.logs();
        // A superuser may write everywhere, so another user looks, at folders that are its own.
        let mut child = Command::new("/proc/self/exe");
        if nix::unistd::geteuid().is_root() {
            let nobody = 65534;
            child.uid(nobody).gid(nobody);
            fs::set_permissions(base.path(), Permissions::from_mode(0o755)).unwrap();
            for folder in state.folders().iter().chain([&state.root]) {
                std::os::unix::fs::chown(folder, Some(nobody), Some(nobody)).unwrap();
            }
            std::os::unix::fs::chown(state.version_file(), Some(nobody), Some(nobody)).unwrap();
            std::os::unix::fs::chown(&logs, Some(0), Some(0)).unwrap();
        } else {
            fs::set_permissions(&logs, Permissions::from_mode(0o500)).unwrap();
        }
        let run = child
            .args(["--exact", "state::layout::tests::child_opens_a_read_only_root", "--ignored", "--nocapture"])
            .env(READ_ONLY, state.root())
            .current_dir("/")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&run.stdout);
        assert!(said.contains(&format!("said: {} cannot be written", logs.display())), "{run:?}");
    }

    #[test]
    fn a_file_in_the_way_is_named() {
        let base = tempfile::tempdir().unwrap();
        fs::write(base.path().join("logs"), "").unwrap();
        let refused = StateRoot::open(base.path());
        assert!(matches!(&refused, Err(StateError::NotAFolder { path }) if path.ends_with("logs")), "{refused:?}");
    }
}
