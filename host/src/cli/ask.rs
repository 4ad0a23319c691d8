//! `the-loop ask` (ASK-1 to ASK-4): in this process, whatever else does or does not run.

use std::{
    io::Read,
    path::{Path, PathBuf},
    process::ExitCode,
};

use http::Method;
use serde_json::Value;
use the_loop_plugin_api::tracker::Posted;

use super::{
    CliError, Context, block_on, client,
    error::chained,
    output::{note, say},
};
use crate::{
    ask::{self, AskError, AskRequest, Host},
    state,
};

/// The most that is read of a question's file, in bytes: more than any limit allows.
const MOST: u64 = 16 << 20;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  the-loop ask --question 'Ascending or descending?' --choice ascending --choice descending"
)]
pub(super) struct Args {
    /// The work item's ref; inside a session its own, if left out
    #[arg(long, value_name = "REF")]
    work_item: Option<String>,
    /// The question
    #[arg(long, value_name = "TEXT", required_unless_present = "question_file", conflicts_with = "question_file")]
    question: Option<String>,
    /// A file that holds the question; - is standard input
    #[arg(long, value_name = "PATH")]
    question_file: Option<PathBuf>,
    /// What you do if nobody answers
    #[arg(long, value_name = "TEXT")]
    default: Option<String>,
    /// An answer to choose from; may be given again
    #[arg(long = "choice", value_name = "TEXT")]
    choices: Vec<String>,
    /// Who asks; inside a session its name, if left out
    #[arg(long)]
    actor: Option<String>,
}

pub(super) fn run(context: &Context, args: Args) -> Result<ExitCode, CliError> {
    let question = match (args.question, args.question_file) {
        (Some(question), _) => question,
        (None, Some(path)) => read(context, &path)?,
        (None, None) => String::new(),
    };
    let request = AskRequest {
        reference: args.work_item,
        question,
        default: args.default,
        choices: args.choices,
        actor: args.actor,
    };
    let asked = block_on(async {
        ask::ask(&context.options, request, &Socket).await.map_err(|error| match error {
            AskError::NoItem | AskError::Ref(_) | AskError::Text(_) => CliError::usage(error.to_string()),
            AskError::Open(error) => chained(error),
        })
    })?;
    if let Some(why) = &asked.unrecorded {
        note(format_args!("the-loop: the event log does not know of the question: {why}"));
    }
    match asked.posted {
        Ok(posted) => {
            say(format_args!("{}: asked ({}); end your turn, the answer comes as a message", asked.item, asked.id))?;
            say(posted.url)?;
            Ok(ExitCode::SUCCESS)
        }
        Err(why) => {
            note(format_args!(
                "the-loop: the question is not on the ticket: {why}. It {} in `the-loop attention`, and can be answered from the control plane",
                if asked.unrecorded.is_none() { "is shown" } else { "is not shown either" }
            ));
            Ok(ExitCode::from(1))
        }
    }
}

/// A text from a file, or from standard input.
pub(super) fn read(context: &Context, path: &Path) -> Result<String, CliError> {
    let mut text = String::new();
    let read = if path == Path::new("-") {
        std::io::stdin().take(MOST).read_to_string(&mut text)
    } else {
        std::fs::File::open(context.options.cwd.join(path)).and_then(|file| file.take(MOST).read_to_string(&mut text))
    };
    read.map_err(|error| CliError::usage(format!("{} cannot be read", path.display())).because(error))?;
    Ok(text)
}

/// The running host, through its socket.
struct Socket;

#[async_trait::async_trait]
impl Host for Socket {
    async fn post(&self, root: &Path, question: &Value) -> Result<Posted, String> {
        let socket = state::find_socket(root).ok_or("it does not run")?;
        let answer = client::send(&socket, Method::POST, "/ask", Some(question), "ask").await;
        let answer = answer.map_err(|error| format!("it does not answer: {error}"))?;
        if answer.status.is_success() {
            return serde_json::from_value(answer.body).map_err(|error| error.to_string());
        }
        Err(answer.body["error"]["message"].as_str().unwrap_or("it refused").to_owned())
    }
}
