//! Talking to tmux: one process a sequence of commands, with a bound on how long it may take.

use std::{io, path::PathBuf, process::Stdio, sync::Arc, time::Duration};

use nix::{
    sys::signal::{Signal, killpg},
    unistd::Pid,
};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    process::{Child, ChildStderr, ChildStdin, ChildStdout, Command},
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, timeout, timeout_at},
};

use crate::{facts::says_ended, options::TmuxOptions, quote::Sequence};

/// Which server is meant.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Server<'a> {
    /// The configured one.
    Configured,
    /// The one at a socket that a handle recorded.
    At(&'a str),
}

/// tmux did not answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error("{} was not found; install tmux 3.2 or newer (`apt install tmux`, `brew install tmux`) and see that it is in PATH", program.display())]
    Missing { program: PathBuf },
    #[error("tmux did not answer within {} s; `tmux list-sessions` shows whether the server hangs", patience.as_secs_f32())]
    Silent { patience: Duration },
    #[error("tmux could not be run: {source}")]
    Io {
        #[from]
        source: io::Error,
    },
}

/// What a tmux process answered.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) success: bool,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

impl Answer {
    pub(crate) fn text(&self) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(&self.stdout)
    }
}

/// Measured: fewer leave a processor idle while a process starts, many more slow each other down.
const TURNS_A_PROCESSOR: usize = 4;

/// How often a server that ends while it is asked is asked again.
const TRIES: usize = 5;
const BETWEEN_TRIES: Duration = Duration::from_millis(20);

/// Runs tmux.
#[derive(Clone)]
pub(crate) struct Tmux {
    options: Arc<TmuxOptions>,
    /// The server works through what it is told one by one: more conversations at once than this only push each other off
    /// the processors.
    turns: Arc<Semaphore>,
}

impl Tmux {
    pub(crate) fn new(options: TmuxOptions) -> Self {
        let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Self { options: Arc::new(options), turns: Arc::new(Semaphore::new(processors * TURNS_A_PROCESSOR)) }
    }

    pub(crate) fn options(&self) -> &TmuxOptions {
        &self.options
    }

    /// The program and its arguments up to the commands. `-u`: what tmux prints is not flattened to ASCII.
    pub(crate) fn prefix(&self, server: Server<'_>) -> Vec<String> {
        let mut words = vec![self.options.program.to_string_lossy().into_owned(), "-u".to_owned()];
        match server {
            Server::At(socket) => words.extend(["-S".to_owned(), socket.to_owned()]),
            Server::Configured if !self.options.socket_name.is_empty() => {
                words.extend(["-L".to_owned(), self.options.socket_name.clone()]);
            }
            Server::Configured => {}
        }
        words
    }

    fn command(&self, program: &str) -> Command {
        #[expect(clippy::disallowed_methods, reason = "the runner starts tmux")]
        let mut command = Command::new(program);
        command
            .env_clear()
            .envs(&self.options.environment)
            // A Ctrl-C at the host's terminal does not reach a tmux process that is about to paste.
            .process_group(0)
            .kill_on_drop(true)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs a sequence to its end.
    pub(crate) async fn ask(&self, server: Server<'_>, sequence: Sequence) -> Result<Answer, Failure> {
        let mut words = self.prefix(server);
        words.extend(sequence.into_args());
        self.ask_words(&words, &[]).await
    }

    /// Runs a sequence that changes nothing. A server that ends while it is asked is asked again: then its socket is free,
    /// or a new server answers.
    pub(crate) async fn query(&self, server: Server<'_>, sequence: &Sequence) -> Result<Answer, Failure> {
        let mut answer = self.ask(server, sequence.clone()).await?;
        for _ in 1..TRIES {
            if answer.success || !says_ended(&answer.stderr) {
                break;
            }
            tokio::time::sleep(BETWEEN_TRIES).await;
            answer = self.ask(server, sequence.clone()).await?;
        }
        Ok(answer)
    }

    /// Runs any command line with tmux's environment and `extra` variables.
    pub(crate) async fn ask_words(
        &self,
        words: &[String],
        extra: &[(&str, &std::ffi::OsStr)],
    ) -> Result<Answer, Failure> {
        let (program, args) = words.split_first().ok_or_else(|| io::Error::other("no command"))?;
        let mut child = self.spawn(self.command(program).args(args).envs(extra.iter().copied()))?;
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        let mut out = child.stdout()?;
        let mut err = child.stderr()?;
        let whole =
            async { tokio::try_join!(out.read_to_end(&mut stdout), err.read_to_end(&mut stderr), child.0.wait()) };
        let (_, _, status) =
            timeout(self.options.patience, whole).await.map_err(|_| self.silent())?.map_err(Failure::from)?;
        Ok(Answer { success: status.success(), stdout, stderr: String::from_utf8_lossy(&stderr).trim().to_owned() })
    }

    /// Starts a sequence whose last part waits for its standard input.
    pub(crate) async fn converse(&self, server: Server<'_>, sequence: Sequence) -> Result<Conversation, Failure> {
        let turn = Arc::clone(&self.turns).acquire_owned().await.map_err(io::Error::other)?;
        let words = self.prefix(server);
        let (program, args) = words.split_first().ok_or_else(|| io::Error::other("no command"))?;
        let mut command = self.command(program);
        command.args(args).args(sequence.into_args()).stdin(Stdio::piped());
        let mut child = self.spawn(&mut command)?;
        Ok(Conversation {
            stdout: BufReader::new(child.stdout()?),
            stderr: child.stderr()?,
            stdin: child.0.stdin.take(),
            child,
            deadline: Instant::now() + self.options.patience,
            patience: self.options.patience,
            _turn: turn,
        })
    }

    fn spawn(&self, command: &mut Command) -> Result<Group, Failure> {
        match command.spawn() {
            Ok(child) => Ok(Group(child)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(Failure::Missing { program: command.as_std().get_program().into() })
            }
            Err(source) => Err(Failure::Io { source }),
        }
    }

    fn silent(&self) -> Failure {
        Failure::Silent { patience: self.options.patience }
    }
}

/// A child that leads a process group. Whatever of the group still runs when this is dropped is killed: `tmux` may be a
/// wrapper script, and its children must not linger.
struct Group(Child);

impl Group {
    fn stdout(&mut self) -> io::Result<ChildStdout> {
        self.0.stdout.take().ok_or_else(|| io::Error::other("no standard output"))
    }

