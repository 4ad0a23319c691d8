//! `the-loop doctor`: looks at what the service needs, one line a finding, and repairs a damaged database on request (STA-5).

use std::process::ExitCode;

use jiff::Timestamp;

use super::{
    CliError, Context, block_on,
    error::chained,
    output::{OutputError, say},
};
use crate::{
    db::{self, Db, RepairError},
    service::{self, Setup},
    state::{InstanceLock, StateRoot},
};

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  the-loop doctor --repair     restores the last good copy of a damaged host.db")]
pub(super) struct Args {
    /// Restore the last good copy of a damaged host.db; the service must not run
    #[arg(long)]
    repair: bool,
}

pub(super) fn run(context: &Context, args: &Args) -> Result<ExitCode, CliError> {
    let setup = Setup::read(&context.options)?;
    let root = StateRoot::open(&setup.root).map_err(chained)?;
    if args.repair {
        return repair(&root);
    }
    let mut sound = true;
    let mut tell = |ok: bool, what: String| -> Result<(), OutputError> {
        sound &= ok;
        say(format_args!("{} {what}", if ok { "ok " } else { "BAD" }))
    };
    match &setup.path {
        Some(path) => tell(true, format!("config {}", path.display()))?,
        None => tell(true, "no config file: the defaults are in force".to_owned())?,
    }
    // The empty list of people is told below, as what it is.
    for warning in setup.loaded.warnings.iter().filter(|warning| warning.key != "routing.authorizedUsers") {
        tell(true, format!("config: {warning}"))?;
    }
    if setup.loaded.config.routing.authorized_users.is_empty() {
        tell(false, "routing.authorizedUsers is empty: every human action is refused".to_owned())?;
    }
    tell(true, format!("state root {}", root.root().display()))?;
    match InstanceLock::holder(&root.lock("service")) {
        Some(pid) => tell(true, format!("the service runs (pid {pid})"))?,
        None => tell(true, "the service does not run".to_owned())?,
    }
    if root.db().exists() {
        match Db::open(&root.db()) {
            Ok(_) => tell(true, "host.db is sound".to_owned())?,
            Err(error) => tell(false, error.to_string())?,
        }
    }
    match block_on(async { Ok(service::describe_runner(&context.options).await?) })? {
        None => tell(false, "no runner is linked: nothing can be started".to_owned())?,
        Some((name, description)) => {
            let version = description.version.unwrap_or_else(|| "no version".to_owned());
            let problem = description.problem.map(|problem| format!(": {problem}")).unwrap_or_default();
            tell(problem.is_empty(), format!("{name}: {version} at {}{problem}", description.address))?;
        }
    }
    for finding in block_on(async { Ok(service::check(&context.options).await?) })? {
        tell(finding.ok, finding.text)?;
    }
    Ok(if sound { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

fn repair(root: &StateRoot) -> Result<ExitCode, CliError> {
    let _lock = InstanceLock::acquire(&root.lock("service"), std::process::id()).map_err(chained)?;
    match db::repair(&root.db(), Timestamp::now()) {
        Ok(repaired) => {
            say(format_args!(
                "host.db was damaged ({}) and is the copy of {} again",
                repaired.problem, repaired.snapshot_at
            ))?;
            for path in &repaired.set_aside {
                say(format_args!("the damaged bytes are kept in {}", path.display()))?;
            }
            say(format_args!(
                "what was accepted or delivered since then is not known; {} deliveries are uncertain, {} events were not finished",
                repaired.uncertain.len(),
                repaired.unknown_events.len()
            ))?;
            Ok(ExitCode::SUCCESS)
        }
        Err(error @ RepairError::Sound { .. }) => {
            say(error)?;
            Ok(ExitCode::SUCCESS)
        }
        Err(error) => Err(chained(error)),
    }
}
