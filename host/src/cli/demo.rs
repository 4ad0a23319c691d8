//! `the-loop demo`.

use std::{path::PathBuf, process::ExitCode};

use super::{CliError, Context, error::chained, output::note};
use crate::demo;

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  the-loop demo --keep     and look at the session and the event log afterwards")]
pub(super) struct Args {
    /// Keep the sessions and the files for looking
    #[arg(long)]
    keep: bool,
    /// Put the files here instead of in a temporary folder
    #[arg(long, value_name = "FOLDER")]
    root: Option<PathBuf>,
}

pub(super) fn run(context: &Context, args: &Args) -> Result<ExitCode, CliError> {
    let options =
        demo::DemoOptions { program: context.options.program.clone(), root: args.root.clone(), keep: args.keep };
    let mut out = anstream::stdout();
    demo::run(&options, &mut out).map_err(|error| {
        let cause = chained(error);
        note("the demo failed");
        cause
    })?;
    Ok(ExitCode::SUCCESS)
}
