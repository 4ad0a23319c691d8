//! `the-loop config`.

use std::process::ExitCode;

use clap::Subcommand;
use serde_json::Value;

use super::{
    CliError, Context,
    error::chained,
    output::{self, Format, note, say},
};
use crate::{
    config, plugins,
    service::{self, Setup},
};

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  the-loop config set routing.authorizedUsers '[octo-admin]'")]
pub(super) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Show the config in force, defaults included
    #[command(after_help = "Example:\n  the-loop config show --format json")]
    Show {
        /// How to print it
        #[arg(long, value_enum, default_value_t = Format::Json)]
        format: Format,
    },
    /// Check the file and say what is wrong, each thing with its line
    #[command(after_help = "Example:\n  the-loop config check")]
    Check,
    /// Print the JSON Schema
    #[command(after_help = "Example:\n  the-loop config schema > cli-config.schema.json")]
    Schema,
    /// Print one key of the config in force
    #[command(after_help = "Example:\n  the-loop config get service.port")]
    Get {
        /// The key, such as `routing.tmux.socketName`
        key: String,
    },
    /// Change one key of the file, keeping its comments
    #[command(after_help = "Example:\n  the-loop config set polling.intervalSeconds 30")]
    Set {
        /// The key
        key: String,
        /// The value, as YAML
        value: String,
    },
}

pub(super) fn run(context: &Context, args: Args) -> Result<ExitCode, CliError> {
    if matches!(args.verb, Verb::Schema) {
        say(config::schema_text(&plugins::fragments().map_err(chained)?).trim_end())?;
        return Ok(ExitCode::SUCCESS);
    }
    let setup = Setup::read(&context.options)?;
    let effective = || setup.loaded.effective().map_err(chained);
    match args.verb {
        Verb::Schema => {}
        Verb::Show { format } => output::one(format, &effective()?, |value| format!("{value:#}\n"))?,
        Verb::Check => {
            for warning in &setup.loaded.warnings {
                note(format_args!("warning: {warning}"));
            }
            match &setup.path {
                Some(path) => say(format_args!("{} is valid", path.display()))?,
                None => say(format_args!(
                    "there is no config file; the defaults are in force (`the-loop init` writes one)"
                ))?,
            }
        }
        Verb::Get { key } => {
            let Some(value) = config::get(&effective()?, &key) else {
                let near = config::nearest_key(&setup.load.fragments, &key)
                    .map(|near| format!("; did you mean {near}?"))
                    .unwrap_or_default();
                return Err(CliError::usage(format!("there is no key {key}{near}")));
            };
            match value {
                Value::String(text) => say(text)?,
                other => say(other)?,
            }
        }
        Verb::Set { key, value } => {
            let path = setup
                .path
                .as_deref()
                .ok_or_else(|| CliError::failed("there is no config file to change; `the-loop init` writes one"))?;
            let value = config::parse_value(&value).map_err(|error| CliError::usage(error.to_string()))?;
            let changes = config::set(path, &key, value, &setup.load).map_err(chained)?;
            if changes.changed.is_empty() {
                say(format_args!("{key} is so already"))?;
            } else {
                if let Err(error) = service::record_update(&setup, path, &changes.changed, &context.actor()) {
                    note(format_args!("the event log does not know of the change: {error}"));
                }
                say(format_args!("changed: {}", changes.changed.join(", ")))?;
            }
            if !changes.restart.is_empty() {
                say(format_args!("in force after `the-loop restart`: {}", changes.restart.join(", ")))?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}
