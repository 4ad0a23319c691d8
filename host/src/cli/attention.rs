//! `the-loop attention` (ATT-1, ATT-3): what waits for a person.

use std::{process::ExitCode, time::Duration};

use serde_json::Value;

use super::{
    CliError, Context, block_on,
    client::Client,
    output::{self, Format},
};

/// How often `--watch` looks.
const LOOK: Duration = Duration::from_secs(2);

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  the-loop attention --watch")]
pub(super) struct Args {
    /// Go on, and print what is new, until interrupted
    #[arg(long, short)]
    watch: bool,
    /// How to print it
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

const COLUMNS: [output::Column; 5] =
    [("SINCE", "/since"), ("KIND", "/kind"), ("ITEM", "/workItem"), ("DETAIL", "/detail"), ("ANSWER ON", "/surfaces")];

pub(super) fn run(context: &Context, args: &Args) -> Result<ExitCode, CliError> {
    let client = Client::new(context)?;
    block_on(async {
        let mut shown = look(&client).await?;
        output::rows(args.format, &shown, &COLUMNS, "nothing waits for a person")?;
        if !args.watch {
            return Ok(ExitCode::SUCCESS);
        }
        loop {
            tokio::time::sleep(LOOK).await;
            let rows = look(&client).await?;
            let new: Vec<Value> = rows.iter().filter(|row| !shown.contains(row)).cloned().collect();
            if !new.is_empty() {
                output::rows(args.format, &new, &COLUMNS, "")?;
            }
            shown = rows;
        }
    })
}

async fn look(client: &Client) -> Result<Vec<Value>, CliError> {
    let rows = client.get("/api/v1/attention").await?;
    Ok(rows.as_array().cloned().unwrap_or_default())
}
