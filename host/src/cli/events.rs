//! `the-loop events` (EVT-4). Works without the service: it reads the file.

use std::{process::ExitCode, time::Duration};

use jiff::Timestamp;
use serde_json::{Value, json};
use the_loop_plugin_api::WorkItemRef;

use super::{
    CliError, Context,
    output::{self, Format, OutputError, note, say, terminal_width},
};
use crate::{
    eventlog::{self, EventType, Level, Query, TypeGlob, parse_time},
    service::Setup,
};

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  the-loop events --type 'control.*' --work-item github:octo/repo#15 --since 2h")]
pub(super) struct Args {
    /// Only these types; `*` and `?` match, and it may be given again
    #[arg(long = "type", value_name = "GLOB")]
    types: Vec<String>,
    /// Only this work item
    #[arg(long, value_name = "REF")]
    work_item: Option<String>,
    /// Only this standing session
    #[arg(long, value_name = "NAME")]
    standing: Option<String>,
    /// Only this delivery
    #[arg(long, value_name = "ID")]
    delivery: Option<String>,
    /// Only this loop
    #[arg(long = "loop", value_name = "ID")]
    loop_: Option<String>,
    /// Only from this source
    #[arg(long)]
    source: Option<String>,
    /// Only of this level: debug, info, warning, error
    #[arg(long)]
    level: Option<Level>,
    /// Only at or after: 2026-11-30T10:15:00Z, or 2h; a time without zone is UTC
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Only at or before
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// The newest so many, oldest first
    #[arg(long, default_value_t = 50)]
    limit: usize,
    /// Go on with what is written from now on, until interrupted
    #[arg(long, short)]
    follow: bool,
    /// List the types there are, instead
    #[arg(long = "types", conflicts_with_all = ["types", "follow"])]
    catalog: bool,
    /// How to print it
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

const COLUMNS: [output::Column; 6] = [
    ("SEQ", "/seq"),
    ("TIME", "/ts"),
    ("LEVEL", "/level"),
    ("EVENT", "/event"),
    ("ABOUT", "/about"),
    ("DETAIL", "/detail"),
];

pub(super) fn run(context: &Context, args: &Args) -> Result<ExitCode, CliError> {
    if args.catalog {
        let rows: Vec<Value> = EventType::ALL
            .iter()
            .map(|kind| json!({"event": kind.name(), "fields": kind.fields(), "meaning": kind.meaning()}))
            .collect();
        output::rows(args.format, &rows, &[("EVENT", "/event"), ("FIELDS", "/fields"), ("MEANING", "/meaning")], "")?;
        return Ok(ExitCode::SUCCESS);
    }
    let query = args.query()?;
    let path = Setup::read(&context.options)?.log_path;
    if args.follow {
        return follow(&path, query, args.format);
    }
    let found = eventlog::query(&path, &query)?;
    print(args.format, &found.records)?;
    if found.unreadable + found.torn > 0 {
        note(format_args!("{} lines of the log could not be read", found.unreadable + found.torn));
    }
    Ok(ExitCode::SUCCESS)
}

impl Args {
    fn query(&self) -> Result<Query, CliError> {
        let time = |text: &Option<String>| -> Result<Option<Timestamp>, CliError> {
            let Some(text) = text else { return Ok(None) };
            let parsed = parse_time(text, Timestamp::now()).map_err(|error| CliError::usage(error.to_string()))?;
            if parsed.assumed_utc {
                note(format_args!("{text} has no zone and is read as UTC"));
            }
            Ok(Some(parsed.instant))
        };
        if let Some(reference) = &self.work_item {
            reference.parse::<WorkItemRef>().map_err(|error| CliError::usage(error.to_string()))?;
        }
        Ok(Query {
            types: self.types.iter().map(TypeGlob::new).collect(),
            work_item: self.work_item.clone(),
            standing: self.standing.clone(),
            delivery: self.delivery.clone(),
            loop_: self.loop_.clone(),
            source: self.source.clone(),
            level: self.level,
            since: time(&self.since)?,
            until: time(&self.until)?,
            limit: Some(self.limit),
        })
    }
}

fn print(format: Format, records: &[Value]) -> Result<(), OutputError> {
    match format {
        Format::Json | Format::Jsonl => output::rows(format, records, &[], ""),
        Format::Table => {
            output::rows(format, &records.iter().map(told).collect::<Vec<_>>(), &COLUMNS, "no events match")
        }
    }
}

/// A record as a row for people: what it is about, and the rest of its fields.
fn told(record: &Value) -> Value {
    let about = ["work_item", "standing", "delivery", "subject"]
        .iter()
        .find_map(|key| record[*key].as_str())
        .unwrap_or_default();
    let known = ["ts", "seq", "source", "event", "level", "pid", "work_item"];
    let fields = record
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(key, value)| !known.contains(&key.as_str()) && !value.is_null());
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let detail: Vec<String> = fields.map(|(key, value)| format!("{key}={}", text(value))).collect();
    json!({"seq": record["seq"], "ts": record["ts"], "level": record["level"], "event": record["event"], "about": about, "detail": detail.join(" ")})
}

/// The same in one line, for a list whose widths are not known beforehand.
fn line(record: &Value) -> String {
    let row = told(record);
    let text = |key: &str| output::cell(row.get(key));
    let (event, about, detail) = (text("event"), text("about"), text("detail"));
    format!("{:>6}  {}  {:<7}  {event}  {about}  {detail}", text("seq"), text("ts"), text("level"))
}

fn follow(path: &std::path::Path, query: Query, format: Format) -> Result<ExitCode, CliError> {
    let (found, mut follower) = eventlog::follow(path, query)?;
    let width = terminal_width().unwrap_or(usize::MAX);
    let tell = |records: &[Value]| -> Result<(), OutputError> {
        records.iter().try_for_each(|record| match format {
            Format::Json | Format::Jsonl => say(record),
            Format::Table => say(output::cut(&line(record), width)),
        })
    };
    tell(&found.records)?;
    loop {
        let next = follower.poll()?;
        if next.missed {
            note("the log was rotated away before it could be read: records are missing here");
        }
        tell(&next.records)?;
        if !next.more {
            pause();
        }
    }
}

/// Between two looks at the file; an interrupt ends the process.
#[expect(clippy::disallowed_methods, reason = "a follower has nothing else to do on its only thread")]
fn pause() {
    std::thread::sleep(Duration::from_millis(100));
}
