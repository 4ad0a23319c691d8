//! A host whose harness is the real Claude Code, with a model of its own; agents end with it.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;
use the_loop_tests::model::Model;

use crate::rig::{Host, clean, eventually, is, program, remote, text};

/// No real one: the model takes any.
const KEY: &str = "sk-ant-api03-0000000000-0000000000-0000000000";

/// What Claude Code is told so that it speaks to nobody but the model, and gives up soon.
const QUIET: [(&str, &str); 6] = [
    ("ANTHROPIC_API_KEY", KEY),
    ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
    ("CLAUDE_CODE_MAX_RETRIES", "2"),
    ("DISABLE_AUTOUPDATER", "1"),
    ("DISABLE_ERROR_REPORTING", "1"),
    ("DISABLE_TELEMETRY", "1"),
];

/// Claude Code as `make setup` installs it. Where it is missing, a test is skipped and says so, unless
/// `THE_LOOP_REQUIRE_AGENTS` is set.
pub(crate) fn claude_code() -> Option<PathBuf> {
    let arch = if cfg!(target_arch = "aarch64") { "arm64" } else { "x64" };
    let system = if cfg!(target_os = "macos") { "darwin" } else { "linux" };
    let package = format!("../node_modules/@anthropic-ai/claude-code-{system}-{arch}/claude");
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join(package);
    if program.is_file() {
        return Some(program.canonicalize().unwrap());
    }
    let missing = format!("{} is missing: run `make setup`", program.display());
    assert!(std::env::var_os("THE_LOOP_REQUIRE_AGENTS").is_none(), "{missing}");
    eprintln!("SKIPPED: {missing}");
    None
}

pub(crate) struct Session {
    pub(crate) host: Host,
    pub(crate) model: Model,
}

impl Session {
    /// With the real program; `None` where it is not installed.
    pub(crate) fn new() -> Option<Self> {
        let real = claude_code()?;
        Some(Self::with(|link| symlink(&real, link).unwrap()))
    }

    /// The same where each item has a checkout of its own.
    pub(crate) fn in_checkouts() -> Option<Self> {
        let real = claude_code()?;
        let routing = "workspace: {root: ./checkouts}";
        Some(Self::made(routing, |link| symlink(&real, link).unwrap()))
    }

    /// With whatever `install` puts at the path where `claude` is looked up.
    pub(crate) fn with(install: impl FnOnce(&Path)) -> Self {
        Self::made("", install)
    }

    fn made(routing: &str, install: impl FnOnce(&Path)) -> Self {
        let model = Model::start().unwrap();
        let names: Vec<&str> = QUIET.iter().map(|(name, _)| *name).collect();
        let passed = format!("env: {{sessionPassthrough: [ANTHROPIC_BASE_URL, {}]}}", names.join(", "));
        let mut host = Host::new(routing, &passed);
        remote(&host);
        let config = fs::read_to_string(host.config()).unwrap();
        let config = config.replace("defaultHarness: shell", "defaultHarness: claude");
        fs::write(host.config(), config.replace("resumeProbeSeconds: 1", "resumeProbeSeconds: 4")).unwrap();
        let bin = host.folder.path().join("bin");
        fs::create_dir(&bin).unwrap();
        install(&bin.join("claude"));
        let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
        host.set_env("PATH", Some(&path));
        host.set_env("ANTHROPIC_BASE_URL", Some(&model.url()));
        host.set_env("TMPDIR", host.folder.path().join("work").to_str());
        for (name, value) in QUIET {
            host.set_env(name, Some(value));
        }
        host.ok(&["start"]);
        Self { host, model }
    }

    /// An armed item with that title, which is a part of the first prompt.
    pub(crate) fn item(&self, title: &str) -> String {
        let new = ["items", "new", "--repo", "octo/hello", "--as", "octo-admin", "--label", "auto", "--title", title];
        self.host.ok(&new).trim().to_owned()
    }

    /// An item whose session has its task.
    pub(crate) fn started(&self, title: &str) -> String {
        let item = self.item(title);
        self.host.say(&item, "octo-admin", "the-loop:start-execution");
        self.host.wait_for(1, |record| is(record, "session.spawned") && record["work_item"] == *item);
        self.wait(&item, "its task at the model", || self.said(&item).len() == 1);
        item
    }

    /// What the model was told in an item's conversation.
    pub(crate) fn said(&self, item: &str) -> Vec<String> {
        self.model.said(&self.host.conversation(item))
    }

    /// How often the model was told `what` in an item's conversation.
    pub(crate) fn told(&self, item: &str, what: &str) -> usize {
        self.said(item).iter().map(|text| text.matches(what).count()).sum()
    }

