//! A host of a test's own: its state root, its tmux server, its port; everything is ended and removed with it.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    sync::atomic::{AtomicU32, Ordering},
    time::{Duration, Instant},
};

use serde_json::Value;
use tempfile::TempDir;

/// How long a fact may take to show up, on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(40);

/// The built binary: the runner of the tests builds it beside them.
pub(crate) fn program() -> PathBuf {
    let own = std::env::current_exe().unwrap();
    let program = own.ancestors().nth(2).unwrap().join("the-loop");
    assert!(program.is_file(), "{} is not there: build the workspace first", program.display());
    program
}

/// The environment of whoever runs the product: nothing of this machine but what a program needs.
pub(crate) fn clean<'a>(command: &'a mut Command, home: &Path) -> &'a mut Command {
    let path = std::env::var("PATH").unwrap_or_default();
    command
        .env_clear()
        .env("PATH", path)
        .env("HOME", home)
        .env("TMUX_TMPDIR", home)
        .env("LANG", "C.UTF-8")
        .stdin(Stdio::null())
}

pub(crate) struct Host {
    pub(crate) folder: TempDir,
    pub(crate) socket: String,
    environment: Vec<(String, String)>,
}

impl Host {
    /// A config with the demo agent as harness, the login `octo-admin` and the label `auto`; `more` is added to `routing`,
    /// `top` to the whole.
    pub(crate) fn new(more: &str, top: &str) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let folder = tempfile::Builder::new().prefix("loop").tempdir().unwrap();
        fs::create_dir(folder.path().join("work")).unwrap();
        let socket = format!("t{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::SeqCst));
        let host = Self { folder, socket, environment: Vec::new() };
        host.configure(more, top);
        host
    }

    pub(crate) fn configure(&self, more: &str, top: &str) {
        let agent = Value::from(program().display().to_string());
        let text = format!(
            "state: {{root: ./state}}\nservice: {{port: 0, autoStart: false}}\n{top}\nrouting:\n  enabled: true\n  authorizedUsers: [octo-admin]\n  autoExecuteLabel: auto\n  \
             spawnOnUnmatched: labeled\n  defaultHarness: shell\n  harnessArgs: {{shell: [{agent}, demo-agent]}}\n  spawnWorkdir: ./work\n  \
             tmux: {{socketName: {}, harnessKillGraceSeconds: 5, resumeProbeSeconds: 1}}\n  {more}\n",
            self.socket
        );
        fs::write(self.config(), text).unwrap();
    }

    pub(crate) fn with_env(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn set_env(&mut self, name: &str, value: Option<&str>) {
        self.environment.retain(|(key, _)| key != name);
        self.environment.extend(value.map(|value| (name.to_owned(), value.to_owned())));
    }

    pub(crate) fn config(&self) -> PathBuf {
        self.folder.path().join("config.yaml")
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    /// Runs a verb.
    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(program());
        clean(&mut command, self.folder.path()).envs(self.environment.iter().map(|(k, v)| (k, v)));
        command.arg("--config").arg(self.config()).args(arguments).current_dir(self.folder.path()).output().unwrap()
    }

    /// Runs a verb that must succeed, and gives what it printed.
    pub(crate) fn ok(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(output.status.success(), "the-loop {arguments:?}: {}{}", text(&output.stdout), text(&output.stderr));
        text(&output.stdout)
    }

    /// Runs a verb that must fail with `code`, and gives what it said.
    pub(crate) fn fails(&self, code: i32, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert_eq!(
            output.status.code(),
            Some(code),
            "the-loop {arguments:?}: {}{}",
            text(&output.stdout),
            text(&output.stderr)
        );
        text(&output.stderr) + &text(&output.stdout)
    }

    pub(crate) fn tmux(&self, arguments: &[&str]) -> String {
        let mut command = Command::new("tmux");
        clean(&mut command, self.folder.path());
        let output = command.args(["-L", &self.socket]).args(arguments).output().unwrap();
        text(&output.stdout).trim().to_owned()
    }

    /// The names of the live tmux sessions, sorted.
    pub(crate) fn terminals(&self) -> Vec<String> {
        let mut names: Vec<String> = self
            .tmux(&["list-panes", "-a", "-F", "#{pane_dead} #{session_name}"])
            .lines()
            .filter_map(|line| line.strip_prefix("0 ").map(str::to_owned))
            .collect();
        names.sort();
        names
    }

    pub(crate) fn records(&self) -> Vec<Value> {
        let log = fs::read_to_string(self.state().join("logs/events.jsonl")).unwrap_or_default();
        log.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    pub(crate) fn count(&self, wanted: impl Fn(&Value) -> bool) -> usize {
        self.records().iter().filter(|record| wanted(record)).count()
    }

    /// Waits for `times` records that `wanted` recognises.
    pub(crate) fn wait_for(&self, times: usize, wanted: impl Fn(&Value) -> bool) -> Vec<Value> {
        let mut found = Vec::new();
        eventually(|| {
            found = self.records().into_iter().filter(|record| wanted(record)).collect();
            found.len() >= times
        })
        .unwrap_or_else(|| {
            let out = fs::read_to_string(self.state().join("logs/service.out")).unwrap_or_default();
            panic!("{} of {times} records after {PATIENCE:?}; the log:\n{}\n{out}", found.len(), self.shown())
        });
        found
    }

    fn shown(&self) -> String {
        let records = self.records();
        let newest = &records[records.len().saturating_sub(40)..];
        newest.iter().map(|record| format!("{record}\n")).collect()
    }

    /// Opens an armed item of the local tracker, and gives its ref.
    pub(crate) fn item(&self, labels: &[&str]) -> String {
        let mut arguments =
            vec!["items", "new", "--repo", "octo/hello", "--title", "Sort the list", "--as", "octo-admin"];
        for label in labels {
            arguments.extend(["--label", label]);
        }
        self.ok(&arguments).trim().to_owned()
    }

    pub(crate) fn say(&self, item: &str, by: &str, body: &str) {
        self.ok(&["items", "comment", item, "--as", by, "--body", body]);
    }

    /// Starts a session by a comment, and waits until the agent has its task.
    pub(crate) fn started(&self, item: &str) {
        self.say(item, "octo-admin", "the-loop:start-execution");
        self.wait_for(1, |record| is(record, "session.spawned") && record["work_item"] == *item);
        let conversation = self.conversation(item);
        eventually(|| self.prompts(&conversation).len() == 1).expect("the agent has its task");
    }

    /// The conversation of an item's session, from its record.
    pub(crate) fn conversation(&self, item: &str) -> String {
        let slug = item.replace([':', '/', '#'], "-");
        let record = fs::read_to_string(self.state().join(format!("local/{slug}.json"))).unwrap();
        let record: Value = serde_json::from_str(&record).unwrap();
        record["harnessSessionId"].as_str().unwrap().to_owned()
    }

    /// What was said to an agent, from its own file.
    pub(crate) fn prompts(&self, conversation: &str) -> Vec<Value> {
        let file = self.state().join(format!("local/plugins/shell/{conversation}.jsonl"));
        let text = fs::read_to_string(file).unwrap_or_default();
        text.lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok())
            .filter(|entry| entry["kind"] == "prompt")
            .collect()
    }

    /// Every prompt of every agent.
    pub(crate) fn all_prompts(&self) -> Vec<Value> {
        let folder = self.state().join("local/plugins/shell");
        let files = fs::read_dir(folder).into_iter().flatten().flatten();
        files.flat_map(|file| self.prompts(file.path().file_stem().unwrap().to_str().unwrap())).collect()
    }

    pub(crate) fn pid(&self) -> Option<i32> {
        let service: Value =
            serde_json::from_str(&fs::read_to_string(self.state().join("local/service.json")).ok()?).ok()?;
        i32::try_from(service["pid"].as_i64()?).ok()
    }

    /// Kills the host as a crash would.
    pub(crate) fn kill(&self) {
        let pid = nix::unistd::Pid::from_raw(self.pid().expect("a host runs"));
        // One that died by itself is gone already.
        let _ = nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL);
        self.gone();
    }

