//! A tmux server, a home folder and a runner of a test's own; nothing of them is left behind.

use std::{
    collections::{BTreeMap, VecDeque},
    ffi::OsString,
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::{Mutex, OnceLock},
    time::{Duration, Instant},
};

use async_trait::async_trait;
use nix::{sys::signal::kill, unistd::Pid};
use tempfile::TempDir;
use the_loop::launcher::{LaunchStatus, SessionPlan, read_status, write_plan};
use the_loop_plugin_api::{
    Delivery, DeliveryId, IncarnationId, Runner as _, RunnerHandle, SpawnOrder, Termination,
    delivery::{DeliveryOutcome, HoldReason, InputGate, Readiness},
    registry::{HostKey, claim},
    runner::{SpawnError, SpawnParts},
};
use the_loop_plugin_tmux::{TmuxOptions, TmuxRunner};

pub(crate) const RECORDER: &str = env!("CARGO_BIN_EXE_recorder");
pub(crate) const TERMINAL: &str = env!("CARGO_BIN_EXE_terminal");

/// The authority that the host would have.
pub(crate) fn key() -> &'static HostKey {
    static KEY: OnceLock<HostKey> = OnceLock::new();
    KEY.get_or_init(|| claim().expect("only the rig claims the registry").key)
}

/// How long a fact may take to show up, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);
/// Between two looks at a fact.
const BETWEEN_LOOKS: Duration = Duration::from_millis(10);

/// Looks at a fact until it is so. Fails with `what` once patience ends; `what` is asked then, so it may tell what was seen
/// instead.
pub(crate) async fn poll_until<T>(what: impl Fn() -> String, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(Instant::now() < deadline, "{}", what());
        tokio::time::sleep(BETWEEN_LOOKS).await; // poll interval, with a deadline around it
    }
}

/// Waits for a fact that can be had at once.
pub(crate) async fn wait_for<T>(what: &str, mut fact: impl FnMut() -> Option<T>) -> T {
    poll_until(|| format!("{what} did not come about"), async || fact()).await
}

/// The test's world.
pub(crate) struct Rig {
    folder: TempDir,
    options: TmuxOptions,
    runner: OnceLock<TmuxRunner>,
}

impl Rig {
    /// With nothing in the user's configuration.
    pub(crate) fn new() -> Self {
        Self::with_config("")
    }

    /// With this `~/.tmux.conf`.
    pub(crate) fn with_config(config: &str) -> Self {
        let folder = tempfile::Builder::new().prefix("loop-tmux-").tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        for name in ["home", "bin", "sockets", "work"] {
            fs::create_dir(path(name)).unwrap();
        }
        fs::set_permissions(path("sockets"), fs::Permissions::from_mode(0o700)).unwrap();
        fs::write(path("home/.tmux.conf"), config).unwrap();
        let host_path = std::env::var("PATH").unwrap();
        let variables = [
            ("PATH", format!("{}:{host_path}", path("bin").display())),
            ("HOME", path("home").display().to_string()),
            ("LANG", "C.UTF-8".to_owned()),
            ("SHELL", "/bin/sh".to_owned()),
            ("TMUX_TMPDIR", path("sockets").display().to_string()),
            // A surrounding tmux and a secret of the host's, which must not matter and must not pass.
            ("TMUX", "/nonexistent/socket,1,0".to_owned()),
            ("TMUX_PANE", "%0".to_owned()),
            ("GITHUB_TOKEN", "canary-secret".to_owned()),
        ];
        let variables = variables.map(|(name, value)| (OsString::from(name), OsString::from(value)));
        let mut options = TmuxOptions::new("suite".to_owned(), variables);
        options.patience = Duration::from_secs(20);
        Self { folder, options, runner: OnceLock::new() }
    }

    /// Changes how the runner is made; before its first use.
    pub(crate) fn set(&mut self, change: impl FnOnce(&mut TmuxOptions)) {
        assert!(self.runner.get().is_none(), "the runner is in use");
        change(&mut self.options);
    }

    pub(crate) fn options(&self) -> TmuxOptions {
        self.options.clone()
    }

