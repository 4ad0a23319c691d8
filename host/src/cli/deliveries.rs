//! `the-loop deliveries` (RPL-5): what became of each text for a session.

use std::process::ExitCode;

use serde_json::Value;

use super::{
    CliError, Context, block_on,
    client::{Client, encoded},
    output::{self, Format},
};

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  the-loop deliveries --target github:octo/repo#15 --receipt uncertain")]
pub(super) struct Args {
    /// Only this one, with its history
    #[arg(value_name = "ID")]
    id: Option<String>,
    /// Only those for this session: a work item's ref
    #[arg(long, value_name = "REF")]
    target: Option<String>,
    /// Only those that are so far: queued, delivered, submitted, answered, failed, uncertain or unknown
    #[arg(long)]
    receipt: Option<String>,
    /// The newest so many, newest first
    #[arg(long, default_value_t = 50)]
    limit: usize,
    /// How to print it
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

const COLUMNS: [output::Column; 7] = [
    ("ID", "/deliveryId"),
    ("TARGET", "/target"),
    ("SOURCE", "/source"),
    ("ACTOR", "/actor"),
    ("RECEIPT", "/receipt"),
    ("REASON", "/reason"),
    ("MADE", "/createdAt"),
];

pub(super) fn run(context: &Context, args: &Args) -> Result<ExitCode, CliError> {
    let client = Client::new(context)?;
    block_on(async {
        if let Some(id) = &args.id {
            let row = client.get(&format!("/api/v1/deliveries/{}", encoded(id))).await?;
            output::one(args.format, &row, lines)?;
            return Ok(ExitCode::SUCCESS);
        }
        let mut path = format!("/api/v1/deliveries?limit={}", args.limit);
        for (name, value) in [("target", &args.target), ("receipt", &args.receipt)] {
            path.extend(value.iter().map(|value| format!("&{name}={}", encoded(value))));
        }
        let rows = client.get(&path).await?;
        output::rows(args.format, rows.as_array().map_or(&[], Vec::as_slice), &COLUMNS, "there is no delivery")?;
        Ok(ExitCode::SUCCESS)
    })
}

fn lines(row: &Value) -> String {
    let mut out = String::new();
    for (label, pointer) in [
        ("delivery", "/deliveryId"),
        ("target", "/target"),
        ("source", "/source"),
        ("actor", "/actor"),
        ("receipt", "/receipt"),
        ("reason", "/reason"),
    ] {
        out.push_str(&format!("{label:<9} {}\n", output::cell(row.pointer(pointer))));
    }
    for entry in row["history"].as_array().into_iter().flatten() {
        let part = |pointer: &str| output::cell(entry.pointer(pointer));
        out.push_str(&format!("  {}  {} ({}) {}\n", part("/at"), part("/receipt"), part("/evidence"), part("/reason")));
    }
    out
}