    fn stderr(&mut self) -> io::Result<ChildStderr> {
        self.0.stderr.take().ok_or_else(|| io::Error::other("no standard error"))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Without an id it was reaped, and the number may be someone else's by now.
        if let Some(pid) = self.0.id().and_then(|id| i32::try_from(id).ok()) {
            // It may have ended in the meantime, which is as good.
            let _ended = killpg(Pid::from_raw(pid), Signal::SIGKILL);
        }
    }
}

/// A tmux process that has been told what to do and waits for the text to do it with.
///
/// The field order matters: dropping kills the process before its standard input is closed, so that a half-written text
/// is never taken for a whole one.
pub(crate) struct Conversation {
    child: Group,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    stderr: ChildStderr,
    deadline: Instant,
    patience: Duration,
    _turn: OwnedSemaphorePermit,
}

impl Conversation {
    /// The next line that tmux prints; `None` when it has ended.
    pub(crate) async fn line(&mut self) -> Result<Option<String>, Failure> {
        let mut line = Vec::new();
        let read = timeout_at(self.deadline, self.stdout.read_until(b'\n', &mut line)).await;
        let read = read.map_err(|_| Failure::Silent { patience: self.patience })??;
        while line.last() == Some(&b'\n') {
            line.pop();
        }
        Ok((read > 0).then(|| String::from_utf8_lossy(&line).into_owned()))
    }

    /// Hands over the text and says that it is whole.
    ///
    /// The pipe is made large enough first, so that the text goes over in one write: were this process killed in the middle
    /// of several, tmux would take the part that it has for the whole.
    pub(crate) async fn hand_over(&mut self, text: &[u8]) -> Result<(), Failure> {
        let Some(mut stdin) = self.stdin.take() else {
            return Err(io::Error::other("the text was handed over already").into());
        };
        widen(&stdin, text.len());
        self.deadline = Instant::now() + self.patience;
        let written = timeout_at(self.deadline, stdin.write_all(text)).await;
        if !matches!(written, Ok(Ok(()))) {
            // Put back, so that it is closed only after the process is gone.
            self.stdin = Some(stdin);
        }
        written.map_err(|_| Failure::Silent { patience: self.patience })??;
        Ok(())
    }

    /// Waits for the end and returns what tmux complained about.
    pub(crate) async fn end(&mut self) -> Result<String, Failure> {
        drop(self.stdin.take());
        let mut stderr = Vec::new();
        let whole = async { tokio::try_join!(self.stderr.read_to_end(&mut stderr), self.child.0.wait()) };
        timeout_at(self.deadline, whole).await.map_err(|_| Failure::Silent { patience: self.patience })??;
        Ok(String::from_utf8_lossy(&stderr).trim().to_owned())
    }
}

#[cfg(target_os = "linux")]
fn widen(pipe: &ChildStdin, size: usize) {
    use nix::fcntl::{FcntlArg, fcntl};
    const PIPE: usize = 64 * 1024;
    if let (true, Ok(size)) = (size > PIPE, i32::try_from(size)) {
        // Refused beyond the system's limit; then the text goes over in several writes.
        let _refused = fcntl(pipe, FcntlArg::F_SETPIPE_SZ(size));
    }
}

#[cfg(not(target_os = "linux"))]
fn widen(_pipe: &ChildStdin, _size: usize) {}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[tokio::test]
    async fn del_4_a_large_text_goes_over_before_anyone_has_read_of_it() {
        let options = TmuxOptions::from_environment(String::new());
        let tmux = Tmux::new(TmuxOptions { program: "sh".into(), ..options });
        // A program that never reads takes the place of tmux.
        let mut command = tmux.command("sh");
        let mut child = Group(command.args(["-c", "sleep 1000"]).stdin(Stdio::piped()).spawn().unwrap());
        let mut stdin = child.0.stdin.take().unwrap();
        let text = vec![b'x'; 1024 * 1024];
        widen(&stdin, text.len());
        let written = timeout(Duration::from_secs(10), stdin.write_all(&text)).await;
        assert!(matches!(written, Ok(Ok(()))), "the pipe is too small for the text");
    }
}
