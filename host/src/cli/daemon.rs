//! `the-loop start|stop|status|restart|run` (CLI-3, CLI-4, CLI-5).

use std::{
    fs::{File, OpenOptions},
    io::{Read, Seek, SeekFrom},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    process::{Child, Command, ExitCode, Stdio},
    time::{Duration, Instant},
};

use http::Method;
use serde_json::{Value, json};

use super::{
    CliError, Context, block_on,
    client::Client,
    output::{self, Format, note, say, waiting_for},
};
use crate::{
    TheLoop,
    service::Setup,
    state::{InstanceLock, LockState, StateRoot},
};

/// How long the service may take to come up.
const UP: Duration = Duration::from_secs(30);
/// How long it may take to end: what is in flight is finished first.
const DOWN: Duration = Duration::from_secs(30);

/// The size, in bytes, past which a start puts the earlier output aside.
const LARGEST_OUT: u64 = 8 << 20;

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  the-loop start")]
pub(super) struct StartArgs {
    /// How to print it
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  the-loop stop")]
pub(super) struct StopArgs {}

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  the-loop status --format json")]
pub(super) struct StatusArgs {
    /// How to print it
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  the-loop --config ./cli-config.yaml run")]
pub(super) struct RunArgs {
    /// In a session of its own, which no terminal's end reaches
    #[arg(long, hide = true)]
    detached: bool,
}

pub(super) fn run(context: Context, args: &RunArgs) -> Result<ExitCode, CliError> {
    if args.detached {
        // It fails for the leader of a group only, and who is started by `start` is none.
        let _ = nix::unistd::setsid();
    }
    let filter = tracing_subscriber::EnvFilter::try_from_env("THE_LOOP_LOG")
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("warn"));
    tracing_subscriber::fmt().json().with_writer(std::io::stderr).with_env_filter(filter).init();
    crate::drills::arm_from(&context.options.environment);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| CliError::failed("the runtime cannot be started").because(error))?;
    runtime.block_on(async {
        let host = TheLoop::open(context.options).await?;
        host.run(|ready| {
            let api = ready.api.map_or_else(|| "no address".to_owned(), |address| format!("http://{address}"));
            // A service whose output nobody reads runs all the same.
            let _ = say(format_args!(
                "the-loop runs (pid {}): {api}, socket {}",
                std::process::id(),
                ready.socket.display()
            ));
            for row in ready.services.iter().filter(|row| row.enabled) {
                let _ =
                    say(format_args!("  {:<12} {} {}", row.name, row.address.as_deref().unwrap_or("-"), row.detail));
            }
        })
        .await?;
        Ok::<_, CliError>(())
    })?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn start(context: &Context, args: &StartArgs) -> Result<ExitCode, CliError> {
    let Up { lock, started, status } = block_on(bring_up(context))?;
    if !started {
        let already = format!(
            "already running (pid {})",
            InstanceLock::holder(&lock).map_or("unknown".to_owned(), |pid| pid.to_string())
        );
        if args.format == Format::Table {
            say(already)?;
        } else {
            note(already);
            print_status(args.format, &status)?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    print_status(args.format, &status)?;
    Ok(exit_of(&status))
}

/// A service that answers.
pub(super) struct Up {
    lock: PathBuf,
    /// Whether it was started here; it ran already otherwise.
    started: bool,
    status: Value,
}

/// Makes sure that the service runs, and waits for proof: the lock is held and its status is answered (CLI-4).
pub(super) async fn bring_up(context: &Context) -> Result<Up, CliError> {
    let setup = Setup::read(&context.options)?;
    let root = StateRoot::open(&setup.root).map_err(super::error::chained)?;
    let lock = root.lock("service");
    let mut started: Option<Started> = None;
    let deadline = tokio::time::Instant::now() + UP;
    loop {
        // One that was ending when this began has ended by now.
        if started.is_none() && InstanceLock::state(&lock) == LockState::Free {
            started = Some(Started::spawn(context, &setup, &root)?);
            waiting_for("waiting for the service to answer");
        }
        let client = Client::new(context)?.without_start();
        // Boxed: a client may bring the service up, and this is what brings it up.
        let asked = Box::pin(client.request(Method::GET, "/api/v1/status", None));
        match tokio::time::timeout_at(deadline, asked).await {
            Ok(Ok(answer)) if answer.status.is_success() && holds(&lock, started.as_ref()) => {
                return Ok(Up { lock, started: started.is_some(), status: answer.body });
            }
            _ => {}
        }
        if let Some(started) = &mut started
            && let Ok(Some(exit)) = started.child.try_wait()
        {
            return Err(started.ended_early(&lock, exit));
        }
        if tokio::time::Instant::now() >= deadline {
            let out = root.logs().join("service.out");
            return Err(CliError::failed(format!(
                "the service did not answer within {} s; {} may say why, and `the-loop stop` ends it",
                UP.as_secs(),
                out.display()
            )));
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Whether the lock is held by the process that was started here, or by the one that was found.
fn holds(lock: &Path, started: Option<&Started>) -> bool {
    started.is_none_or(|started| InstanceLock::holder(lock) == Some(started.child.id()))
}

/// A service that was started here.
struct Started {
    child: Child,
    out: PathBuf,
    /// Where its output begins in the file.
    from: u64,
}

impl Started {
    /// The service as a process of its own, with its output in a file.
    fn spawn(context: &Context, setup: &Setup, root: &StateRoot) -> Result<Self, CliError> {
        let out = root.logs().join("service.out");
        let failed = |error| CliError::failed(format!("{} cannot be written", out.display())).because(error);
        if out.symlink_metadata().is_ok_and(|meta| meta.len() > LARGEST_OUT) {
            // One that cannot be renamed is written to further.
            let _ = std::fs::rename(&out, out.with_extension("out.1"));
        }
        let no_link = nix::fcntl::OFlag::O_NOFOLLOW.bits();
        let mut options = OpenOptions::new();
        options.create(true).append(true).mode(0o600).custom_flags(no_link);
        let file = options.open(&out).map_err(&failed)?;
        let from = file.metadata().map_err(&failed)?.len();
        let mut command = Command::new(&context.options.program);
        if let Some(path) = &setup.path {
            command.arg("--config").arg(path);
        }
        let child = command
            .args(["run", "--detached"])
            .current_dir(&context.options.cwd)
            .stdin(Stdio::null())
            .stdout(file.try_clone().map_err(&failed)?)
            .stderr(file)
            .spawn()
            .map_err(|error| CliError::failed("the service could not be started").because(error))?;
        Ok(Self { child, out, from })
    }

    fn ended_early(&self, lock: &Path, exit: std::process::ExitStatus) -> CliError {
        if let Some(pid) = InstanceLock::holder(lock) {
            return CliError::failed(format!("another start was first: the service runs as pid {pid}"));
        }
        let said = self.said().unwrap_or_default();
        let last = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it said nothing");
        CliError::failed(format!("the service ended at once ({exit}): {}", last.trim_start_matches("the-loop: ")))
    }

    /// What it printed, not what one before it did.
    fn said(&self) -> std::io::Result<String> {
        let mut file = File::open(&self.out)?;
        file.seek(SeekFrom::Start(self.from))?;
        let mut said = Vec::new();
        file.take(64 * 1024).read_to_end(&mut said)?;
        Ok(String::from_utf8_lossy(&said).into_owned())
    }
}

pub(super) fn stop(context: &Context, _args: &StopArgs) -> Result<ExitCode, CliError> {
    let client = Client::to_recover(context)?.without_start();
    let lock = client.root().join("local/service.pid");
    let pid = match InstanceLock::state(&lock) {
        LockState::Free => {
            say("not running")?;
            return Ok(ExitCode::SUCCESS);
        }
        LockState::Held { pid: None } => {
            return Err(CliError::failed(format!(
                "something holds {} and its file names no process; nothing was signalled",
                lock.display()
            )));
        }
        LockState::Held { pid: Some(pid) } => pid,
    };
    let target = i32::try_from(pid)
        .map(nix::unistd::Pid::from_raw)
        .map_err(|_| CliError::failed(format!("{} names no process", lock.display())))?;
    // The lock is held and its file names the holder: that process alone is signalled.
    nix::sys::signal::kill(target, nix::sys::signal::Signal::SIGTERM)
        .map_err(|error| CliError::failed(format!("process {pid} could not be signalled")).because(error))?;
    waiting_for("waiting for what is in flight");
    let deadline = Instant::now() + DOWN;
    while InstanceLock::state(&lock) != LockState::Free {
        if Instant::now() >= deadline {
            return Err(CliError::failed(format!(
                "the service (pid {pid}) did not end within {} s; look again with `the-loop status`",
                DOWN.as_secs()
            )));
        }
        pause();
    }
    say(format_args!("stopped (pid {pid}); sessions live on"))?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn restart(context: &Context, args: &StartArgs) -> Result<ExitCode, CliError> {
    stop(context, &StopArgs {})?;
    start(context, args)
}

pub(super) fn status(context: &Context, args: &StatusArgs) -> Result<ExitCode, CliError> {
    let client = Client::to_recover(context)?.without_start();
    let lock = client.root().join("local/service.pid");
    if InstanceLock::state(&lock) == LockState::Free {
        let rows = json!([{"name": "service", "enabled": true, "running": false, "pid": null, "address": null, "detail": "not running; `the-loop start` starts it"}]);
        let status = json!({"ok": false, "shadow": false, "services": rows, "standingSessions": [], "loops": {"armed": 0, "dormant": []}, "warnings": []});
        print_status(args.format, &status)?;
        return Ok(ExitCode::from(1));
    }
    let status = block_on(async { client.get("/api/v1/status").await })?;
    print_status(args.format, &status)?;
    Ok(exit_of(&status))
}

fn exit_of(status: &Value) -> ExitCode {
    if status["ok"] == true { ExitCode::SUCCESS } else { ExitCode::from(1) }
}

fn print_status(format: Format, status: &Value) -> Result<(), CliError> {
    if format != Format::Table {
        return Ok(output::one(format, status, |_| String::new())?);
    }
    let columns = [
        ("SERVICE", "/name"),
        ("ENABLED", "/enabled"),
        ("RUNNING", "/running"),
        ("PID", "/pid"),
        ("ADDRESS", "/address"),
        ("DETAIL", "/detail"),
    ];
    output::rows(format, status["services"].as_array().map_or(&[], Vec::as_slice), &columns, "")?;
    if status["shadow"] == true {
        say("shadow mode is on: everything is only recorded as it would be")?;
    }
    for warning in status["warnings"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        say(format_args!("warning: {}", crate::sessions::text::sanitise(warning)))?;
    }
    Ok(())
}

/// Between two looks at a lock with a deadline.
#[expect(
    clippy::disallowed_methods,
    reason = "the one wait between two looks at a fact; this process does nothing else"
)]
fn pause() {
    std::thread::sleep(Duration::from_millis(20));
}
