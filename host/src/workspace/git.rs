//! The operator's git: argument lists only, never a shell, never a prompt (WSP-2).

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    path::Path,
    process::Stdio,
    time::Duration,
};

use tokio::process::Command;

/// How long a command that only reads or writes this machine's disk may take. Large checkouts on slow disks fit in it.
const LOCAL: Duration = Duration::from_secs(300);
/// How long a command that talks to the remote may take.
const REMOTE: Duration = Duration::from_secs(1800);
/// How much of what git says of a failure is passed on, in bytes.
const SAID: usize = 600;

/// Why git did not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum GitError {
    /// The program could not be run.
    #[error("{program} could not be run: {error}; install git or change routing.workspace.gitBinary")]
    NotRun {
        /// The program.
        program: String,
        /// Why.
        error: String,
    },
    /// It ended with an error.
    #[error("git {verb} failed: {said}")]
    Failed {
        /// Its first arguments.
        verb: String,
        /// What it wrote to standard error, shortened.
        said: String,
    },
    /// It did not end.
    #[error("git {verb} did not end within {} s and was stopped", limit.as_secs())]
    Late {
        /// Its first arguments.
        verb: String,
        /// The time that it had.
        limit: Duration,
    },
}

/// The program and what it finds around it.
#[derive(Clone, Debug)]
pub(super) struct Git {
    program: String,
    environment: BTreeMap<String, String>,
}

impl Git {
    /// `environment` is all that git gets: that of a session, so that both reach the remote in the same way.
    pub(super) fn new(program: &str, environment: BTreeMap<String, String>) -> Self {
        Self { program: program.to_owned(), environment }
    }

    /// Runs git in `folder` for what it answers.
    pub(super) async fn ask<S: AsRef<OsStr>>(&self, folder: &Path, args: &[S]) -> Result<Vec<u8>, GitError> {
        self.run(folder, args, LOCAL).await
    }

    /// The same, as text without its line end.
    pub(super) async fn line<S: AsRef<OsStr>>(&self, folder: &Path, args: &[S]) -> Result<String, GitError> {
        let answer = self.ask(folder, args).await?;
        Ok(String::from_utf8_lossy(&answer).trim_end_matches('\n').to_owned())
    }

    /// Runs a command that talks to the remote.
    pub(super) async fn remote<S: AsRef<OsStr>>(&self, folder: &Path, args: &[S]) -> Result<(), GitError> {
        self.run(folder, args, REMOTE).await.map(drop)
    }

    async fn run<S: AsRef<OsStr>>(&self, folder: &Path, args: &[S], limit: Duration) -> Result<Vec<u8>, GitError> {
        let mut command = Command::new(&self.program);
        command.arg("-C").arg(folder).args(args);
        command.env_clear().envs(&self.environment);
        // What it says is read by this module; a question would wait for nobody.
        command.envs([("LC_ALL", "C"), ("GIT_TERMINAL_PROMPT", "0"), ("GIT_OPTIONAL_LOCKS", "0")]);
        command.envs([("SSH_ASKPASS", "false"), ("SSH_ASKPASS_REQUIRE", "force")]);
        // A folder that lost its repository must not be taken for a part of one further up.
        if let Some(above) = folder.parent() {
            command.env("GIT_CEILING_DIRECTORIES", above);
        }
        command.stdin(Stdio::null()).kill_on_drop(true);
        let verb = || {
            let words = args.iter().map(|arg| arg.as_ref().to_string_lossy());
            words.take_while(|word| !word.starts_with('-')).take(2).collect::<Vec<_>>().join(" ")
        };
        match tokio::time::timeout(limit, command.output()).await {
            Err(_) => Err(GitError::Late { verb: verb(), limit }),
            Ok(Err(error)) => Err(GitError::NotRun { program: self.program.clone(), error: error.to_string() }),
            Ok(Ok(output)) if output.status.success() => Ok(output.stdout),
            Ok(Ok(output)) => Err(GitError::Failed { verb: verb(), said: said(&output.stderr) }),
        }
    }
}

/// The end of what git wrote, where the reason stands, on one line.
fn said(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let whole = lines.join("; ");
    let from = whole.len().saturating_sub(SAID);
    whole[whole.ceil_char_boundary(from)..].to_owned()
}

/// A list of arguments of different kinds.
pub(super) fn args<const N: usize>(list: [&dyn AsRef<OsStr>; N]) -> [OsString; N] {
    list.map(|arg| arg.as_ref().to_owned())
}
