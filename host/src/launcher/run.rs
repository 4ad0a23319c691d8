//! The launcher: the pane's own process, and the agent's parent.

use std::{
    io,
    os::unix::process::ExitStatusExt as _,
    path::Path,
    process::ExitStatus,
    time::{Duration, Instant},
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use tokio::{
    process::{Child, Command},
    signal::unix::{Signal as Stream, SignalKind, signal},
};

use super::{
    environment::TERMINAL,
    plan::{PlanError, SessionPlan, read_plan},
    status::LaunchStatus,
    watch::watching,
};

/// Exit statuses as a shell gives them, and one for the launcher's own failures.
const NOT_LAUNCHED: u8 = 125;
const NOT_EXECUTABLE: u8 = 126;
const NOT_FOUND: u8 = 127;

/// How long the agent waits at most for the watcher. Without one, texts wait with a reason; the agent runs anyway.
const WATCHER: Duration = Duration::from_secs(2);
const LOOK_AGAIN: Duration = Duration::from_millis(2);

/// Why the agent did not start. Printed into the pane, where a person looks first.
#[derive(Debug, thiserror::Error)]
enum LaunchError {
    #[error(transparent)]
    Plan(#[from] PlanError),
    #[error("the folder {} does not exist; make it, or reset the session", .0.display())]
    NoFolder(std::path::PathBuf),
    #[error("the program {program} was not found in PATH={path}; install it, or change the harness's settings")]
    NotFound { program: String, path: String },
    #[error("the program {program} could not be started")]
    NotStarted { program: String, source: io::Error },
    #[error("the launcher could not be set up")]
    SetUp(#[source] io::Error),
}

impl LaunchError {
    fn code(&self) -> u8 {
        match self {
            Self::Plan(_) | Self::NoFolder(_) | Self::SetUp(_) => NOT_LAUNCHED,
            Self::NotFound { .. } => NOT_FOUND,
            Self::NotStarted { .. } => NOT_EXECUTABLE,
        }
    }
}

/// Starts the agent of a plan in this terminal, waits for it, writes down how it went, and returns the status to exit with:
/// the agent's own, or 128 and the signal's number.
///
/// The agent is a child in the same process group, so the terminal's keys reach it as if it were alone. The launcher itself
/// ignores them, and hands on SIGTERM and SIGHUP.
pub fn launch(plan: &Path) -> u8 {
    let mut status = None;
    let launched = read_plan(plan).map_err(LaunchError::from).and_then(|plan| {
        status = Some(plan.status.clone());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(LaunchError::SetUp)?;
        runtime.block_on(run(&plan))
    });
    launched.unwrap_or_else(|error| {
        let problem = with_causes(&error);
        say(&problem);
        if let Some(status) = status {
            record(&LaunchStatus::failed(problem, error.code()), &status);
        }
        error.code()
    })
}

fn with_causes(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

async fn run(plan: &SessionPlan) -> Result<u8, LaunchError> {
    // Before the agent is there, so that no key can end the launcher and leave the agent without its record. Handlers, unlike
    // ignored signals, are not inherited by what is started.
    let mut signals = Signals::listen().map_err(LaunchError::SetUp)?;
    wait_for_watcher(plan).await;
    let mut child = start(plan)?;
    let status = LaunchStatus::started(child.id());
    record(&status, &plan.status);
    let ended = loop {
        tokio::select! {
            ended = child.wait() => break ended.map_err(LaunchError::SetUp)?,
            signal = signals.next_for_agent() => hand_on(&child, signal),
        }
    };
    record(&status.ended(ended), &plan.status);
    Ok(exit_code(ended))
}

async fn wait_for_watcher(plan: &SessionPlan) {
    let Some(watching) = plan.mark.as_deref().map(watching) else { return };
    let deadline = Instant::now() + WATCHER;
    while !watching.exists() && Instant::now() < deadline {
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

fn start(plan: &SessionPlan) -> Result<Child, LaunchError> {
    if !plan.cwd.is_dir() {
        return Err(LaunchError::NoFolder(plan.cwd.clone()));
    }
    // The plan was checked to name a program.
    let (program, args) = plan.argv.split_first().map_or(("", &[][..]), |(program, args)| (program.as_str(), args));
    let terminal = TERMINAL.iter().filter_map(|name| Some((*name, std::env::var_os(name)?)));
    let mut command = Command::new(program);
    command.args(args).env_clear().envs(&plan.env).envs(terminal).current_dir(&plan.cwd);
    command.spawn().map_err(|source| {
        let program = program.to_owned();
        if source.kind() == io::ErrorKind::NotFound {
            let path = plan.env.get("PATH").cloned().unwrap_or_default();
            LaunchError::NotFound { program, path }
        } else {
            LaunchError::NotStarted { program, source }
        }
    })
}

/// The signals that must not end the launcher.
struct Signals {
    terminate: Stream,
    hang_up: Stream,
    keys: [Stream; 3],
}

impl Signals {
    fn listen() -> io::Result<Self> {
        let key = |key: Signal| signal(SignalKind::from_raw(key as i32));
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
            keys: [key(Signal::SIGINT)?, key(Signal::SIGQUIT)?, key(Signal::SIGTSTP)?],
        })
    }

    /// The next signal that is the agent's business. Keys are not: the terminal has sent them to the agent itself.
    async fn next_for_agent(&mut self) -> Signal {
        let [interrupt, quit, stop] = &mut self.keys;
        loop {
            tokio::select! {
                _ = self.terminate.recv() => return Signal::SIGTERM,
                _ = self.hang_up.recv() => return Signal::SIGHUP,
                _ = interrupt.recv() => {}
                _ = quit.recv() => {}
                _ = stop.recv() => {}
            }
        }
    }
}

fn hand_on(child: &Child, signal: Signal) {
    if let Some(pid) = child.id().and_then(|pid| i32::try_from(pid).ok()) {
        // It may have ended a moment ago, which the next turn of the loop finds.
        let _ended = kill(Pid::from_raw(pid), signal);
    }
}

fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(NOT_LAUNCHED)
}

fn record(status: &LaunchStatus, path: &Path) {
    if let Err(error) = status.write(path) {
        say(&format!("the status {} could not be written: {error}", path.display()));
    }
}

fn say(problem: &str) {
    // The pane is the launcher's only reader.
    eprintln!("the-loop: {problem}");
}
