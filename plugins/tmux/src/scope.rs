//! A tmux server that outlives the host (TMX-8). A server that a systemd service starts belongs to that service and ends
//! with it, so it is started in a scope of its own.

use std::{ffi::OsStr, path::PathBuf};

use crate::options::TmuxOptions;

/// What to put before the tmux command that starts the server; `None` where the host is no service or the program is missing.
pub(crate) fn prefix(options: &TmuxOptions) -> Option<Vec<String>> {
    if !options.under_systemd {
        return None;
    }
    let program = find(options.environment.get(OsStr::new("PATH"))?)?;
    let words = [program.to_str()?, "--user", "--scope", "--quiet", "--collect", "--"];
    Some(words.map(str::to_owned).to_vec())
}

fn find(path: &OsStr) -> Option<PathBuf> {
    std::env::split_paths(path).map(|folder| folder.join("systemd-run")).find(|program| program.is_file())
}
