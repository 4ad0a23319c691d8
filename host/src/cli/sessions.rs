//! `the-loop sessions` (SES-5, CTL-10).

use std::{collections::BTreeSet, path::PathBuf, process::ExitCode};

use clap::Subcommand;
use serde_json::{Value, json};
use the_loop_plugin_api::WorkItemRef;

use super::{
    CliError, Context, block_on,
    client::{Client, encoded},
    error::chained,
    output::{self, Format, note, say},
};
use crate::{
    TheLoop,
    admission::Surface,
    service,
    sessions::operations::reset_text,
    state::{InstanceLock, LockState},
};

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  the-loop sessions list")]
pub(super) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Args)]
struct Item {
    /// The work item's ref, such as github:octo/repo#15
    #[arg(long, value_name = "REF")]
    work_item: WorkItemRef,
}

#[derive(Debug, clap::Args)]
struct Command {
    #[command(flatten)]
    item: Item,
    /// Do not post the keyword on the ticket
    #[arg(long)]
    no_comment: bool,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// List sessions
    #[command(after_help = "Example:\n  the-loop sessions list --status active --format jsonl")]
    List {
        /// Only of this status: starting, active, paused, stopped, closed
        #[arg(long)]
        status: Option<String>,
        /// How to print it
        #[arg(long, value_enum, default_value_t)]
        format: Format,
    },
    /// Show one session
    #[command(after_help = "Example:\n  the-loop sessions show --work-item github:octo/repo#15")]
    Show {
        #[command(flatten)]
        item: Item,
        /// How to print it
        #[arg(long, value_enum, default_value_t)]
        format: Format,
    },
    /// Attach this terminal to a session's; read-only for a closed one
    #[command(after_help = "Example:\n  the-loop sessions attach --work-item github:octo/repo#15")]
    Attach {
        #[command(flatten)]
        item: Item,
        /// Only look
        #[arg(long, short)]
        read_only: bool,
    },
    /// Start a session, or take its conversation up again
    #[command(after_help = "Example:\n  the-loop sessions start --work-item github:octo/repo#15")]
    Start(Command),
    /// Deliver nothing until resumed
    #[command(after_help = "Example:\n  the-loop sessions pause --work-item github:octo/repo#15")]
    Pause(Command),
    /// Deliver again
    #[command(after_help = "Example:\n  the-loop sessions resume --work-item github:octo/repo#15")]
    Resume(Command),
    /// End the harness and keep the conversation
    #[command(after_help = "Example:\n  the-loop sessions stop --work-item github:octo/repo#15")]
    Stop(Command),
    /// End it and remove terminal, checkout and local record
    #[command(after_help = "Example:\n  the-loop sessions cleanup --work-item github:octo/repo#15")]
    Cleanup {
        #[command(flatten)]
        command: Command,
        /// Remove the checkout although it holds work that is nowhere else
        #[arg(long)]
        discard_work: bool,
    },
    /// Answer a session that runs; nothing is started for it
    #[command(after_help = "Example:\n  the-loop sessions reply --work-item github:octo/repo#15 --text 'Descending.'")]
    Reply {
        #[command(flatten)]
        item: Item,
        /// What to say
        #[arg(long, required_unless_present = "file", conflicts_with = "file")]
        text: Option<String>,
        /// A file that holds it; - is standard input
        #[arg(long, value_name = "PATH")]
        file: Option<PathBuf>,
        /// Who says it; you, if left out
        #[arg(long)]
        actor: Option<String>,
        /// Do not tell the ticket
        #[arg(long)]
        no_comment: bool,
    },
    /// Take over a conversation that was started elsewhere
    #[command(
        after_help = "Example:\n  the-loop sessions register --work-item github:octo/repo#15 --harness shell --conversation 0b6f…"
    )]
    Register {
        #[command(flatten)]
        item: Item,
        /// The harness
        #[arg(long)]
        harness: String,
        /// The harness's conversation id
        #[arg(long)]
        conversation: String,
        /// The folder it works in
        #[arg(long, default_value = ".")]
        cwd: PathBuf,
        /// Replace a registered conversation
        #[arg(long)]
        force: bool,
    },
    /// Record that a pull request delivers a work item, so that its events go to the item's session
    #[command(after_help = "Example:\n  the-loop sessions link-pr --work-item github:octo/repo#15 --pull-request 16")]
    LinkPr {
        #[command(flatten)]
        item: Item,
        /// The pull request: a number in the item's repository, or a ref
        #[arg(long, value_name = "PR", value_parser = pull_request)]
        pull_request: String,
    },
    /// End a session; the next start is a fresh conversation
    #[command(after_help = "Example:\n  the-loop sessions close --work-item github:octo/repo#15 --kill-terminal")]
    Close {
        #[command(flatten)]
        item: Item,
        /// Keep the terminal for reading, whatever the config says
        #[arg(long, conflicts_with = "kill_terminal")]
        keep_terminal: bool,
        /// Remove the terminal, whatever the config says
        #[arg(long)]
        kill_terminal: bool,
    },
    /// Forget what this machine knows of an item; the event log stays
    #[command(after_help = "Example:\n  the-loop sessions reset --work-item github:octo/repo#15 --dry-run")]
    Reset {
        /// The work item's ref
        #[arg(long, value_name = "REF", required_unless_present = "all")]
        work_item: Option<WorkItemRef>,
        /// Every item
        #[arg(long, conflicts_with = "work_item")]
        all: bool,
        /// Say what would be removed, and remove nothing
        #[arg(long)]
        dry_run: bool,
        /// Remove checkouts although they hold work that is nowhere else
        #[arg(long)]
        discard_work: bool,
    },
}

