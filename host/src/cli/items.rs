//! `the-loop items`: the surface of the built-in tracker (GHT-4). It works on the tracker's files, with or without the
//! service; what is done here is judged like any other activity when the service reads it.

use std::{io::Read, path::PathBuf, process::ExitCode};

use clap::Subcommand;
use serde_json::{Value, json};
use the_loop_plugin_api::{
    Tracker, WorkItemRef,
    event::ItemState,
    tracker::{Desk, DeskList, Draft, TrackerError},
};

use super::{
    CliError, Context, block_on,
    output::{self, Format, note, say},
};
use crate::service::desk;

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  the-loop items new --repo demo/work --title 'Sort the list'")]
pub(super) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Args)]
struct By {
    /// Who does it [default: your user name]
    #[arg(long = "as", value_name = "LOGIN")]
    login: Option<String>,
}

#[derive(Debug, clap::Args)]
struct Body {
    /// The text
    #[arg(long, conflicts_with = "body_file")]
    body: Option<String>,
    /// A file with the text; `-` for standard input
    #[arg(long, value_name = "FILE")]
    body_file: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Open an item
    #[command(
        after_help = "Example:\n  the-loop items new --repo demo/work --title 'Sort the list' --label 'the-loop: auto-execute'"
    )]
    New {
        /// OWNER/REPO
        #[arg(long)]
        repo: String,
        /// The title
        #[arg(long)]
        title: String,
        #[command(flatten)]
        body: Body,
        /// A label; may be given again
        #[arg(long = "label")]
        labels: Vec<String>,
        #[command(flatten)]
        by: By,
    },
    /// List all items
    #[command(after_help = "Example:\n  the-loop items list --format jsonl")]
    List {
        /// How to print it
        #[arg(long, value_enum, default_value_t)]
        format: Format,
    },
    /// Show an item and its thread
    #[command(after_help = "Example:\n  the-loop items show local:demo/work#1")]
    Show {
        /// The item's ref
        item: String,
        /// How to print it
        #[arg(long, value_enum, default_value_t)]
        format: Format,
    },
    /// Comment on an item
    #[command(after_help = "Example:\n  the-loop items comment local:demo/work#1 --body 'the-loop:start-execution'")]
    Comment {
        /// The item's ref
        item: String,
        #[command(flatten)]
        body: Body,
        #[command(flatten)]
        by: By,
    },
    /// Edit a comment
    #[command(after_help = "Example:\n  the-loop items edit local:demo/work#1 COMMENT-ID --body 'better words'")]
    Edit {
        /// The item's ref
        item: String,
        /// The comment's id
        comment: String,
        #[command(flatten)]
        body: Body,
        #[command(flatten)]
        by: By,
    },
    /// Add a label, or remove one
    #[command(after_help = "Example:\n  the-loop items label local:demo/work#1 'the-loop: auto-execute'")]
    Label {
        /// The item's ref
        item: String,
        /// The label
        label: String,
        /// Remove it instead
        #[arg(long)]
        remove: bool,
        #[command(flatten)]
        by: By,
    },
    /// Close an item
    #[command(after_help = "Example:\n  the-loop items close local:demo/work#1")]
    Close {
        /// The item's ref
        item: String,
        #[command(flatten)]
        by: By,
    },
    /// Reopen an item
    #[command(after_help = "Example:\n  the-loop items reopen local:demo/work#1")]
    Reopen {
        /// The item's ref
        item: String,
        #[command(flatten)]
        by: By,
    },
}

pub(super) fn run(context: Context, args: Args) -> Result<ExitCode, CliError> {
    let actor = context.actor();
    block_on(async move {
        let tracker = desk(&context.options)?.ok_or_else(|| {
            CliError::failed("no tracker with a desk of its own is linked; build with the feature `local`")
        })?;
        let desk = tracker.desk().ok_or_else(|| CliError::failed("the tracker has no desk of its own"))?;
        act(&*tracker, desk, &actor, args.verb).await?;
        Ok(ExitCode::SUCCESS)
    })
}

