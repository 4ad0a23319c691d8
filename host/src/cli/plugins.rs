//! `the-loop plugins`.

use std::process::ExitCode;

use super::{
    CliError,
    error::chained,
    output::{self, Format},
};
use crate::plugins;

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  the-loop plugins --format json")]
pub(super) struct Args {
    /// How to print it
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

pub(super) fn run(args: &Args) -> Result<ExitCode, CliError> {
    let linked = plugins::linked().map_err(chained)?;
    let rows: Vec<_> = linked.iter().map(|plugin| serde_json::json!(plugin)).collect();
    let columns = [("KIND", "/kind"), ("NAME", "/name"), ("VERSION", "/version"), ("WHAT", "/description")];
    output::rows(args.format, &rows, &columns, "no plugin is linked")?;
    Ok(ExitCode::SUCCESS)
}
