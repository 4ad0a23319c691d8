//! The small programs that run inside a session's terminal: the launcher and the watcher of its output (TMX-7, DEL-5).
//!
//! The runner starts `the-loop launch PLAN` in a pane. The launcher gives the agent exactly the environment of the plan,
//! starts it, and writes down how it ended, which tmux often loses. `the-loop pane-watch MARK` reads what the terminal
//! prints and says by a file whether bracketed paste is on, which tmux cannot be asked.

mod environment;
mod plan;
mod run;
mod status;
mod watch;

pub use self::{
    environment::session_environment,
    plan::{PlanError, SessionPlan, read_plan, write_files, write_plan},
    run::launch,
    status::{LaunchStatus, read_status},
    watch::watch,
};

use std::{
    fs,
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
};

/// Writes a file that only its owner can read, whole or not at all.
fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut aside = path.as_os_str().to_owned();
    aside.push(format!(".{}.new", std::process::id()));
    let written = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&aside)
        .and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_all()))
        .and_then(|()| fs::rename(&aside, path));
    if written.is_err() {
        // Nothing can be done about a file that cannot be removed either; the error says what happened.
        let _left = fs::remove_file(&aside);
    }
    written
}
