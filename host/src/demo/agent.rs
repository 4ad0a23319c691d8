//! The demo agent: a small terminal program that stands where a coding agent stands, run as `the-loop demo-agent`.
//!
//! It does what the host relies on in an agent and nothing else: it switches bracketed paste on when it takes input, reads
//! its terminal raw, takes a paste as text and a return as the end of a prompt, keeps its conversation in the file that it
//! is told, takes it up again when told to, asks a person when told to, and ends on the polite signal. What it records is exactly what was pasted, so
//! its file is evidence of what arrived (DEL-1, DEL-2, REL-3).

mod composer;
mod conversation;

use std::{
    io::{self, Read as _, Write},
    os::fd::{AsFd, OwnedFd},
    path::PathBuf,
    thread,
};

use nix::sys::termios::{self, SetArg, Termios};
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::mpsc,
};

use self::composer::{Composer, Input};
use self::conversation::{Conversation, read_entries};
pub use self::conversation::{Entry, Kind};

/// What the agent was started for. The environment variables that say it are read by the verb, not here.
#[derive(Clone, Debug)]
pub struct Settings {
    file: PathBuf,
    resume: bool,
    ask_with: Option<PathBuf>,
}

impl Settings {
    /// Names the file in which the conversation is kept, a new one or one to take up again.
    ///
    /// # Errors
    /// When no file is named.
    pub fn new(file: PathBuf, resume: bool) -> Result<Self, AgentError> {
        if file.as_os_str().is_empty() {
            Err(AgentError::NoConversation)
        } else {
            Ok(Self { file, resume, ask_with: None })
        }
    }

    /// Lets the agent ask a person where it is told to, by running this program as `PROGRAM ask`.
    #[must_use]
    pub fn asking_with(mut self, program: PathBuf) -> Self {
        self.ask_with = Some(program);
        self
    }

    /// The conversation's entries so far, for whoever checks what arrived.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn entries(&self) -> Result<Vec<Entry>, AgentError> {
        read_entries(&self.file)
    }
}

/// Why the demo agent cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// No file is named to keep the conversation in.
    #[error("THE_LOOP_TRANSCRIPT names no file to keep the conversation in; the harness `shell` sets it")]
    NoConversation,
    /// There is nothing to take up again.
    #[error("no conversation is kept in {}; start without THE_LOOP_RESUME to begin one", path.display())]
    NothingToResume {
        /// Where it would be.
        path: PathBuf,
    },
    /// The conversation's file failed.
    #[error("the conversation {} could not be {action}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What was tried, as a past participle.
        action: &'static str,
        /// Why not.
        source: io::Error,
    },
    /// The terminal failed, or there is none.
    #[error("the demo agent talks to a terminal, and could not {action}")]
    Terminal {
        /// What was tried.
        action: &'static str,
        /// Why not.
        source: io::Error,
    },
}

fn terminal(action: &'static str) -> impl FnOnce(io::Error) -> AgentError {
    move |source| AgentError::Terminal { action, source }
}

/// Switches bracketed paste on: "I take input".
const PASTE_ON: &str = "\x1b[?2004h";
/// Switches it off again.
const PASTE_OFF: &str = "\x1b[?2004l";

/// Runs the agent on a terminal until its end of input, `Ctrl-D` on an empty line, or the polite signal.
///
/// # Errors
/// When the terminal or the conversation's file fails, or there is no conversation to take up.
pub fn run(settings: &Settings, input: OwnedFd, output: impl Write) -> Result<(), AgentError> {
    let conversation =
        if settings.resume { Conversation::resume(&settings.file)? } else { Conversation::begin(&settings.file)? };
    // One thread is enough: a keystroke at a time.
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_io().build().map_err(terminal("wait for its signals"))?;
    runtime.block_on(converse(conversation, settings.ask_with.clone(), input, output))
}

async fn converse(
    conversation: Conversation,
    ask_with: Option<PathBuf>,
    input: OwnedFd,
    output: impl Write,
) -> Result<(), AgentError> {
    // The signals are caught before the terminal says that input is taken: an early one is not lost.
    let caught = terminal("catch its signals");
    let mut polite = signal(SignalKind::terminate()).map_err(caught)?;
    let mut hung_up = signal(SignalKind::hangup()).map_err(terminal("catch its signals"))?;
    let raw = Raw::enter(input.try_clone().map_err(terminal("share its input"))?)?;
    let mut keys = keys(input);
    let mut agent = Agent { conversation, ask_with, composer: Composer::default(), output };
    agent.greet()?;
    let ended = loop {
        tokio::select! {
            _ = polite.recv() => break Ok(()),
            _ = hung_up.recv() => break Ok(()),
            read = keys.recv() => match read {
                Some(bytes) => match agent.take(&bytes) {
                    Ok(true) => {}
                    Ok(false) => break Ok(()),
                    Err(error) => break Err(error),
                },
                None => break Ok(()),
            },
        }
    };
    // After a hang-up nobody reads this any more.
    let _nobody_there = agent.show(&format!("{PASTE_OFF}\r\nthe demo agent ends\r\n"));
    drop(raw);
    ended
}

