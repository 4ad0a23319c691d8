//! What the system says of processes: who is whose child, who has the terminal, who is still the one he was.

use std::{fs, path::Path};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};

/// One process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) pid: u32,
    pub(crate) parent: u32,
    pub(crate) group: i32,
    /// What all processes of one terminal session share.
    pub(crate) session: String,
    /// The process group that has the terminal.
    pub(crate) foreground: i32,
    /// When it started, in the system's spelling; with the pid, who it is.
    pub(crate) started: String,
    /// It has ended and nobody has taken note.
    pub(crate) zombie: bool,
}

/// A process that runs; not one that has ended and waits to be taken note of.
pub(crate) fn find(pid: u32) -> Option<Process> {
    let found = if has_proc() { read_stat(pid) } else { by_ps(&["-p", &pid.to_string()]).pop() };
    found.filter(|process| !process.zombie)
}

/// All processes that run.
pub(crate) fn all() -> Vec<Process> {
    let mut found = if has_proc() {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        entries.filter_map(|entry| read_stat(entry.file_name().to_str()?.parse().ok()?)).collect()
    } else {
        by_ps(&["-A"])
    };
    found.retain(|process| !process.zombie);
    found
}

/// The agent in a pane: the child of the pane's process, which is the launcher. A pane's process without a child is taken
/// for the agent itself.
pub(crate) fn agent(pane_pid: u32) -> Option<Process> {
    let leader = find(pane_pid)?;
    child(pane_pid).or(Some(leader))
}

fn child(parent: u32) -> Option<Process> {
    // Linux keeps this list; without it all processes are looked through.
    match fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")) {
        Ok(list) => list.split_whitespace().filter_map(|pid| find(pid.parse().ok()?)).min_by_key(|child| child.pid),
        Err(_) => all().into_iter().filter(|process| process.parent == parent).min_by_key(|child| child.pid),
    }
}

/// Sends a signal, if the process is still the one that it was.
pub(crate) fn signal(process: &Process, signal: Signal) -> bool {
    let same = find(process.pid).is_some_and(|now| now.started == process.started);
    same && i32::try_from(process.pid).is_ok_and(|pid| kill(Pid::from_raw(pid), signal).is_ok())
}

/// Whether the process still runs.
pub(crate) fn runs(process: &Process) -> bool {
    find(process.pid).is_some_and(|now| now.started == process.started)
}

fn has_proc() -> bool {
    Path::new("/proc/self/stat").exists()
}

fn read_stat(pid: u32) -> Option<Process> {
    parse_stat(pid, &fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// `pid (name) state ppid pgrp session tty tpgid … starttime …`; the name may hold anything.
fn parse_stat(pid: u32, stat: &str) -> Option<Process> {
    let fields: Vec<&str> = stat.get(stat.rfind(')')? + 1..)?.split_whitespace().collect();
    Some(Process {
        pid,
        parent: fields.get(1)?.parse().ok()?,
        group: fields.get(2)?.parse().ok()?,
        session: (*fields.get(3)?).to_owned(),
        foreground: fields.get(5)?.parse().ok()?,
        started: (*fields.get(19)?).to_owned(),
        zombie: matches!(*fields.first()?, "Z" | "X"),
    })
}

/// For systems without `/proc`. There the terminal's name stands for the session: `sess` is not a number everywhere.
fn by_ps(which: &[&str]) -> Vec<Process> {
    const COLUMNS: &str = "pid=,ppid=,pgid=,tpgid=,stat=,tty=,lstart=";
    #[expect(clippy::disallowed_methods, reason = "the runner asks the system about its own agents' processes")]
    let output = std::process::Command::new("ps").args(which).args(["-o", COLUMNS]).env("LC_ALL", "C").output();
    let Ok(output) = output else { return Vec::new() };
    String::from_utf8_lossy(&output.stdout).lines().filter_map(parse_ps).collect()
}

fn parse_ps(line: &str) -> Option<Process> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    Some(Process {
        pid: fields.first()?.parse().ok()?,
        parent: fields.get(1)?.parse().ok()?,
        group: fields.get(2)?.parse().ok()?,
        foreground: fields.get(3)?.parse().ok()?,
        zombie: fields.get(4)?.starts_with('Z'),
        session: (*fields.get(5)?).to_owned(),
        started: fields.get(6..)?.join(" "),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_brackets_and_blanks_does_not_shift_the_fields() {
        let stat = "12 (a) b (c) S 3 4 5 34816 6 4194304 1 2 3 4 5 6 7 8 20 0 1 0 98765 1 2";
        let process = parse_stat(12, stat).unwrap();
        assert_eq!((process.parent, process.group, process.foreground, process.zombie), (3, 4, 6, false));
        assert_eq!((process.session.as_str(), process.started.as_str()), ("5", "98765"));
    }

    #[test]
    fn both_ways_of_looking_agree() {
        let pid = std::process::id();
        let own = find(pid).unwrap();
        let listed = by_ps(&["-p", &pid.to_string()]).pop().unwrap();
        assert_eq!((listed.pid, listed.parent, listed.group), (own.pid, own.parent, own.group));
        assert_eq!((listed.foreground, listed.zombie), (own.foreground, own.zombie));
        assert!(!listed.started.is_empty());
        assert!(all().contains(&own));
    }

    #[test]
    fn tmx_5_a_process_that_is_not_the_one_any_more_is_not_signalled() {
        let mut own = find(std::process::id()).unwrap();
        own.started = "another".to_owned();
        assert!(!signal(&own, Signal::SIGCONT) && !runs(&own));
    }
}
