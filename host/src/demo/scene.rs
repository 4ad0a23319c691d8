//! The demo's stage: a state root of its own, a tmux server of its own, and the program run as a person would run it.

use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    time::{Duration, Instant},
};

use serde_json::Value;

use super::{
    DemoError, DemoOptions,
    agent::{Entry, Settings},
};
use crate::eventlog::{self, Query};

/// How long a fact may take to show up, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// The person whom the demo's config authorizes.
pub(super) const PERSON: &str = "ada";

/// The stage.
pub(super) struct Scene {
    program: PathBuf,
    root: PathBuf,
    socket: String,
    /// Removed with its content when the demo ends, where it is the demo's own.
    own_folder: bool,
}

impl Scene {
    pub(super) fn set(options: &DemoOptions) -> Result<Self, DemoError> {
        let files = |action| move |source| DemoError::Files { action, source };
        match Command::new("tmux").arg("-V").stdout(Stdio::null()).stderr(Stdio::null()).status() {
            Ok(status) if status.success() => {}
            _ => return Err(DemoError::NoTmux),
        }
        let (root, own_folder) = match &options.root {
            Some(root) => {
                fs::create_dir_all(root).map_err(files("make its folder"))?;
                (root.clone(), false)
            }
            None => (
                tempfile::Builder::new().prefix("the-loop-demo-").tempdir().map_err(files("make its folder"))?.keep(),
                true,
            ),
        };
        let root = fs::canonicalize(&root).map_err(files("find its folder"))?;
        let scene = Self {
            program: options.program.clone(),
            socket: format!("the-loop-demo-{}", std::process::id()),
            root,
            own_folder,
        };
        fs::create_dir_all(scene.root.join("work")).map_err(files("make its folder"))?;
        fs::write(scene.config(), scene.config_text()).map_err(files("write its config"))?;
        Ok(scene)
    }

    fn config_text(&self) -> String {
        // JSON is YAML, so a path with any character in it stays one text.
        let quoted = |path: &Path| Value::from(path.display().to_string()).to_string();
        format!(
            "version: '1'\nstate: {{root: {root}}}\nservice: {{port: 0, autoStart: false}}\nrouting:\n  enabled: true\n  authorizedUsers: [{PERSON}]\n  \
             spawnOnUnmatched: labeled\n  defaultHarness: shell\n  harnessArgs: {{shell: [{program}, demo-agent]}}\n  spawnWorkdir: {work}\n  \
             tmux: {{socketName: {socket}}}\n",
            root = quoted(&self.root.join("state")),
            program = quoted(&self.program),
            work = quoted(&self.root.join("work")),
            socket = self.socket,
        )
    }

    pub(super) fn config(&self) -> PathBuf {
        self.root.join("config.yaml")
    }

    pub(super) fn log(&self) -> PathBuf {
        self.root.join("state/logs/events.jsonl")
    }

    /// Runs a verb as a person would, and gives what it printed.
    pub(super) fn run(&self, step: &'static str, arguments: &[&str]) -> Result<String, DemoError> {
        let output =
            self.verb(arguments).map_err(|source| DemoError::Files { action: "run its own program", source })?;
        if output.status.success() {
            Ok(String::from_utf8_lossy(&output.stdout).into_owned())
        } else {
            let problem = format!(
                "`the-loop {}` failed: {}",
                arguments.join(" "),
                String::from_utf8_lossy(&output.stderr).trim()
            );
            Err(DemoError::Step { step, problem })
        }
    }

    fn verb(&self, arguments: &[&str]) -> io::Result<Output> {
        Command::new(&self.program).arg("--config").arg(self.config()).args(arguments).stdin(Stdio::null()).output()
    }