    /// Waits for a fact, and shows the screen, the log and the model's view where it does not come.
    pub(crate) fn wait(&self, item: &str, what: &str, fact: impl FnMut() -> bool) {
        eventually(fact).unwrap_or_else(|| {
            let records = self.host.records();
            let telling = records.iter().filter(|record| !is(record, "api.request"));
            let log: Vec<String> = telling.map(Value::to_string).collect();
            let asked = self.model.asked();
            let texts = self.host.ok(&["deliveries", "--target", item, "--format", "jsonl"]);
            panic!(
                "no {what}\nscreen:\n{}\nmodel: {asked:#?}\nlog:\n{}\ndeliveries:\n{texts}",
                self.screen(item),
                log.join("\n")
            )
        });
    }

    /// What is known of the harness.
    pub(crate) fn state(&self, item: &str) -> Value {
        let shown = self.host.ok(&["sessions", "show", "--work-item", item, "--format", "json"]);
        serde_json::from_str::<Value>(&shown).unwrap()["harnessState"].clone()
    }

    pub(crate) fn wait_state(&self, item: &str, state: &str) {
        self.wait(item, state, || self.state(item)["state"] == state);
    }

    /// What the agent's terminal shows.
    pub(crate) fn screen(&self, item: &str) -> String {
        self.host.tmux(&["capture-pane", "-p", "-t", &format!("={}:", terminal(item))])
    }

    /// The same with what has scrolled away.
    pub(crate) fn history(&self, item: &str) -> String {
        self.host.tmux(&["capture-pane", "-p", "-S", "-", "-t", &format!("={}:", terminal(item))])
    }

    /// A key that a person presses in the agent's terminal.
    pub(crate) fn press(&self, item: &str, key: &str) {
        self.host.tmux(&["send-keys", "-t", &format!("={}:", terminal(item)), key]);
    }

    /// The receipts of an item's texts, oldest first.
    pub(crate) fn receipts(&self, item: &str) -> Vec<String> {
        let shown = self.host.ok(&["deliveries", "--target", item, "--format", "jsonl"]);
        let rows = shown.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let mut receipts: Vec<String> = rows.map(|row| row["receipt"].as_str().unwrap().to_owned()).collect();
        receipts.reverse();
        receipts
    }

    /// The pids of the agents that run, as their launchers wrote them down, newest last.
    pub(crate) fn pids(&self) -> Vec<i32> {
        let files = fs::read_dir(self.host.state().join("local/launch")).into_iter().flatten().flatten();
        let mut found: Vec<PathBuf> = files.map(|file| file.path()).collect();
        // Named after incarnations, which sort by time.
        found.sort();
        let status = found.iter().filter(|path| path.extension().is_some_and(|extension| extension == "status"));
        let read = |path: &PathBuf| -> Option<i32> {
            let status: Value = serde_json::from_slice(&fs::read(path).ok()?).ok()?;
            // The pid of one that has ended may be somebody else's by now.
            let runs = status["exitedAt"].is_null();
            i32::try_from(status["pid"].as_i64()?).ok().filter(|_| runs)
        };
        status.filter_map(read).collect()
    }

    /// What Claude Code has written down of an item's conversation.
    pub(crate) fn transcript(&self, item: &str) -> String {
        let name = format!("{}.jsonl", self.host.conversation(item));
        let folders = fs::read_dir(self.claude_folder().join("projects")).into_iter().flatten().flatten();
        folders.filter_map(|folder| fs::read_to_string(folder.path().join(&name)).ok()).collect()
    }

    /// The folder of Claude Code's own files.
    pub(crate) fn claude_folder(&self) -> PathBuf {
        self.host.folder.path().join(".claude")
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // The service first: it would bring up again what ends.
        let mut stop = Command::new(program());
        let stopped = clean(&mut stop, self.host.folder.path()).arg("--config").arg(self.host.config()).arg("stop");
        if let Ok(output) = stopped.output()
            && !output.status.success()
        {
            eprintln!("the host did not stop: {}", text(&output.stderr));
        }
        // An agent that loses its terminal takes seconds to end, and would write into a folder that is being removed.
        for pid in self.pids() {
            let _gone = nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::Signal::SIGTERM);
        }
        let ended = eventually(|| self.pids().is_empty());
        if ended.is_none() {
            eprintln!("agents still run: {:?}", self.pids());
        }
        self.host.tmux(&["kill-server"]);
    }
}

/// Whether a process runs.
pub(crate) fn runs(pid: i32) -> bool {
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), None).is_ok()
}

/// The name of an item's terminal session.
pub(crate) fn terminal(item: &str) -> String {
    format!("loop-{}", item.replace([':', '/', '#'], "-"))
}
