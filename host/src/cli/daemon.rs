//! `the-loop start|stop|status|restart|run` (CLI-3, CLI-4, CLI-5).

use std::{
    fs::{File, OpenOptions},
    os::unix::{fs::OpenOptionsExt, process::CommandExt},
    path::Path,
    process::{Child, Command, ExitCode, Stdio},
    time::{Duration, Instant},
};

use http::Method;
use serde_json::{Value, json};

use super::{
    CliError, Context, block_on,
    client::Client,
    output::{self, Format},
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
pub(super) struct RunArgs {}

pub(super) fn run(context: Context, _args: &RunArgs) -> Result<ExitCode, CliError> {
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
            anstream::println!("the-loop runs (pid {}): {api}, socket {}", std::process::id(), ready.socket.display());
            for row in ready.services.iter().filter(|row| row.enabled) {
                anstream::println!("  {:<12} {} {}", row.name, row.address.as_deref().unwrap_or("-"), row.detail);
            }
        })
        .await?;
        Ok::<_, CliError>(())
    })?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn start(context: &Context, args: &StartArgs) -> Result<ExitCode, CliError> {
    let setup = Setup::read(&context.options)?;
    let root = StateRoot::open(&setup.root).map_err(super::error::chained)?;
    let lock = root.lock("service");
    let already = match InstanceLock::state(&lock) {
        LockState::Held { pid } => Some(pid),
        LockState::Free => None,
    };
    let mut child = if already.is_some() { None } else { Some(spawn(context, &setup, &root)?) };
    let status = block_on(async {
        let deadline = Instant::now() + UP;
        loop {
            let client = Client::new(context)?;
            match client.request(Method::GET, "/api/v1/status", None).await {
                Ok(answer) if answer.status.is_success() && ours(&lock, child.as_ref(), already.is_some()) => {
                    return Ok(answer.body);
                }
                _ => {}
            }
            if let Some(child) = &mut child
                && let Ok(Some(exit)) = child.try_wait()
            {
                return Err(ended_early(&lock, &root.logs().join("service.out"), exit));
            }
            if Instant::now() >= deadline {
                return Err(CliError::failed(format!(
                    "the service did not answer within {} s; see {}",
                    UP.as_secs(),
                    root.logs().join("service.out").display()
                )));
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })?;
    if let Some(pid) = already {
        let pid = pid.map_or_else(|| "unknown".to_owned(), |pid| pid.to_string());
        anstream::println!("already running (pid {pid})");
        return Ok(ExitCode::SUCCESS);
    }
    print_status(args.format, &status)?;
    Ok(exit_of(&status))
}

/// Whether the lock's holder is the process that was started here.
fn ours(lock: &Path, child: Option<&Child>, already: bool) -> bool {
    already || InstanceLock::holder(lock) == child.map(Child::id)
}

/// The service as a process of its own: in its own session, so that no terminal's end reaches it, with its output in a file.
fn spawn(context: &Context, setup: &Setup, root: &StateRoot) -> Result<Child, CliError> {
    let out = root.logs().join("service.out");
    let open = || {
        OpenOptions::new()
            .create(true)
            .append(true)
            .mode(0o600)
            .custom_flags(nix::fcntl::OFlag::O_NOFOLLOW.bits())
            .open(&out)
    };
    let opened = |result: std::io::Result<File>| {
        result.map_err(|error| CliError::failed(format!("{} cannot be written", out.display())).because(error))
    };
    let mut command = Command::new(&context.options.program);
    if let Some(path) = &setup.path {
        command.arg("--config").arg(path);
    }
    command
        .arg("run")
        .current_dir(&context.options.cwd)
        .stdin(Stdio::null())
        .stdout(opened(open())?)
        .stderr(opened(open())?)
        .process_group(0)
        .spawn()
        .map_err(|error| CliError::failed("the service could not be started").because(error))
}

fn ended_early(lock: &Path, out: &Path, exit: std::process::ExitStatus) -> CliError {
    if let Some(pid) = InstanceLock::holder(lock) {
        return CliError::failed(format!("another start was first: the service runs as pid {pid}"));
    }
    let said = std::fs::read_to_string(out).unwrap_or_default();
    let last = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it said nothing").to_owned();
    CliError::failed(format!("the service ended at once ({exit}): {}", last.trim_start_matches("the-loop: ")))
}

pub(super) fn stop(context: &Context, _args: &StopArgs) -> Result<ExitCode, CliError> {
    // The verb to recover with works although the config does not validate (CFG-4).
    let root = match Setup::read(&context.options) {
        Ok(setup) => setup.root,
        Err(error) => Setup::salvage_root(&context.options).ok_or(error)?,
    };
    let lock = root.join("local/service.pid");
    let pid = match InstanceLock::state(&lock) {
        LockState::Free => {
            anstream::println!("not running");
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
    let deadline = Instant::now() + DOWN;
    while InstanceLock::state(&lock) != LockState::Free {
        if Instant::now() >= deadline {
            return Err(CliError::failed(format!("the service (pid {pid}) did not end within {} s", DOWN.as_secs())));
        }
        pause();
    }
    anstream::println!("stopped (pid {pid}); sessions live on");
    Ok(ExitCode::SUCCESS)
}

pub(super) fn restart(context: &Context, args: &StartArgs) -> Result<ExitCode, CliError> {
    stop(context, &StopArgs {})?;
    start(context, args)
}

pub(super) fn status(context: &Context, args: &StatusArgs) -> Result<ExitCode, CliError> {
    let root = Setup::read(&context.options)?.root;
    let lock = root.join("local/service.pid");
    if InstanceLock::state(&lock) == LockState::Free {
        let rows = json!([{"name": "service", "enabled": true, "running": false, "pid": null, "address": null, "detail": "not running; `the-loop start` starts it"}]);
        let status = json!({"ok": false, "shadow": false, "services": rows, "standingSessions": [], "loops": {"armed": 0, "dormant": []}, "warnings": []});
        print_status(args.format, &status)?;
        return Ok(ExitCode::from(1));
    }
    let client = Client::new(context)?;
    let status = block_on(async { client.get("/api/v1/status").await })?;
    print_status(args.format, &status)?;
    Ok(exit_of(&status))
}

fn exit_of(status: &Value) -> ExitCode {
    if status["ok"] == true { ExitCode::SUCCESS } else { ExitCode::from(1) }
}

fn print_status(format: Format, status: &Value) -> Result<(), CliError> {
    if format != Format::Table {
        return output::one(format, status, |_| String::new());
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
        anstream::println!("shadow mode is on: everything is only recorded as it would be");
    }
    for warning in status["warnings"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        anstream::println!("warning: {}", crate::sessions::text::sanitise(warning));
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