    pub(crate) fn runner(&self) -> &TmuxRunner {
        self.runner.get_or_init(|| TmuxRunner::new(self.options.clone()))
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Puts a program in front of all others.
    pub(crate) fn program(&self, name: &str, script: &str) {
        let aside = self.path("bin").join(format!(".{name}"));
        fs::write(&aside, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&aside, fs::Permissions::from_mode(0o755)).unwrap();
        fs::rename(aside, self.path("bin").join(name)).unwrap();
    }

    /// Takes it away again.
    pub(crate) fn remove_program(&self, name: &str) {
        fs::remove_file(self.path("bin").join(name)).unwrap();
    }

    /// The real tmux.
    pub(crate) fn real_tmux() -> PathBuf {
        let path = std::env::var_os("PATH").unwrap();
        std::env::split_paths(&path)
            .map(|folder| folder.join("tmux"))
            .find(|tmux| tmux.is_file())
            .expect("tmux is installed")
    }

    /// A `tmux` that writes down what it is called with, a line a process, arguments parted by `\x1f`.
    pub(crate) fn log_tmux(&self) {
        let script = format!(
            "line=; for word; do line=\"$line$word$(printf '\\037')\"; done\nprintf '%s\\n' \"$line\" >> {}\nexec {} \"$@\"",
            self.path("tmux.log").display(),
            Self::real_tmux().display()
        );
        self.program("tmux", &script);
    }

    /// What was called since the last time that this was asked.
    pub(crate) fn take_log(&self) -> Vec<Vec<String>> {
        let log = self.path("tmux.log");
        let text = fs::read_to_string(&log).unwrap_or_default();
        let _none = fs::remove_file(log);
        text.lines().map(|line| line.split('\x1f').map(str::to_owned).collect()).collect()
    }

    /// A tmux command line, run by the test itself.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(Self::real_tmux());
        command.env_clear().envs(&self.options.environment).arg("-u");
        if !self.options.socket_name.is_empty() {
            command.args(["-L", &self.options.socket_name]);
        }
        command.args(args);
        command
    }

    pub(crate) fn try_tmux(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    pub(crate) fn tmux(&self, args: &[&str]) -> String {
        let output = self.try_tmux(args);
        assert!(output.status.success(), "tmux {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
    }

    /// An order to start a recorder through the launcher.
    pub(crate) fn order(&self, name: &str, flags: &[&str]) -> (SpawnOrder, PathBuf) {
        let out = self.path(&format!("out-{name}-{}", IncarnationId::generate()));
        fs::create_dir(&out).unwrap();
        let mut argv = vec![RECORDER.to_owned(), "--out".to_owned(), out.display().to_string()];
        argv.extend(flags.iter().map(|flag| (*flag).to_owned()));
        (self.order_of(name, argv, BTreeMap::from([("PLANNED".to_owned(), "yes".to_owned())]), &out), out)
    }

    /// An order to start any agent through the launcher, with its files in `out`.
    pub(crate) fn order_of(
        &self,
        name: &str,
        argv: Vec<String>,
        env: BTreeMap<String, String>,
        out: &Path,
    ) -> SpawnOrder {
        let plan = out.join("plan.json");
        let cwd = self.path("work");
        let mark = out.join("mark");
        let status = out.join("status.json");
        write_plan(&plan, &SessionPlan { argv, env, cwd: cwd.clone(), status, mark: Some(mark.clone()) }).unwrap();
        SpawnOrder::new(
            key(),
            SpawnParts {
                name: name.to_owned(),
                incarnation: IncarnationId::generate(),
                cwd,
                command: vec![TERMINAL.to_owned(), "launch".to_owned(), plan.display().to_string()],
                watch: vec![TERMINAL.to_owned(), "pane-watch".to_owned(), mark.display().to_string()],
                mark,
            },
        )
    }

    /// Starts a recorder, without waiting for it.
    pub(crate) async fn try_spawn(&self, name: &str, flags: &[&str]) -> Result<Session<'_>, SpawnError> {
        let (order, out) = self.order(name, flags);
        let handle = self.runner().spawn(&order).await?;
        Ok(Session { rig: self, handle, out })
    }

    /// Starts a recorder that takes input.
    pub(crate) async fn spawn(&self, name: &str) -> Session<'_> {
        self.spawn_with(name, &[]).await
    }

