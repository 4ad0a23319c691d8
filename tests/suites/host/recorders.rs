//! Recorders in the panes of a test's host: the far end of every text, where what arrived is counted.

use std::{
    fs,
    path::{Path, PathBuf},
};

use nix::{sys::signal::kill, unistd::Pid};

use crate::rig::{Host, text};

const PASTE: &str = "\x1b[200~";
const END: &str = "\x1b[201~";

/// Where the recorders of a host write.
pub(crate) struct Recorders {
    folder: PathBuf,
}

/// One recorder: one agent process, from its start to its end.
pub(crate) struct Recorder {
    pub(crate) item: String,
    pub(crate) pid: i32,
    pub(crate) bytes: Vec<u8>,
    pub(crate) live: bool,
}

/// A text that a recorder got.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Paste {
    pub(crate) text: String,
    /// Whether a return came behind it.
    pub(crate) submitted: bool,
}

impl Recorders {
    /// Makes recorders the agents of a host that has not started yet.
    pub(crate) fn of(host: &Host) -> Self {
        let folder = host.folder.path().join("recorders");
        fs::create_dir(&folder).unwrap();
        let config = fs::read_to_string(host.config()).unwrap();
        let (before, rest) = config.split_once("harnessArgs: {shell: [").unwrap();
        let after = rest.split_once(']').unwrap().1;
        // Each process has a folder of its own: a second agent over a first would not hide it.
        let script = format!("exec {} --out {}/$$", env!("CARGO_BIN_EXE_recorder"), folder.display());
        fs::write(host.config(), format!("{before}harnessArgs: {{shell: [sh, -c, '{script}']{after}")).unwrap();
        Self { folder }
    }

    /// Every recorder that ever took up its terminal.
    pub(crate) fn all(&self) -> Vec<Recorder> {
        let folders = fs::read_dir(&self.folder).unwrap().flatten();
        folders.filter_map(|entry| recorder(&entry.path())).collect()
    }

    /// Those of one item.
    pub(crate) fn of_item(&self, item: &str) -> Vec<Recorder> {
        self.all().into_iter().filter(|recorder| recorder.item == item).collect()
    }

    /// The processes that live.
    pub(crate) fn live(&self) -> Vec<i32> {
        self.all().iter().filter(|recorder| recorder.live).map(|recorder| recorder.pid).collect()
    }
}

fn recorder(folder: &Path) -> Option<Recorder> {
    if !folder.join("ready").exists() {
        return None;
    }
    let environment = fs::read(folder.join("env")).ok()?;
    let item =
        text(&environment).split('\0').find_map(|row| row.strip_prefix("THE_LOOP_WORK_ITEM=").map(str::to_owned))?;
    let pid = fs::read_to_string(folder.join("pid")).ok()?.parse().ok()?;
    // A number may be given to another process; that one is not started with this folder.
    let arguments = text(&fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default());
    let live = kill(Pid::from_raw(pid), None).is_ok() && arguments.contains(&folder.display().to_string());
    Some(Recorder { item, pid, bytes: fs::read(folder.join("bytes")).ok()?, live })
}

impl Recorder {
    /// The texts that it got, in order.
    ///
    /// # Errors
    /// What is wrong, when it got anything but whole pastes, each submitted before the next begins. Returns alone are fine:
    /// they submit what a killed host left in the composer, and an empty composer takes them for nothing.
    pub(crate) fn pastes(&self) -> Result<Vec<Paste>, String> {
        let bytes = std::str::from_utf8(&self.bytes).map_err(|error| format!("{}: {error}", self.item))?;
        let mut rest = bytes.trim_start_matches('\r');
        let mut found: Vec<Paste> = Vec::new();
        while !rest.is_empty() {
            let wrong = || format!("{}: no whole paste at {:?}", self.item, rest.chars().take(80).collect::<String>());
            if found.last().is_some_and(|paste| !paste.submitted) {
                return Err(format!("{}: glued to the paste before it: {rest:?}", self.item));
            }
            let (text, after) = rest.strip_prefix(PASTE).and_then(|rest| rest.split_once(END)).ok_or_else(wrong)?;
            rest = after.trim_start_matches('\r');
            found.push(Paste { text: text.to_owned(), submitted: rest.len() < after.len() });
        }
        Ok(found)
    }
}
