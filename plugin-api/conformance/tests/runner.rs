//! The runner suite finds each fault that it is there to find, and none in a runner that keeps the contract.
//!
//! The fake hosts its programs on pipes, which is enough for the suite's recorders.

use std::{
    collections::BTreeMap,
    io::{Read, Write},
    process::{Child, ChildStdin, Command, Stdio},
    sync::{Arc, Mutex, MutexGuard},
    thread,
    time::{Duration, Instant},
};

use async_trait::async_trait;
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::{Value, json};
use the_loop_conformance::{Bench, Kit, Report, runner};
use the_loop_plugin_api::{
    Delivery, Liveness, PluginContext, Runner, RunnerHandle, SpawnOrder, Termination,
    delivery::{DeliveryOutcome, HoldReason},
    register,
    registry::{ConfigFragment, PluginError},
    runner::{CaptureOptions, Occupant, RunnerDescription, RunnerError, Screen, SpawnError, Terminated},
};

register!(RunnerKind, "pipes", "hosts programs on pipes", ConfigFragment::new("/test/pipes", schema), build);

fn schema() -> Value {
    json!({"type": "object", "properties": {"fault": {"type": "string"}}})
}

fn build(context: PluginContext) -> Result<Arc<dyn Runner>, PluginError> {
    let config: BTreeMap<String, String> =
        context.config().map_err(|error| PluginError::new("the config of the fake", error))?;
    Ok(Arc::new(Pipes { fault: config.get("fault").cloned().unwrap_or_default(), sessions: Mutex::default() }))
}

struct Pipes {
    fault: String,
    sessions: Mutex<BTreeMap<String, Session>>,
}

struct Session {
    child: Child,
    input: Option<ChildStdin>,
    shown: Arc<Mutex<Vec<u8>>>,
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ended_already = self.child.kill();
        let _ended = self.child.wait();
    }
}

impl Session {
    fn dead(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    fn screen(&self) -> String {
        String::from_utf8_lossy(&self.shown.lock().unwrap_or_else(|held| held.into_inner())).into_owned()
    }

    fn write(&mut self, bytes: &[u8]) -> bool {
        self.input.as_mut().is_some_and(|input| input.write_all(bytes).and_then(|()| input.flush()).is_ok())
    }
}

impl Pipes {
    fn has(&self, fault: &str) -> bool {
        self.fault == fault
    }

    fn sessions(&self) -> MutexGuard<'_, BTreeMap<String, Session>> {
        self.sessions.lock().unwrap_or_else(|held| held.into_inner())
    }

    fn find(&self, name: &str) -> Option<String> {
        let sessions = self.sessions();
        if self.has("matches prefixes") {
            return sessions.keys().find(|key| key.starts_with(name)).cloned();
        }
        sessions.contains_key(name).then(|| name.to_owned())
    }

    /// What the handle's own session says; none when another stands in its place.
    fn own<T>(&self, handle: &RunnerHandle, of: impl FnOnce(&mut Session) -> T) -> Option<T> {
        let mut sessions = self.sessions();
        let session = sessions.get_mut(&handle.name)?;
        (handle.data == json!(session.child.id())).then(|| of(session))
    }
}

#[async_trait]
impl Runner for Pipes {
    async fn describe(&self) -> RunnerDescription {
        RunnerDescription { version: Some("1".to_owned()), address: "here".to_owned(), problem: None }
    }

    async fn survey(&self) -> Option<Vec<Occupant>> {
        let mut sessions = self.sessions();
        let look = |(name, session): (&String, &mut Session)| Occupant {
            name: name.clone(),
            dead: session.dead(),
            incarnation: None,
            data: json!(session.child.id()),
        };
        Some(sessions.iter_mut().map(look).collect())
    }

    async fn probe(&self, name: &str, handle: Option<&RunnerHandle>) -> Liveness {
        let Some(name) = self.find(name) else { return Liveness::Absent };
        let mut sessions = self.sessions();
        let Some(session) = sessions.get_mut(&name) else { return Liveness::Absent };
        let ours = self.has("trusts names") || handle.is_some_and(|handle| handle.data == json!(session.child.id()));
        if session.dead() { Liveness::Dead { ours } } else { Liveness::Live { ours } }
    }