const COLUMNS: [output::Column; 6] = [
    ("REF", "/ref"),
    ("STATUS", "/status"),
    ("HARNESS", "/harness"),
    ("STATE", "/harnessState/state"),
    ("SESSION", "/tmuxTarget"),
    ("LAST", "/lastEventAt"),
];

pub(super) fn run(context: &Context, args: Args) -> Result<ExitCode, CliError> {
    let client = match args.verb {
        Verb::Stop(_) => Client::to_recover(context)?,
        _ => Client::new(context)?,
    };
    block_on(async {
        match args.verb {
            Verb::List { status, format } => {
                let query = status.map(|status| format!("?status={}", encoded(&status))).unwrap_or_default();
                let rows = client.get(&format!("/api/v1/sessions{query}")).await?;
                output::rows(format, rows.as_array().map_or(&[], Vec::as_slice), &COLUMNS, "there is no session")?;
            }
            Verb::Show { item, format } => {
                let row =
                    client.get(&format!("/api/v1/sessions/one?ref={}", encoded(&item.work_item.to_string()))).await?;
                output::one(format, &row, lines)?;
            }
            Verb::Attach { item, read_only } => return attach(context, &item.work_item.to_string(), read_only),
            Verb::Start(command) => return control(&client, "start", &command, false).await,
            Verb::Pause(command) => return control(&client, "pause", &command, false).await,
            Verb::Resume(command) => return control(&client, "resume", &command, false).await,
            Verb::Stop(command) => return control(&client, "stop", &command, false).await,
            Verb::Cleanup { command, discard_work } => {
                return control(&client, "cleanup", &command, discard_work).await;
            }
            Verb::Register { item, harness, conversation, cwd, force } => {
                let cwd = context.options.cwd.join(cwd);
                let body = json!({"ref": item.work_item, "harness": harness, "harnessSessionId": conversation, "cwd": cwd, "force": force});
                told(&client.post("/api/v1/sessions/register", &body).await?)?;
            }
            Verb::Reply { item, text, file, actor, no_comment } => {
                let text = match (text, file) {
                    (Some(text), _) => text,
                    (None, Some(path)) => super::ask::read(context, &path)?,
                    (None, None) => String::new(),
                };
                let actor = actor.unwrap_or_default();
                let body = json!({"ref": item.work_item, "text": text, "actor": actor, "comment": !no_comment});
                let answer = client.post("/api/v1/sessions/reply", &body).await?;
                told(&answer)?;
                return Ok(code(&answer));
            }
            Verb::LinkPr { item, pull_request } => {
                let body = json!({"ref": item.work_item, "pullRequest": pull_request});
                told(&client.post("/api/v1/sessions/link-pr", &body).await?)?;
            }
            Verb::Close { item, keep_terminal, kill_terminal } => {
                let keep = if keep_terminal { Some(true) } else { kill_terminal.then_some(false) };
                let answer =
                    client.post("/api/v1/sessions/close", &json!({"ref": item.work_item, "keepTmux": keep})).await?;
                told(&answer)?;
                return Ok(code(&answer));
            }
            Verb::Reset { work_item, all: _, dry_run, discard_work } => {
                reset(context, &client, work_item, How { dry_run, discard_work }).await?;
            }
        }
        Ok(ExitCode::SUCCESS)
    })
}

async fn control(client: &Client, verb: &str, command: &Command, discard_work: bool) -> Result<ExitCode, CliError> {
    let comment = !command.no_comment;
    let body = json!({"ref": command.item.work_item, "verb": verb, "comment": comment, "discardWork": discard_work});
    let answer = client.post("/api/v1/sessions/control", &body).await?;
    told(&answer)?;
    Ok(code(&answer))
}

