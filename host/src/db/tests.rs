//! Tests of the database, by what they are about.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use futures::future::join_all;
use jiff::Timestamp;
use the_loop_plugin_api::{DeliveryId, EventId};

use super::*;

mod durability;
mod soundness;
mod tables;

struct Home {
    folder: tempfile::TempDir,
}

impl Home {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("host.db")
    }

    fn open(&self) -> Db {
        Db::open(&self.path()).unwrap()
    }

    /// Names and bytes of everything in the folder.
    fn everything(&self) -> Vec<(String, Vec<u8>)> {
        let mut found: Vec<(String, Vec<u8>)> = fs::read_dir(self.folder.path())
            .unwrap()
            .map(|entry| entry.unwrap())
            .map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap()))
            .collect();
        found.sort();
        found
    }
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn event(second: i64) -> NewInbox {
    NewInbox {
        id: EventId::generate(),
        source: "webhook".to_owned(),
        received_at: at(second),
        payload: format!("{{\"n\":{second}}}"),
        max_bytes: 1 << 20,
        max_pending: 1_000_000,
    }
}

fn text_for(target: &str, second: i64) -> NewDelivery {
    NewDelivery {
        id: DeliveryId::generate(),
        target: target.to_owned(),
        source: "webhook".to_owned(),
        actor: Some("ada".to_owned()),
        text: format!("text {second}"),
        event: Some(EventId::generate()),
        answer: None,
        at: at(second),
    }
}

const PLACE: &str = "THE_LOOP_TEST_DB";

/// Another process, which runs the ignored test `name` on the database at `path`.
fn child(name: &str, path: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &format!("db::tests::durability::{name}"), "--ignored", "--nocapture"])
        .env(PLACE, path)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// The events that a process says it has journaled, until `enough` of them or until it ends.
fn said(child: &mut Child, enough: usize) -> Vec<EventId> {
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    lines.filter_map(|line| line.split_once("journaled ")?.1.parse().ok()).take(enough).collect()
}