    async fn spawn(&self, order: &SpawnOrder) -> Result<RunnerHandle, SpawnError> {
        if !order.cwd().is_dir() {
            return Err(SpawnError::NoFolder { path: order.cwd().to_owned() });
        }
        let mut sessions = self.sessions();
        if let Some(session) = sessions.get_mut(order.name()) {
            if !session.dead() && !self.has("spawns over") {
                let attach = self.attach(order.name(), true).join(" ");
                return Err(SpawnError::Occupied { name: order.name().to_owned(), attach });
            }
            sessions.remove(order.name());
        }
        let (program, args) =
            order.command().split_first().ok_or_else(|| SpawnError::Failed { reason: "no command".to_owned() })?;
        let mut child = Command::new(program)
            .args(args)
            .current_dir(order.cwd())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| SpawnError::Failed { reason: error.to_string() })?;
        let shown = Arc::new(Mutex::new(Vec::new()));
        if let Some(mut output) = child.stdout.take() {
            let shown = Arc::clone(&shown);
            thread::spawn(move || {
                let mut byte = [0];
                while output.read_exact(&mut byte).is_ok() {
                    shown.lock().unwrap_or_else(|held| held.into_inner()).push(byte[0]);
                }
            });
        }
        let handle = RunnerHandle {
            runner: "pipes".to_owned(),
            name: order.name().to_owned(),
            incarnation: order.incarnation(),
            data: json!(child.id()),
        };
        let input = child.stdin.take();
        sessions.insert(order.name().to_owned(), Session { child, input, shown });
        Ok(handle)
    }

    async fn deliver(&self, handle: &RunnerHandle, delivery: &Delivery) -> DeliveryOutcome {
        let gone = || DeliveryOutcome::Gone { found: "nothing".to_owned() };
        match self.own(handle, |session| (session.dead(), session.screen().contains("\u{1b}[?2004h"))) {
            None | Some((true, _)) => return gone(),
            Some((false, false)) if !self.has("never asks") => return DeliveryOutcome::Held(HoldReason::NotReady),
            Some((false, _)) => {}
        }
        if !self.has("never asks")
            && let Err(reason) = delivery.gate().check().await
        {
            return DeliveryOutcome::Held(reason);
        }
        let mut text = delivery.text().to_owned();
        if self.has("cuts texts") {
            text.truncate(4096);
        }
        if self.has("sends lines") {
            text = text.replace('\n', "\r");
        }
        let pasted = format!("\u{1b}[200~{text}\u{1b}[201~");
        if self.own(handle, |session| session.write(pasted.as_bytes())) != Some(true) {
            return gone();
        }
        if !self.has("never asks")
            && !self.has("asks once")
            && let Err(reason) = delivery.gate().check().await
        {
            return DeliveryOutcome::Unsubmitted(reason);
        }
        match self.own(handle, |session| session.write(b"\r")) {
            Some(true) => DeliveryOutcome::Delivered,
            _ => DeliveryOutcome::Uncertain { error: "the return was not taken".to_owned() },
        }
    }

    async fn capture(&self, handle: &RunnerHandle, _options: CaptureOptions) -> Result<Screen, RunnerError> {
        self.own(handle, |session| Screen { text: session.screen(), cursor: None, size: None })
            .ok_or_else(|| RunnerError::Gone { name: handle.name.clone() })
    }

    async fn terminate(&self, handle: &RunnerHandle, order: &Termination) -> Result<Terminated, RunnerError> {
        let gone = || RunnerError::Gone { name: handle.name.clone() };
        let Some(pid) = self.own(handle, |session| (!session.dead()).then(|| session.child.id())).ok_or_else(gone)?
        else {
            return Ok(Terminated::AlreadyGone);
        };
        let pid = Pid::from_raw(i32::try_from(pid).map_err(|_| gone())?);
        let _gone_already = kill(pid, Signal::SIGTERM);
        let end = Instant::now() + order.grace();
        while Instant::now() < end {
            if self.own(handle, Session::dead).unwrap_or(true) {
                return Ok(Terminated::Gracefully);
            }
            tokio::time::sleep(Duration::from_millis(5)).await; // poll interval, with a deadline around it
        }
        let _gone_already = kill(pid, Signal::SIGKILL);
        Ok(Terminated::Forced)
    }

    async fn kill(&self, handle: &RunnerHandle, _order: &Termination) -> Result<(), RunnerError> {
        let not_ours = || RunnerError::NotOurs { name: handle.name.clone() };
        if !self.has("trusts names") {
            self.own(handle, |_| ()).ok_or_else(not_ours)?;
        }
        self.sessions().remove(&handle.name).map(drop).ok_or_else(not_ours)
    }

    fn agent_pid(&self, handle: &RunnerHandle) -> Option<u32> {
        self.own(handle, |session| (!session.dead()).then(|| session.child.id())).flatten()
    }

    fn attach(&self, name: &str, read_only: bool) -> Vec<String> {
        vec!["attach".to_owned(), if read_only { "-r" } else { "-w" }.to_owned(), name.to_owned()]
    }
}

async fn found(fault: &str, patience: Duration) -> Report {
    let case = runner::Case { grace: Duration::from_millis(500), ..runner::Case::default() };
    let bench = Bench::new(json!({"fault": fault})).with_patience(patience);
    runner::check(Kit::get(), "pipes", &bench, &case).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn har_8_a_runner_that_keeps_the_contract_passes() {
    found("", Duration::from_secs(20)).await.assert();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn har_8_each_fault_of_a_runner_is_found_under_its_rule() {
    for (fault, rule) in [
        ("matches prefixes", "TMX-2"),
        ("trusts names", "TMX-12"),
        ("spawns over", "TMX-4"),
        ("cuts texts", "DEL-4"),
        ("sends lines", "DEL-1"),
        ("asks once", "DEL-5"),
        ("never asks", "DEL-5"),
    ] {
        let report = found(fault, Duration::from_millis(700)).await;
        assert!(report.broken().contains(&rule), "{fault}: {:?}", report.broken());
    }
}
