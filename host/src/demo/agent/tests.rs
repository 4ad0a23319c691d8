//! The agent on a terminal of its own, watched from the other side.

use std::{
    fs::File,
    io::{Read as _, Write as _},
    os::fd::OwnedFd,
    path::PathBuf,
    sync::mpsc,
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use nix::{
    pty::{OpenptyResult, openpty},
    sys::signal::{Signal, raise},
};
use tempfile::TempDir;
use the_loop_plugin_api::DeliveryId;

use super::{AgentError, Kind, Settings, run};

const ID: &str = "3f2b8c1e-7d5a-4c9b-9e21-0a6d4f8b2c77";

/// The person's side of the agent's terminal.
struct Person {
    terminal: File,
    shown: mpsc::Receiver<Vec<u8>>,
    seen: String,
    agent: JoinHandle<Result<(), AgentError>>,
}

impl Person {
    fn start(settings: &Settings) -> Self {
        let OpenptyResult { master, slave } = openpty(None, None).unwrap();
        let settings = settings.clone();
        let output = File::from(slave.try_clone().unwrap());
        let agent = thread::spawn(move || run(&settings, slave, output));
        let terminal = File::from(master);
        let mut reading = terminal.try_clone().unwrap();
        let (send, shown) = mpsc::channel();
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(len @ 1..) = reading.read(&mut buffer) {
                if send.send(buffer[..len].to_vec()).is_err() {
                    return;
                }
            }
        });
        Self { terminal, shown, seen: String::new(), agent }
    }

    /// Waits until the terminal has shown `text`.
    fn sees(&mut self, text: &str) {
        let end = Instant::now() + Duration::from_secs(10);
        while !self.seen.contains(text) {
            let left = end.saturating_duration_since(Instant::now());
            let bytes = self.shown.recv_timeout(left).unwrap_or_else(|_| panic!("no {text:?} in {:?}", self.seen));
            self.seen.push_str(&String::from_utf8_lossy(&bytes));
        }
    }

    fn types(&mut self, bytes: &[u8]) {
        self.terminal.write_all(bytes).unwrap();
    }

    fn pastes(&mut self, text: &str) {
        self.types(format!("\x1b[200~{text}\x1b[201~").as_bytes());
        self.types(b"\r");
    }
}

fn settings(root: &TempDir, resume: bool) -> Settings {
    Settings::new(root.path().join(format!("kept/{ID}.jsonl")), resume).unwrap()
}

#[test]
fn del_1_a_pasted_text_is_kept_byte_for_byte_with_its_delivery() {
    let root = tempfile::tempdir().unwrap();
    let mut person = Person::start(&settings(&root, false));
    person.sees("\x1b[?2004h");
    let delivery = DeliveryId::generate();
    let text = format!("from the-loop\ndelivery: {delivery}\n\n/quit\r\u{1b}[A\tcaf\u{e9} \u{1f512}\ndelivery: {ID}");
    person.pastes(&text);
    person.sees(&format!("received: from the-loop ({} bytes, {delivery})", text.len()));
    person.types(b"\x04");
    person.agent.join().unwrap().unwrap();

    let entries = settings(&root, false).entries().unwrap();
    assert_eq!(entries.iter().map(|entry| entry.kind).collect::<Vec<_>>(), [Kind::Prompt, Kind::Reply]);
    assert_eq!(entries[0].text.as_deref(), Some(text.as_str()));
    assert_eq!(entries[0].delivery, Some(delivery));
}

#[test]
fn tmx_6_a_resumed_agent_remembers_and_one_that_is_asked_for_more_than_there_is_says_so() {
    let root = tempfile::tempdir().unwrap();
    assert!(matches!(
        Person::start(&settings(&root, true)).agent.join().unwrap(),
        Err(AgentError::NothingToResume { .. })
    ));
    let mut person = Person::start(&settings(&root, false));
    person.sees("begins a conversation");
    person.pastes("first");
    person.sees("received: first");
    person.types(b"\x04");
    person.agent.join().unwrap().unwrap();

    // A crash cut the last line short: it costs itself and nothing else.
    let mut file = File::options().append(true).open(&settings(&root, true).file).unwrap();
    file.write_all(b"{\"kind\":\"pro").unwrap();
    let mut person = Person::start(&settings(&root, true));
    person.sees("remembers 2 messages");
    person.pastes("second");
    person.sees("received: second");
    person.types(b"\x04");
    person.agent.join().unwrap().unwrap();
    assert_eq!(settings(&root, true).entries().unwrap().len(), 4);
}

#[test]
fn tmx_5_the_polite_signal_ends_it_and_puts_the_terminal_back() {
    let root = tempfile::tempdir().unwrap();
    let mut person = Person::start(&settings(&root, false));
    person.sees("begins a conversation");
    raise(Signal::SIGTERM).unwrap();
    person.sees("\x1b[?2004l");
    person.agent.join().unwrap().unwrap();
}

#[test]
fn what_is_no_terminal_and_no_file_are_refused_with_the_next_step() {
    let root = tempfile::tempdir().unwrap();
    let nothing = OwnedFd::from(File::open("/dev/null").unwrap());
    let error = run(&settings(&root, false), nothing, Vec::new()).unwrap_err();
    assert!(error.to_string().contains("talks to a terminal"), "{error}");
    let error = Settings::new(PathBuf::new(), false).unwrap_err();
    assert!(error.to_string().contains("THE_LOOP_TRANSCRIPT"), "{error}");
}
