//! A disk that is full, under the whole host (STA-4, ST-01): a small file system of the test's own, in a mount namespace of
//! its own, so that nothing else sees it and nothing of it is left.

use std::{
    fs,
    path::PathBuf,
    process::{Command, Stdio},
};

use crate::{
    drill::judge::{files_parse, receipt_of},
    recorders::Recorders,
    rig::{Host, eventually, text},
    wire::{SECRET, comment, idle_host, listener, post},
};

/// Set by the outer test: this process may mount.
const INSIDE: &str = "THE_LOOP_TEST_MAY_MOUNT";
const INNER: &str = "disk::inside_a_namespace_of_its_own";

/// Room for a host and a little more.
const SIZE: &str = "size=12m";

/// Runs the inner test where it may mount: as root, or as root of a user namespace of its own.
#[test]
fn sta_4_st_01_a_full_disk_loses_nothing_takes_nothing_and_passes() {
    let may = |flags: &&str| {
        let probe = ["sh", "-c", "mount -t tmpfs -o size=1m none /mnt"];
        let mut command = Command::new("unshare");
        command.arg(flags).args(probe).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    let Some(flags) = ["-m", "-Urm"].into_iter().find(may) else {
        eprintln!("SKIPPED: no file system can be mounted here, neither as root nor in a user namespace");
        return;
    };
    let mut command = Command::new("unshare");
    command.arg(flags).arg(std::env::current_exe().unwrap()).args(["--exact", INNER, "--ignored", "--nocapture"]);
    let output = command.env(INSIDE, "1").stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
    assert!(text(&output.stdout).contains("1 passed"), "{}", text(&output.stdout));
}

/// A host whose state root is a small file system.
struct SmallDisk {
    host: Host,
    ballast: PathBuf,
}

impl SmallDisk {
    fn new() -> Self {
        let host = idle_host("");
        fs::create_dir(host.state()).unwrap();
        let mounted =
            Command::new("mount").args(["-t", "tmpfs", "-o", SIZE, "none"]).arg(host.state()).status().unwrap();
        assert!(mounted.success(), "the state root is not mounted");
        let ballast = host.state().join("ballast");
        Self { host, ballast }
    }

    fn fill(&self) {
        assert!(fs::write(&self.ballast, vec![0; 1 << 26]).is_err(), "the disk is small");
    }

    fn free(&self) {
        fs::remove_file(&self.ballast).unwrap();
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // What is not there any more cannot be ended again.
        let _ = self.host.run(&["stop"]);
        self.host.tmux(&["kill-server"]);
        let _ = Command::new("umount").arg("-l").arg(self.host.state()).status();
    }
}

#[test]
#[ignore = "run by the test above, where it may mount"]
fn inside_a_namespace_of_its_own() {
    if std::env::var_os(INSIDE).is_none() {
        return;
    }
    let disk = SmallDisk::new();
    let host = &disk.host;
    let recorders = Recorders::of(host);
    host.ok(&["start"]);
    let address = listener(host);
    let send = |number: u64, id: u64, body: &str| {
        let body = comment(number, id, body).to_string();
        post(&address, "issue_comment", &format!("disk-{number}-{id}"), SECRET, body.as_bytes())
    };
    let item = "github:octo/hello#7";
    assert_eq!(send(7, 0, "the-loop:start-execution"), 202);
    eventually(|| recorders.of_item(item).iter().any(|agent| !agent.bytes.is_empty())).expect("the agent has its task");

    disk.fill();
    // What the write-ahead log has allocated already may take a few more.
    let mut accepted: Vec<String> = Vec::new();
    let refused = (1..400).find_map(|id| {
        let mark = format!("mark-{id:03}.");
        match send(7, id, &format!("{mark} {}", "x".repeat(8_000))) {
            202 => accepted.push(mark),
            other => return Some((id, other)),
        }
        None
    });
    let (refused_id, status) = refused.expect("a full disk takes no more in");
    assert_eq!(status, 503, "the sender is told to come again");
    let said = host.run(&["status"]);
    let shown = text(&said.stdout) + &text(&said.stderr);
    assert!(!said.status.success() && shown.contains("host.db") && shown.contains("full"), "{shown}");
    assert_ne!(send(8, 0, "the-loop:start-execution"), 202, "no start that cannot be recorded");
    for verb in ["start", "stop", "pause"] {
        let item = if verb == "start" { "github:octo/hello#9" } else { item };
        let output = host.run(&["sessions", verb, "--work-item", item, "--no-comment"]);
        assert!(!output.status.success(), "{verb} could not be recorded: {}", text(&output.stdout));
    }
    assert_eq!(host.terminals(), ["loop-github-octo-hello-7"], "none was started, none was ended");
    let refused_mark = format!("mark-{refused_id:03}.");
    assert_eq!(arrived(&recorders, item, &refused_mark), 0);
    // What is in the pane is on record, if only as begun.
    let seen = accepted.iter().filter(|mark| arrived(&recorders, item, mark) > 0);
    for mark in seen {
        assert!(receipt_of(host, mark).is_some(), "{mark} arrived and is on no record");
    }

    disk.free();
    eventually(|| host.run(&["status"]).status.success()).expect("it recovers by itself");
    assert_eq!(send(7, refused_id, &refused_mark), 202, "the same delivery acts once it is sent again");
    accepted.push(refused_mark);
    settled_once(host, &recorders, item, &accepted);

    disk.fill();
    host.kill();
    let output = host.run(&["start"]);
    let shown = text(&output.stdout) + &text(&output.stderr);
    assert!(output.status.success() || shown.contains("space") || shown.contains("full"), "{shown}");
    files_parse(&host.state());
    disk.free();
    host.ok(&["start"]);
    eventually(|| host.run(&["status"]).status.success()).expect("it recovers by itself");
    let body = comment(7, 900, "mark-900.").to_string();
    assert_eq!(post(&listener(host), "issue_comment", "disk-7-900", SECRET, body.as_bytes()), 202);
    accepted.push("mark-900.".to_owned());
    settled_once(host, &recorders, item, &accepted);
    assert_eq!(recorders.of_item(item).len(), 1, "the agent outlived all of it, and is the only one");
}

fn arrived(recorders: &Recorders, item: &str, mark: &str) -> usize {
    let agents = recorders.of_item(item);
    agents.iter().map(|agent| text(&agent.bytes).matches(mark).count()).sum()
}

/// Everything accepted arrives once; where it is not known whether it did, at most once.
fn settled_once(host: &Host, recorders: &Recorders, item: &str, accepted: &[String]) {
    for mark in accepted {
        let mut found = None;
        eventually(|| {
            found = receipt_of(host, mark);
            found.as_deref().is_some_and(|receipt| receipt != "queued")
        })
        .unwrap_or_else(|| panic!("{mark} is {found:?}"));
        let times = arrived(recorders, item, mark);
        match found.as_deref() {
            Some("delivered") => assert_eq!(times, 1, "{mark}"),
            Some("uncertain") => assert!(times <= 1, "{mark} came {times} times"),
            other => panic!("{mark} is {other:?}"),
        }
    }
}