    /// Waits until nobody holds the service's lock.
    pub(crate) fn gone(&self) {
        eventually(|| self.is_gone()).expect("the host ends");
    }

    /// Whether nobody holds the service's lock.
    pub(crate) fn is_gone(&self) -> bool {
        let lock = self.state().join("local/service.pid");
        fs::File::open(lock).is_ok_and(|file| file.try_lock().is_ok())
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // What is not there any more cannot be ended again.
        let _ = self.run(&["stop"]);
        self.tmux(&["kill-server"]);
    }
}

/// Git as the operator has it, with GitHub's address pointing at a folder of this test.
pub(crate) fn git(host: &Host, folder: &Path, args: &[&str]) -> String {
    let mut command = Command::new("git");
    let output = clean(&mut command, host.folder.path()).arg("-C").arg(folder).args(args).output().unwrap();
    assert!(output.status.success(), "git {args:?}: {}", text(&output.stderr));
    text(&output.stdout).trim().to_owned()
}

/// Makes `octo/hello` a repository with one commit.
pub(crate) fn remote(host: &Host) {
    let home = host.folder.path();
    let config = format!(
        "[user]\n name = Ada\n email = ada@example.org\n[init]\n defaultBranch = main\n[url \"{}/remotes/\"]\n insteadOf = https://github.com/\n",
        home.display()
    );
    fs::write(home.join(".gitconfig"), config).unwrap();
    let bare = home.join("remotes/octo/hello.git");
    fs::create_dir_all(&bare).unwrap();
    git(host, &bare, &["init", "--quiet", "--bare"]);
    let ada = home.join("ada");
    fs::create_dir(&ada).unwrap();
    git(host, &ada, &["init", "--quiet"]);
    fs::write(ada.join("list.txt"), "one\n").unwrap();
    git(host, &ada, &["add", "list.txt"]);
    git(host, &ada, &["commit", "--quiet", "-m", "begin"]);
    git(host, &ada, &["push", "--quiet", "https://github.com/octo/hello.git", "main"]);
}

pub(crate) fn is(record: &Value, kind: &str) -> bool {
    record["event"] == *kind
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Looks at a fact until it is so, or patience ends.
pub(crate) fn eventually(fact: impl FnMut() -> bool) -> Option<()> {
    within(PATIENCE, fact)
}

/// Looks at a fact until it is so, or the time is over.
pub(crate) fn within(time: Duration, mut fact: impl FnMut() -> bool) -> Option<()> {
    let deadline = Instant::now() + time;
    while Instant::now() < deadline {
        if fact() {
            return Some(());
        }
        pause();
    }
    None
}

/// Between two looks at a fact with a deadline.
#[expect(clippy::disallowed_methods, reason = "the one wait between two polls of a fact")]
fn pause() {
    std::thread::sleep(Duration::from_millis(10)); // poll interval, with a deadline around it
}
