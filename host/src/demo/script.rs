//! What the demo shows, step by step.

use std::io::Write;

use serde_json::Value;

use super::{
    DemoError,
    agent::{Entry, Kind},
    scene::{PERSON, Scene, seq},
};

const ITEM: &str = "local:demo/work#1";
const SESSION: &str = "loop-local-demo-work-1";

/// Plays the whole script.
pub(super) fn play(scene: &Scene, out: &mut dyn Write) -> Result<(), DemoError> {
    let mut play = Play { scene, out, last: 0, conversation: String::new() };
    play.start_the_host()?;
    play.arm_an_item()?;
    play.refuse_a_stranger()?;
    play.start_by_the_person()?;
    play.deliver_a_comment()?;
    play.pause_and_resume()?;
    play.ask_and_answer()?;
    play.kill_the_host()?;
    play.stop_and_start_again()
}

struct Play<'a> {
    scene: &'a Scene,
    out: &'a mut dyn Write,
    /// The number of the last record that was told.
    last: u64,
    conversation: String,
}

impl Play<'_> {
    /// Tells a step, citing what proves it.
    fn tell(&mut self, what: &str, proof: &str) -> Result<(), DemoError> {
        writeln!(self.out, "  {what:<66} {proof}").map_err(|source| DemoError::Files { action: "print", source })
    }

    fn cite(&mut self, what: &str, record: &Value) -> Result<(), DemoError> {
        self.last = self.last.max(seq(record));
        self.tell(what, &format!("seq {} {}", seq(record), record["event"].as_str().unwrap_or_default()))
    }

    fn wait(&self, step: &'static str, wanted: impl Fn(&Value) -> bool) -> Result<Value, DemoError> {
        self.scene.wait(step, self.last, wanted, |_| false)
    }

    fn comment(&self, step: &'static str, by: &str, body: &str) -> Result<(), DemoError> {
        self.scene.run(step, &["items", "comment", ITEM, "--as", by, "--body", body]).map(drop)
    }

    fn command(&mut self, step: &'static str, keyword: &str, effect: &str) -> Result<Value, DemoError> {
        self.comment(step, PERSON, keyword)?;
        self.wait(step, |record| {
            is(record, "control.command") && record["effect"] == effect && record["actor"] == PERSON
        })
    }

    fn start_the_host(&mut self) -> Result<(), DemoError> {
        self.scene.run("starting the host", &["start"])?;
        let started = self.wait("starting the host", |record| is(record, "server.started"))?;
        self.cite("the host runs", &started)
    }

    fn arm_an_item(&mut self) -> Result<(), DemoError> {
        let step = "arming an item";
        self.scene.run(
            step,
            &[
                "items",
                "new",
                "--repo",
                "demo/work",
                "--title",
                "Sort the list",
                "--body",
                "Please sort it.",
                "--as",
                PERSON,
            ],
        )?;
        self.scene.run(step, &["items", "label", ITEM, "the-loop: auto-execute", "--as", PERSON])?;
        let waits = self.wait(step, |record| is(record, "dispatch.dropped") && record["reason"] == "awaiting-start")?;
        self.cite("an item is made and armed by its label; it waits for a start", &waits)
    }

    fn refuse_a_stranger(&mut self) -> Result<(), DemoError> {
        let step = "refusing a stranger";
        self.comment(step, "mallory", "the-loop:start-execution")?;
        let acted = |record: &Value| {
            let kind = record["event"].as_str().unwrap_or_default();
            kind.starts_with("session.") || kind == "control.command"
        };
        let refused = |record: &Value| {
            is(record, "routing.dropped") && record["reason"] == "unauthorized-actor" && record["actor"] == "mallory"
        };
        let refused = self.scene.wait(step, self.last, refused, acted)?;
        if !self.scene.tmux(&["list-sessions", "-F", "#{session_name}"])?.is_empty() {
            return Err(DemoError::Step {
                step,
                problem: "a session runs although nobody who may start one did".to_owned(),
            });
        }
        self.cite("a stranger's start is refused, and nothing runs", &refused)
    }

    fn start_by_the_person(&mut self) -> Result<(), DemoError> {
        let step = "starting by the authorized person";
        let started = self.command(step, "the-loop:start-execution", "spawned")?;
        let spawned = self.scene.wait(step, self.last, |record| is(record, "session.spawned"), |_| false)?;
        self.conversation = spawned["harness_session_id"].as_str().unwrap_or_default().to_owned();
        self.cite("the authorized person's start is executed", &started)?;
        self.cite(&format!("a session appears in tmux: {SESSION}"), &spawned)?;
        let entries = self.scene.wait_agent(step, &self.conversation, |entries| prompts(entries).count() == 1)?;
        let id = prompts(&entries).next().and_then(|entry| entry.delivery).map(|id| id.to_string()).unwrap_or_default();
        self.tell("the agent has its task", &id)
    }

    /// Posts a comment, waits for its delivery, and counts it in the agent's own file.
    fn delivered(&mut self, step: &'static str, mark: &str, what: &str) -> Result<(), DemoError> {
        let entries = self
            .scene
            .wait_agent(step, &self.conversation, |entries| prompts(entries).any(|entry| says(entry, mark)))?;
        let with_mark: Vec<&Entry> = prompts(&entries).filter(|entry| says(entry, mark)).collect();
        let [only] = with_mark[..] else {
            return Err(DemoError::Step {
                step,
                problem: format!("{mark:?} reached the agent {} times", with_mark.len()),
            });
        };
        let Some(id) = only.delivery.map(|id| id.to_string()) else {
            return Err(DemoError::Step { step, problem: format!("the text with {mark:?} carries no delivery id") });
        };
        let record = self.scene.wait(
            step,
            0,
            |record| is(record, "delivery.delivered") && record["delivery"] == id,
            |_| false,
        )?;
        self.cite(&format!("{what} ({id})"), &record)
    }

    fn deliver_a_comment(&mut self) -> Result<(), DemoError> {
        let step = "delivering a comment";
        self.comment(step, PERSON, "By name, please.\r\nSecond line: \u{1b}[201~ ends no paste.")?;
        self.delivered(
            step,
            "By name, please.\nSecond line: [201~ ends no paste.",
            "a comment of two lines arrives as one paste",
        )
    }

    fn pause_and_resume(&mut self) -> Result<(), DemoError> {
        let step = "pausing";
        // Someone scrolls back in the terminal, so the next text has to wait: what is queued when the pause comes is held.
        self.scene.tmux(&["copy-mode", "-t", &format!("={SESSION}:")])?;
        self.comment(step, PERSON, "Descending.")?;
        let held = self.wait(step, |record| is(record, "delivery.held"))?;
        self.cite("a comment waits while someone scrolls back in the terminal", &held)?;
        let paused = self.command(step, "the-loop:pause-execution", "paused")?;
        self.cite("pause: nothing is delivered from now on", &paused)?;
        self.scene.tmux(&["copy-mode", "-q", "-t", &format!("={SESSION}:")])?;
        self.comment(step, PERSON, "Said during the pause.")?;
        let dropped =
            self.wait(step, |record| is(record, "dispatch.dropped") && record["reason"] == "session-paused")?;
        self.cite("what is said during the pause is for the ticket alone", &dropped)?;
        let early = self
            .scene
            .records(0)?
            .into_iter()
            .find(|record| is(record, "delivery.delivered") && record["delivery"] == held["delivery"]);
        if early.is_some() {
            return Err(DemoError::Step {
                step,
                problem: "the held comment was delivered during the pause".to_owned(),
            });
        }
        let resumed = self.command("resuming", "the-loop:resume-execution", "resumed")?;
        self.cite("resume", &resumed)?;
        self.delivered("resuming", "Descending.", "the held comment is delivered")
    }

    fn ask_and_answer(&mut self) -> Result<(), DemoError> {
        let step = "asking a person";
        let question = "Is the order by name, or by date?";
        self.comment(step, PERSON, &format!("If it is not clear, then\nask: {question}"))?;
        let asked = self.wait(step, |record| is(record, "session.awaiting_input") && record["question"] == question)?;
        self.cite("the agent asks with `the-loop ask`, with nothing set", &asked)?;
        let on_ticket = |text: &str| -> Result<(), DemoError> {
            let shown = self.scene.run(step, &["items", "show", ITEM])?;
            let problem = format!("the ticket does not show {text:?}: {shown}");
            if shown.contains(text) { Ok(()) } else { Err(DemoError::Step { step, problem }) }
        };
        on_ticket(question)?;
        let waits = |expected: bool| -> Result<(), DemoError> {
            let rows = self.scene.run(step, &["attention", "--format", "jsonl"])?;
            let found = rows.contains("\"awaiting-input\"");
            let problem = format!("`the-loop attention` says: {rows}");
            if found == expected { Ok(()) } else { Err(DemoError::Step { step, problem }) }
        };
        waits(true)?;
        let answer = "By name, and then by date.";
        self.scene.run(step, &["sessions", "reply", "--work-item", ITEM, "--text", answer, "--actor", PERSON])?;
        let sent = self.scene.wait(step, self.last, |record| is(record, "session.reply_sent"), |_| false)?;
        waits(false)?;
        self.scene.wait_for(step, "the ticket to tell of the answer", || {
            Ok(self.scene.run(step, &["items", "show", ITEM])?.contains("answered from the control plane"))
        })?;
        self.cite("a person answers; the ticket says so, and nothing waits any more", &sent)?;
        self.delivered(step, answer, "the answer is in the session")?;
        let id = sent["delivery"].as_str().unwrap_or_default().to_owned();
        let row = self.scene.run(step, &["deliveries", &id])?;
        let receipt = row.lines().find(|line| line.starts_with("receipt")).unwrap_or_default().to_owned();
        self.tell(
            &format!("`the-loop deliveries` says: {}", receipt.split_whitespace().collect::<Vec<_>>().join(" ")),
            &id,
        )
    }

    fn kill_the_host(&mut self) -> Result<(), DemoError> {
        let step = "killing the host";
        let pane = ["display-message", "-p", "-t", &format!("={SESSION}:"), "#{pane_pid} #{pane_dead}"];
        let before = self.scene.tmux(&pane)?;
        let started = self.scene.records(0)?.into_iter().rev().find(|record| is(record, "server.started"));
        let pid = started.and_then(|record| record["pid"].as_i64()).and_then(|pid| i32::try_from(pid).ok());
        let Some(pid) = pid else {
            return Err(DemoError::Step { step, problem: "the log does not name the host's process".to_owned() });
        };
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::Signal::SIGKILL)
            .map_err(|error| DemoError::Step { step, problem: format!("process {pid}: {error}") })?;
        self.comment(step, PERSON, "Said while the host was dead.")?;
        self.scene.run(step, &["start"])?;
        let again =
            self.wait(step, |record| is(record, "server.started") && record["pid"].as_i64() != Some(i64::from(pid)))?;
        self.cite("the host is killed with SIGKILL and started again", &again)?;
        if self.scene.tmux(&pane)? != before {
            return Err(DemoError::Step { step, problem: "the session did not live on".to_owned() });
        }
        self.delivered(step, "Said while the host was dead.", "the session lived on; what was said meanwhile arrives")?;
        let entries = self.scene.wait_agent(step, &self.conversation, |_| true)?;
        let mut ids: Vec<_> = prompts(&entries).map(|entry| entry.delivery).collect();
        let all = ids.len();
        ids.sort();
        ids.dedup();
        if ids.len() != all {
            return Err(DemoError::Step {
                step,
                problem: format!("something came twice: {all} prompts, {} deliveries", ids.len()),
            });
        }
        self.tell(
            &format!("nothing came twice: {all} prompts in the agent's own file"),
            &format!("seq {} (last told)", self.last),
        )
    }

    fn stop_and_start_again(&mut self) -> Result<(), DemoError> {
        let stopped = self.command("stopping", "the-loop:stop-execution", "stopped")?;
        self.cite("stop ends the agent and keeps its conversation", &stopped)?;
        let resumed = self.command("starting again", "the-loop:start-execution", "resumed")?;
        let respawned = self.scene.wait(
            "starting again",
            self.last,
            |record| is(record, "session.respawned") && record["resumed"] == true,
            |_| false,
        )?;
        if respawned["harness_session_id"] != *self.conversation {
            return Err(DemoError::Step {
                step: "starting again",
                problem: format!("another conversation was started: {respawned}"),
            });
        }
        self.cite("a second start resumes", &resumed)?;
        let again = "this is the same conversation";
        let entries = self.scene.wait_agent("starting again", &self.conversation, |entries| {
            prompts(entries).any(|entry| says(entry, again))
        })?;
        let before = prompts(&entries).take_while(|entry| !says(entry, again)).count();
        self.cite(&format!("the agent goes on in its own file, after {before} earlier prompts"), &respawned)
    }
}

fn is(record: &Value, kind: &str) -> bool {
    record["event"] == *kind
}

fn says(entry: &Entry, mark: &str) -> bool {
    entry.text.as_deref().is_some_and(|text| text.contains(mark))
}

fn prompts(entries: &[Entry]) -> impl Iterator<Item = &Entry> {
    entries.iter().filter(|entry| entry.kind == Kind::Prompt)
}