    /// Starts a recorder with flags, and waits until it is ready, and bracketed paste is seen unless it is left off.
    pub(crate) async fn spawn_with(&self, name: &str, flags: &[&str]) -> Session<'_> {
        let session = self.try_spawn(name, flags).await.unwrap();
        session.wait_for_file("ready").await;
        if !flags.contains(&"--no-bracketed") {
            session.wait_for_file("mark").await;
        }
        session
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        let panes = self.try_tmux(&["list-panes", "-a", "-F", "#{pane_pid}"]).stdout;
        let _none_ran = self.try_tmux(&["kill-server"]);
        // Where a test went wrong, a server may run at the other socket of the rig's own folder.
        self.options.socket_name = String::new();
        let _none_ran = self.try_tmux(&["kill-server"]);
        // Launchers write down how their agents ended; the folder is removed after the last of them.
        let deadline = Instant::now() + Duration::from_secs(10);
        for pid in String::from_utf8_lossy(&panes).lines().filter_map(|pid| pid.parse().ok()) {
            while !is_gone(Pid::from_raw(pid)) && Instant::now() < deadline {
                std::thread::yield_now();
            }
        }
    }
}

/// Ended, or waiting to be taken note of by whoever inherited it.
pub(crate) fn is_gone(pid: Pid) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    kill(pid, None).is_err() || stat.contains(") Z ")
}

/// A hosted recorder.
pub(crate) struct Session<'a> {
    pub(crate) rig: &'a Rig,
    pub(crate) handle: RunnerHandle,
    pub(crate) out: PathBuf,
}

impl Session<'_> {
    pub(crate) fn name(&self) -> &str {
        &self.handle.name
    }

    /// A part of the handle's address.
    pub(crate) fn part(&self, name: &str) -> String {
        match &self.handle.data[name] {
            serde_json::Value::String(text) => text.clone(),
            other => other.to_string(),
        }
    }

    pub(crate) async fn wait_for_file(&self, name: &str) -> String {
        let path = self.out.join(name);
        wait_for(name, || path.exists().then(|| fs::read_to_string(&path).ok()).flatten()).await
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        fs::read(self.out.join("bytes")).unwrap_or_default()
    }

    /// Waits until the recorder has read exactly this.
    pub(crate) async fn wait_for_bytes(&self, expected: &[u8]) {
        wait_for(&format!("{} bytes in {}", expected.len(), self.name()), || {
            let found = self.bytes();
            (found.len() >= expected.len()).then_some(found)
        })
        .await;
        let found = self.bytes();
        assert!(found == expected, "{}: {} bytes instead of {}", self.name(), found.len(), expected.len());
    }

    pub(crate) async fn deliver(&self, text: &str) -> DeliveryOutcome {
        self.deliver_when(text, Readiness::Signals, Gate::open()).await
    }

    pub(crate) async fn deliver_when(&self, text: &str, readiness: Readiness, gate: Gate) -> DeliveryOutcome {
        self.rig.runner().deliver(&self.handle, &delivery(text, readiness, gate)).await
    }

    pub(crate) async fn wait_for_end(&self) -> LaunchStatus {
        let path = self.out.join("status.json");
        wait_for("the recorded end", || read_status(&path).ok().flatten().filter(|status| status.exited_at.is_some()))
            .await
    }
}

pub(crate) fn delivery(text: &str, readiness: Readiness, gate: Gate) -> Delivery {
    Delivery::new(key(), DeliveryId::generate(), text.to_owned(), readiness, std::sync::Arc::new(gate))
}

/// What the recorder gets of a delivered text.
pub(crate) fn pasted(text: &str) -> Vec<u8> {
    [b"\x1b[200~", text.as_bytes(), b"\x1b[201~\r"].concat()
}

pub(crate) fn termination(grace: Duration) -> Termination {
    Termination::new(key(), grace)
}

/// A harness's word, scripted: one answer a question, then yes.
#[derive(Default)]
pub(crate) struct Gate {
    answers: Mutex<VecDeque<Result<(), HoldReason>>>,
    meanwhile: Option<Box<dyn Fn() + Send + Sync>>,
}

impl Gate {
    pub(crate) fn open() -> Self {
        Self::default()
    }

    pub(crate) fn says(answers: impl IntoIterator<Item = Result<(), HoldReason>>) -> Self {
        Self { answers: Mutex::new(answers.into_iter().collect()), meanwhile: None }
    }

    /// Says yes while something happens: after the runner's own gates, before the bytes.
    pub(crate) fn meanwhile(act: impl Fn() + Send + Sync + 'static) -> Self {
        Self { answers: Mutex::default(), meanwhile: Some(Box::new(act)) }
    }
}

#[async_trait]
impl InputGate for Gate {
    async fn check(&self) -> Result<(), HoldReason> {
        if let Some(act) = &self.meanwhile {
            act();
        }
        self.answers.lock().unwrap().pop_front().unwrap_or(Ok(()))
    }
}
