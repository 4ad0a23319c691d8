//! Verbs that sessions' terminals run, not people.

use std::{os::fd::AsFd, path::PathBuf, process::ExitCode};

use super::{CliError, error::chained};
use crate::{demo::agent, launcher};

#[derive(Debug, clap::Args)]
pub(super) struct LaunchArgs {
    plan: PathBuf,
}

#[derive(Debug, clap::Args)]
pub(super) struct WatchArgs {
    mark: PathBuf,
}

pub(super) fn launch(args: &LaunchArgs) -> ExitCode {
    ExitCode::from(launcher::launch(&args.plan))
}

pub(super) fn watch(args: &WatchArgs) -> Result<ExitCode, CliError> {
    launcher::watch(&args.mark).map_err(chained)?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn demo_agent() -> Result<ExitCode, CliError> {
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let file = PathBuf::from(variable("THE_LOOP_TRANSCRIPT"));
    let settings = agent::Settings::new(file, variable("THE_LOOP_RESUME") == "1").map_err(chained)?;
    let settings = settings.asking_with(std::env::current_exe().map_err(chained)?);
    let input = std::io::stdin().as_fd().try_clone_to_owned().map_err(chained)?;
    agent::run(&settings, input, std::io::stdout()).map_err(chained)?;
    Ok(ExitCode::SUCCESS)
}
