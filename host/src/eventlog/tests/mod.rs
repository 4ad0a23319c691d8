//! Tests of the log as a whole, on real files.

mod following;
mod reading;
mod writing;

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;
use tempfile::TempDir;

use super::{Event, EventLog, EventType, LogOptions, Query, query};

/// A log in a folder of its own.
struct Bench {
    folder: TempDir,
}

impl Bench {
    fn new() -> anyhow::Result<Self> {
        Ok(Self { folder: tempfile::tempdir()? })
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("logs/events.jsonl")
    }

    fn open(&self) -> anyhow::Result<EventLog> {
        self.open_rotating(0, 0)
    }

    fn open_rotating(&self, max_bytes: u64, keep: u32) -> anyhow::Result<EventLog> {
        Ok(EventLog::open(options(&self.path(), max_bytes, keep))?)
    }

    /// Puts text into the log as another program would.
    fn write(&self, text: impl AsRef<[u8]>) -> anyhow::Result<()> {
        fs::create_dir_all(self.folder.path().join("logs"))?;
        Ok(fs::write(self.path(), text)?)
    }

    fn all(&self) -> anyhow::Result<Vec<Value>> {
        Ok(query(&self.path(), &Query::default())?.records)
    }
}

fn options(path: &Path, max_bytes: u64, keep: u32) -> LogOptions {
    LogOptions { path: path.to_path_buf(), source: "test".to_owned(), max_bytes, keep, enabled: true }
}

/// A record that says `text`.
fn note(text: &str) -> Event {
    Event::new(EventType::HostWarning).with("detail", text)
}

fn details(records: &[Value]) -> Vec<&str> {
    records.iter().filter_map(|record| record["detail"].as_str()).collect()
}

fn numbers(records: &[Value]) -> Vec<u64> {
    records.iter().filter_map(|record| record["seq"].as_u64()).collect()
}

/// One test of this program in a process of its own.
fn alone(test: &str, name: &str, value: &str) -> anyhow::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["--exact", &format!("eventlog::tests::{test}"), "--nocapture"]).env(name, value);
    Ok(command)
}

/// Runs one test alone to its end.
fn run_alone(test: &str, name: &str, value: &str) -> anyhow::Result<()> {
    let output = alone(test, name, value)?.output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    anyhow::ensure!(output.status.success() && text.contains("1 passed"), "{test} with {name}={value}: {text}");
    Ok(())
}

/// Waits for a fact.
fn eventually(what: &str, mut fact: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !fact() {
        assert!(Instant::now() < deadline, "{what} did not come true");
        thread::park_timeout(Duration::from_millis(5));
    }
}
