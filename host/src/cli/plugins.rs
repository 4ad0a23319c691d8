//! `the-loop plugins`.

use std::process::ExitCode;

use serde_json::{Value, json};

use super::{
    CliError, Context,
    error::chained,
    output::{self, Format, note},
};
use crate::{plugins, service};

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  the-loop plugins --format json")]
pub(super) struct Args {
    /// How to print it
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

pub(super) fn run(context: &Context, args: &Args) -> Result<ExitCode, CliError> {
    let linked = match service::linked(&context.options) {
        Ok(linked) => linked,
        Err(error) => {
            note(format_args!("what they can do is not known: {error}"));
            plugins::linked().map_err(chained)?
        }
    };
    let mut rows: Vec<Value> = linked.iter().map(|plugin| json!(plugin)).collect();
    if args.format == Format::Table {
        for row in &mut rows {
            let able = row["capabilities"].as_object().into_iter().flatten().filter(|(_, able)| **able == true);
            row["able"] = able.map(|(name, _)| name.as_str()).collect::<Vec<_>>().into();
        }
    }
    let columns =
        [("KIND", "/kind"), ("NAME", "/name"), ("VERSION", "/version"), ("CAN", "/able"), ("WHAT", "/description")];
    output::rows(args.format, &rows, &columns, "no plugin is linked")?;
    Ok(ExitCode::SUCCESS)
}