async fn act(tracker: &dyn Tracker, desk: &dyn Desk, actor: &str, verb: Verb) -> Result<(), CliError> {
    let by = |by: By| by.login.unwrap_or_else(|| actor.to_owned());
    match verb {
        Verb::New { repo, title, body, labels, by: who } => {
            let (owner, repo) =
                repo.split_once('/').ok_or_else(|| CliError::usage("--repo is OWNER/REPO, such as demo/work"))?;
            let draft = Draft { owner: owner.to_owned(), repo: repo.to_owned(), title, body: body.read(true)?, labels };
            let item = desk.open(&by(who), &draft).await.map_err(refused)?;
            say(item.reference)?;
        }
        Verb::List { format } => {
            let DeskList { items, damaged } = desk.list().await.map_err(refused)?;
            let rows: Vec<Value> = items.iter().map(|item| json!({"ref": item.reference, "state": item.state, "title": item.title, "labels": item.labels, "author": item.author.login()})).collect();
            let columns = [("REF", "/ref"), ("STATE", "/state"), ("LABELS", "/labels"), ("TITLE", "/title")];
            output::rows(format, &rows, &columns, "there is no item; `the-loop items new` opens one")?;
            damaged.iter().for_each(|problem| note(format_args!("left out: {problem}")));
        }
        Verb::Show { item, format } => {
            let item = parse(&item)?;
            let found = tracker.look_up(&item).await.map_err(refused)?;
            let thread = tracker.thread(&item).await.map_err(refused)?;
            let shown = json!({"ref": found.reference, "state": found.state, "title": found.title, "labels": found.labels, "author": found.author.login(), "thread": thread});
            output::one(format, &shown, lines)?;
        }
        Verb::Comment { item, body, by: who } => {
            let posted = desk.comment_as(&by(who), &parse(&item)?, &body.read(false)?).await.map_err(refused)?;
            say(posted.id)?;
        }
        Verb::Edit { item, comment, body, by: who } => {
            let posted = desk.edit_as(&by(who), &parse(&item)?, &comment, &body.read(false)?).await.map_err(refused)?;
            say(posted.id)?;
        }
        Verb::Label { item, label, remove, by: who } => {
            let item = desk.label(&by(who), &parse(&item)?, &label, !remove).await.map_err(refused)?;
            say(format_args!("{}: {}", item.reference, item.labels.join(", ")))?;
        }
        Verb::Close { item, by: who } => {
            let item = desk.set_open(&by(who), &parse(&item)?, false).await.map_err(refused)?;
            say(format_args!("{}: {}", item.reference, told(item.state)))?;
        }
        Verb::Reopen { item, by: who } => {
            let item = desk.set_open(&by(who), &parse(&item)?, true).await.map_err(refused)?;
            say(format_args!("{}: {}", item.reference, told(item.state)))?;
        }
    }
    Ok(())
}

fn parse(text: &str) -> Result<WorkItemRef, CliError> {
    text.parse().map_err(|error: the_loop_plugin_api::work_item::RefError| CliError::usage(error.to_string()))
}

fn told(state: ItemState) -> &'static str {
    match state {
        ItemState::Open => "open",
        ItemState::Closed => "closed",
    }
}

fn refused(error: TrackerError) -> CliError {
    match error {
        TrackerError::Invalid { problem } => CliError::usage(problem),
        other => super::error::chained(other),
    }
}

fn lines(shown: &Value) -> String {
    let text = |value: &Value| crate::sessions::text::sanitise(value.as_str().unwrap_or_default());
    let labels: Vec<String> = shown["labels"].as_array().into_iter().flatten().map(text).collect();
    let mut out = format!(
        "{} {} by {}: {}\nlabels: {}\n",
        text(&shown["ref"]),
        text(&shown["state"]),
        text(&shown["author"]),
        text(&shown["title"]),
        labels.join(", ")
    );
    for entry in shown["thread"].as_array().into_iter().flatten() {
        let reactions: Vec<String> = entry["reactions"].as_array().into_iter().flatten().map(text).collect();
        out.push_str(&format!(
            "\n{} {} {} {}\n{}\n",
            text(&entry["id"]),
            text(&entry["createdAt"]),
            text(&entry["author"]),
            reactions.join(" "),
            text(&entry["body"])
        ));
    }
    out
}

impl Body {
    fn read(&self, may_be_empty: bool) -> Result<String, CliError> {
        let unreadable = |path: &PathBuf| {
            let path = path.display().to_string();
            move |error: std::io::Error| CliError::failed(format!("{path} cannot be read as text")).because(error)
        };
        match (&self.body, &self.body_file) {
            (Some(body), _) => Ok(body.clone()),
            (None, Some(path)) if path.as_os_str() == "-" => {
                let mut text = String::new();
                std::io::stdin().read_to_string(&mut text).map_err(unreadable(path))?;
                Ok(text)
            }
            (None, Some(path)) => std::fs::read_to_string(path).map_err(unreadable(path)),
            (None, None) if may_be_empty => Ok(String::new()),
            (None, None) => {
                Err(CliError::usage("give the text with --body, or --body-file FILE (`-` for standard input)"))
            }
        }
    }
}