/// How a reset is done.
#[derive(Clone, Copy)]
struct How {
    dry_run: bool,
    discard_work: bool,
}

/// Through the service where one runs, and in process where none does (CLI-3). Every item, if none is named.
async fn reset(context: &Context, client: &Client, item: Option<WorkItemRef>, how: How) -> Result<(), CliError> {
    if InstanceLock::state(&client.root().join("local/service.pid")) == LockState::Free {
        let host = TheLoop::open(context.options.clone()).await?;
        let actor = client.actor().to_owned();
        return host.alone(|host| reset_here(host, actor, item, how)).await?;
    }
    let refs = match item {
        Some(item) => vec![item.to_string()],
        None => {
            let items = client.get("/api/v1/work-items").await?;
            let sessions = client.get("/api/v1/sessions").await?;
            let both = items.as_array().into_iter().chain(sessions.as_array()).flatten();
            let refs: BTreeSet<&str> = both.filter_map(|row| row["ref"].as_str()).collect();
            refs.into_iter().map(str::to_owned).collect()
        }
    };
    for reference in &refs {
        let body = json!({"ref": reference, "dryRun": how.dry_run, "discardWork": how.discard_work});
        told(&client.post("/api/v1/sessions/reset", &body).await?)?;
    }
    said_if_none(&refs)
}

async fn reset_here(host: TheLoop, actor: String, item: Option<WorkItemRef>, how: How) -> Result<(), CliError> {
    let refs = match item {
        Some(item) => vec![item.to_string()],
        None => {
            let items = host.work_items().into_iter().map(|row| row.reference.to_string());
            let sessions = host.sessions(None).await.into_iter().map(|row| row.reference.to_string());
            items.chain(sessions).collect::<BTreeSet<String>>().into_iter().collect()
        }
    };
    for reference in &refs {
        let removed = match how.dry_run {
            true => host.reset_preview(reference).await,
            false => host.reset(Surface::Cli, &actor, reference, how.discard_work).await,
        };
        say(reset_text(reference, &removed.map_err(chained)?, how.dry_run))?;
    }
    said_if_none(&refs)
}

fn said_if_none(refs: &[String]) -> Result<(), CliError> {
    if refs.is_empty() {
        note("nothing is known of any item");
    }
    Ok(())
}

/// A number in the item's repository, or a ref.
fn pull_request(text: &str) -> Result<String, String> {
    let is_number = text.strip_prefix('#').unwrap_or(text).parse::<std::num::NonZeroU64>().is_ok();
    match text.parse::<WorkItemRef>() {
        Err(error) if !is_number => Err(error.to_string()),
        _ => Ok(text.to_owned()),
    }
}

/// Replaces this process by the one that attaches.
fn attach(context: &Context, reference: &str, read_only: bool) -> Result<ExitCode, CliError> {
    use std::os::unix::process::CommandExt;
    let argv = service::attach_command(&context.options, reference, read_only).map_err(chained)?;
    let Some((program, arguments)) = argv.split_first() else {
        return Err(CliError::failed("the runner names no command to attach with"));
    };
    let error = std::process::Command::new(program).args(arguments).env_remove("TMUX").exec();
    Err(CliError::failed(format!("{program} could not be run")).because(error))
}

fn told(answer: &Value) -> Result<(), CliError> {
    for message in answer["messages"].as_array().into_iter().flatten() {
        let text = crate::sessions::text::sanitise(message["text"].as_str().unwrap_or_default());
        if message["stream"] == "stderr" { note(text) } else { say(text)? }
    }
    Ok(())
}

fn code(answer: &Value) -> ExitCode {
    ExitCode::from(answer["exitCode"].as_u64().and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}

fn lines(row: &Value) -> String {
    let text = |pointer: &str| {
        crate::sessions::text::sanitise(row.pointer(pointer).and_then(Value::as_str).unwrap_or("-")).replace('\n', " ")
    };
    let mut out = String::new();
    for (label, pointer) in [
        ("item", "/ref"),
        ("title", "/title"),
        ("url", "/url"),
        ("status", "/status"),
        ("harness", "/harness"),
        ("conversation", "/harnessSessionId"),
        ("state", "/harnessState/state"),
        ("evidence", "/harnessState/evidence"),
        ("detail", "/harnessState/detail"),
        ("session", "/tmuxTarget"),
        ("folder", "/cwd"),
        ("created", "/createdAt"),
        ("last event", "/lastEventAt"),
        ("last command", "/control/command"),
        ("by", "/control/actor"),
    ] {
        out.push_str(&format!("{label:<13} {}\n", text(pointer)));
    }
    out
}