    /// Runs tmux on the demo's own server.
    pub(super) fn tmux(&self, arguments: &[&str]) -> Result<String, DemoError> {
        let output = Command::new("tmux")
            .args(["-L", &self.socket])
            .args(arguments)
            .env_remove("TMUX")
            .output()
            .map_err(|source| DemoError::Files { action: "run tmux", source })?;
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    /// The records of the log after `seq`, oldest first.
    pub(super) fn records(&self, after: u64) -> Result<Vec<Value>, DemoError> {
        let found = eventlog::query(&self.log(), &Query { limit: None, ..Query::default() });
        let found = found.map_err(|error| DemoError::Step { step: "the event log", problem: error.to_string() })?;
        Ok(found.records.into_iter().filter(|record| seq(record) > after).collect())
    }

    /// Waits for a record after `seq` that `wanted` recognises; `unwanted` fails the step at once.
    pub(super) fn wait(
        &self,
        step: &'static str,
        after: u64,
        wanted: impl Fn(&Value) -> bool,
        unwanted: impl Fn(&Value) -> bool,
    ) -> Result<Value, DemoError> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let records = self.records(after)?;
            if let Some(wrong) = records.iter().find(|record| unwanted(record)) {
                return Err(DemoError::Step { step, problem: format!("the log shows what must not be: {wrong}") });
            }
            if let Some(found) = records.into_iter().find(|record| wanted(record)) {
                return Ok(found);
            }
            if Instant::now() >= deadline {
                return Err(DemoError::Step {
                    step,
                    problem: format!("no record of it within {} s", PATIENCE.as_secs()),
                });
            }
            pause();
        }
    }

    /// Waits until something is so.
    pub(super) fn wait_for(
        &self,
        step: &'static str,
        what: &str,
        mut is_so: impl FnMut() -> Result<bool, DemoError>,
    ) -> Result<(), DemoError> {
        let deadline = Instant::now() + PATIENCE;
        while !is_so()? {
            if Instant::now() >= deadline {
                let problem = format!("{} s were not enough for {what}", PATIENCE.as_secs());
                return Err(DemoError::Step { step, problem });
            }
            pause();
        }
        Ok(())
    }

    /// Waits until the agent's own file satisfies `wanted`, and gives its entries.
    pub(super) fn wait_agent(
        &self,
        step: &'static str,
        id: &str,
        wanted: impl Fn(&[Entry]) -> bool,
    ) -> Result<Vec<Entry>, DemoError> {
        let file = self.root.join("state/local/plugins/shell").join(format!("{id}.jsonl"));
        let settings =
            Settings::new(file, true).map_err(|error| DemoError::Step { step, problem: error.to_string() })?;
        let deadline = Instant::now() + PATIENCE;
        loop {
            // There is no file before the first prompt.
            let entries = settings.entries().unwrap_or_default();
            if wanted(&entries) {
                return Ok(entries);
            }
            if Instant::now() >= deadline {
                return Err(DemoError::Step {
                    step,
                    problem: format!("the agent's own file does not show it: {entries:?}"),
                });
            }
            pause();
        }
    }

    /// Says where to look.
    pub(super) fn tell_where(&self, out: &mut dyn Write, keep: bool) -> io::Result<()> {
        let name = "loop-local-demo-work-1";
        writeln!(out, "\n  attach to a session:  tmux -L {} attach -r -t ={name}", self.socket)?;
        writeln!(out, "  the event log:        {}", self.log().display())?;
        if keep {
            writeln!(
                out,
                "  kept; end it with:    the-loop --config {} stop && tmux -L {} kill-server",
                self.config().display(),
                self.socket
            )
        } else {
            writeln!(out, "  both are cleared now; run with --keep to look at them")
        }
    }

    /// Ends everything that was started and removes the files.
    pub(super) fn clear(&self) {
        // What does not end or go away here is in a folder and on a server of the demo's own.
        let _ = self.verb(&["stop"]);
        let _ = self.tmux(&["kill-server"]);
        if self.own_folder {
            let _ = fs::remove_dir_all(&self.root);
        }
    }
}

/// The number of a record.
pub(super) fn seq(record: &Value) -> u64 {
    record["seq"].as_u64().unwrap_or_default()
}

/// A look every few milliseconds at a fact with a deadline.
#[expect(
    clippy::disallowed_methods,
    reason = "the one wait between two looks at a fact; this thread runs nothing else"
)]
fn pause() {
    std::thread::sleep(Duration::from_millis(15));
}