/// Reads the terminal on a thread of its own, which ends with the process: a read of a terminal cannot be called back.
fn keys(input: OwnedFd) -> mpsc::Receiver<Vec<u8>> {
    let (send, receive) = mpsc::channel(16);
    thread::spawn(move || {
        let mut input = std::fs::File::from(input);
        let mut buffer = [0; 4096];
        loop {
            match input.read(&mut buffer) {
                Ok(0) => return,
                Ok(len) if send.blocking_send(buffer[..len].to_vec()).is_err() => return,
                Err(error) if error.kind() != io::ErrorKind::Interrupted => return,
                Ok(_) | Err(_) => {}
            }
        }
    });
    receive
}

/// A terminal in raw mode, put back when it is dropped.
struct Raw {
    fd: OwnedFd,
    before: Termios,
}

impl Raw {
    fn enter(fd: OwnedFd) -> Result<Self, AgentError> {
        let before = termios::tcgetattr(fd.as_fd()).map_err(io::Error::from).map_err(terminal("read its settings"))?;
        let mut raw = before.clone();
        termios::cfmakeraw(&mut raw);
        termios::tcsetattr(fd.as_fd(), SetArg::TCSANOW, &raw)
            .map_err(io::Error::from)
            .map_err(terminal("make it raw"))?;
        Ok(Self { fd, before })
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        let _terminal_is_gone = termios::tcsetattr(self.fd.as_fd(), SetArg::TCSANOW, &self.before);
    }
}

/// The agent between its terminal and its conversation.
struct Agent<W> {
    conversation: Conversation,
    ask_with: Option<PathBuf>,
    composer: Composer,
    output: W,
}

impl<W: Write> Agent<W> {
    fn greet(&mut self) -> Result<(), AgentError> {
        let greeting = match self.conversation.remembered() {
            Some(count) => format!("the demo agent is back and remembers {count} messages"),
            None => "the demo agent begins a conversation".to_owned(),
        };
        self.show(&format!("{PASTE_ON}{greeting}\r\n> "))
    }

    /// Takes what was read; false when it was the end.
    fn take(&mut self, bytes: &[u8]) -> Result<bool, AgentError> {
        for input in self.composer.feed(bytes) {
            match input {
                Input::Echo(text) => self.show(&on_screen(&text).replace('\n', "\r\n"))?,
                Input::Erase => self.show("\r\x1b[K> ")?,
                Input::Prompt(prompt) => self.answer(&prompt)?,
                Input::End => return Ok(false),
            }
        }
        Ok(true)
    }

    fn answer(&mut self, prompt: &[u8]) -> Result<(), AgentError> {
        let delivery = self.conversation.prompt(prompt)?;
        let text = String::from_utf8_lossy(prompt);
        let first: String = on_screen(text.lines().next().unwrap_or_default()).chars().take(100).collect();
        let from = delivery.map_or_else(String::new, |id| format!(", {id}"));
        let mut reply = format!("received: {first} ({} bytes{from})", prompt.len());
        if let Some((program, question)) = self.ask_with.as_ref().zip(question(&text)) {
            reply.push_str(&format!("; {}", ask(program, question)));
        }
        self.conversation.reply(&reply)?;
        self.show(&format!("\r\n{reply}\r\n> "))
    }

    fn show(&mut self, text: &str) -> Result<(), AgentError> {
        self.output.write_all(text.as_bytes()).and_then(|()| self.output.flush()).map_err(terminal("write to it"))
    }
}

/// What the agent is told to ask a person: a line `ask: …`. A thinking agent would find out by itself when to.
fn question(text: &str) -> Option<&str> {
    text.lines().find_map(|line| line.strip_prefix("ask: "))
}

/// Asks as any agent does, with nothing set but what its session has, and says what came of it.
fn ask(program: &std::path::Path, question: &str) -> String {
    let asked = std::process::Command::new(program).args(["ask", "--question", question]).output();
    match asked {
        Ok(output) => {
            let said = if output.status.success() { output.stdout } else { output.stderr };
            String::from_utf8_lossy(&said).lines().next().unwrap_or("it said nothing").to_owned()
        }
        Err(error) => format!("{} could not be run: {error}", program.display()),
    }
}

/// A text as it may be shown: what would act on the terminal is shown as a mark.
fn on_screen(text: &str) -> String {
    text.chars().map(|c| if c.is_control() && c != '\n' && c != '\t' { '\u{fffd}' } else { c }).collect()
}

#[cfg(test)]
mod tests;
