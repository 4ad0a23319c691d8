//! `the-loop ask` (ASK-1 to ASK-4): an agent's question, on its ticket and in the event log.
//!
//! It runs in the process of whoever asks and needs nothing else to run: not the service, not the database. Where the
//! tracker's credentials are only the host's, the running host posts for it, over its socket.

use std::{path::Path, time::Duration};

use serde_json::{Value, json};
use the_loop_plugin_api::{Post, QuestionId, WorkItemRef, tracker::Posted, work_item::RefError};

use crate::{
    OpenOptions, TheLoop,
    admission::{Admitted, Question, admit_question},
    eventlog::{Event, EventLog, EventType, LogOptions},
    plugins::Plugins,
    service::{OpenError, Setup, in_process},
    sessions::{operations::OperationError, reply::sayable, text::sanitise, ticket::marked},
};

/// How long posting may take in all (ASK-4).
pub const POSTING: Duration = Duration::from_secs(20);
/// How long this process tries by itself before it asks the host.
const BY_ITSELF: Duration = Duration::from_secs(10);
/// How long the event log may take.
const RECORDING: Duration = Duration::from_secs(5);

/// What is asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AskRequest {
    /// The item's ref; `None` takes the session's own (ASK-4).
    pub reference: Option<String>,
    /// The question.
    pub question: String,
    /// What the agent does if nobody answers.
    pub default: Option<String>,
    /// Answers to choose from.
    pub choices: Vec<String>,
    /// Who asks; `None` takes the session's name.
    pub actor: Option<String>,
}

/// A question that was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// Its id.
    pub id: QuestionId,
    /// The item.
    pub item: WorkItemRef,
    /// The comment, or why there is none. The wait is real all the same (ASK-2).
    pub posted: Result<Posted, String>,
    /// Why the event log does not know of it, if it does not.
    pub unrecorded: Option<String>,
}

/// Why nothing was asked: nothing was posted and nothing recorded.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// No item was named, and this is no session of one.
    #[error("name the item with --work-item: this is no session of the-loop")]
    NoItem,
    /// The ref is malformed.
    #[error(transparent)]
    Ref(#[from] RefError),
    /// The question cannot be asked.
    #[error("the question cannot be asked: {0}")]
    Text(OperationError),
    /// Config or state are not where the session says.
    #[error(transparent)]
    Open(#[from] OpenError),
}

/// The host's own posting, for when this process cannot: given the question as JSON, it gives the comment.
#[async_trait::async_trait]
pub trait Host: Send + Sync {
    /// Asks the running host of a state root to post.
    async fn post(&self, root: &Path, question: &Value) -> Result<Posted, String>;
}

/// Asks a question.
///
/// # Errors
/// [`AskError`] says that nothing was posted and nothing recorded.
pub async fn ask(options: &OpenOptions, request: AskRequest, host: &dyn Host) -> Result<Asked, AskError> {
    let variable = |name: &str| options.variable(name).filter(|value| !value.is_empty()).map(str::to_owned);
    let reference = request.reference.or_else(|| variable("THE_LOOP_WORK_ITEM")).ok_or(AskError::NoItem)?;
    let item: WorkItemRef = reference.parse()?;
    let setup = Setup::read(options)?;
    setup.check_session(options)?;
    let limit = setup.loaded.config.routing.max_delivery_bytes;
    let whole: usize = request.choices.iter().chain(&request.default).map(String::len).sum();
    sayable(&request.question, limit.saturating_sub(whole as u64)).map_err(AskError::Text)?;
    let actor = request.actor.or_else(|| variable("THE_LOOP_SESSION")).unwrap_or_else(|| "agent".to_owned());
    let line = |text: String| sanitise(&text).replace(['\n', '\t'], " ");
    let question = Question {
        id: QuestionId::generate(),
        item: item.clone(),
        text: sanitise(&request.question),
        default: request.default.map(line),
        choices: request.choices.into_iter().map(line).collect(),
        actor: line(actor),
    };
    let as_json = to_json(&question);
    let event = Event::new(EventType::SessionAwaitingInput)
        .with("work_item", &question.item)
        .with("question_id", question.id)
        .with("question", &question.text)
        .with("choices", &question.choices)
        .with_some("default", question.default.as_ref())
        .with("actor", &question.actor);
    let id = question.id;
    let trying = post(options, &setup.root, admit_question(question), &as_json, host);
    let posted = tokio::time::timeout(POSTING, trying).await;
    let posted = posted.unwrap_or_else(|_| Err(format!("the tracker did not answer within {} s", POSTING.as_secs())));
    let event = event
        .with("comment_url", posted.as_ref().map(|posted| posted.url.as_str()).unwrap_or_default())
        .with("comment_posted", posted.is_ok());
    let unrecorded = record(&setup, event).await.err();
    Ok(Asked { id, item, posted, unrecorded })
}

/// Posts by itself, then through the host.
async fn post(
    options: &OpenOptions,
    root: &Path,
    admitted: Admitted<Question>,
    as_json: &Value,
    host: &dyn Host,
) -> Result<Posted, String> {
    let by_itself = async {
        let (_, plugins) = in_process(options).map_err(|error| error.to_string())?;
        write(&plugins, admitted).await
    };
    let own = tokio::time::timeout(BY_ITSELF, by_itself).await;
    let why = match own.unwrap_or_else(|_| Err(format!("the tracker did not answer within {} s", BY_ITSELF.as_secs())))
    {
        Ok(posted) => return Ok(posted),
        Err(why) => why,
    };
    // The comment is named by the question, so that it is written once even if this process had written it after all.
    host.post(root, as_json).await.map_err(|other| format!("{why}; and the running host: {other}"))
}

/// Writes the comment of a question that was let out.
async fn write(plugins: &Plugins, admitted: Admitted<Question>) -> Result<Posted, String> {
    let (question, _) = admitted.into_parts();
    let tracker = plugins
        .tracker(&question.item)
        .ok_or_else(|| format!("no tracker is linked for {}; `the-loop plugins` lists what is", question.item))?;
    let post = Post::new(plugins.key(), question.item.clone(), question.id.to_string(), marked(&shown(&question)));
    tracker.comment(&post).await.map_err(|error| error.to_string())
}

/// A question as people read it on the ticket.
fn shown(question: &Question) -> String {
    let mut text = format!("**Question** from `{}`:\n\n{}", question.actor.replace('`', "'"), question.text.trim());
    if !question.choices.is_empty() {
        text.push_str("\n\nOne of:\n");
        question.choices.iter().for_each(|choice| text.push_str(&format!("\n- {choice}")));
    }
    if let Some(default) = &question.default {
        text.push_str(&format!("\n\nWithout an answer: {default}"));
    }
    text.push_str("\n\n_Answer with a comment here._");
    text
}

async fn record(setup: &Setup, event: Event) -> Result<(), String> {
    let options = LogOptions {
        path: setup.log_path.clone(),
        source: "ask".to_owned(),
        // Only the host rotates.
        max_bytes: 0,
        keep: setup.loaded.config.event_log.keep,
        enabled: setup.loaded.config.event_log.enabled,
    };
    let log = EventLog::open(options).map_err(|error| error.to_string())?;
    let appended = tokio::time::timeout(RECORDING, log.append(event)).await;
    match appended {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err(format!("{} was not written within {} s", setup.log_path.display(), RECORDING.as_secs())),
    }
}

fn to_json(question: &Question) -> Value {
    json!({
        "id": question.id,
        "ref": question.item,
        "question": question.text,
        "default": question.default,
        "choices": question.choices,
        "actor": question.actor,
    })
}

/// What the host's socket takes: [`to_json`] read back.
///
/// # Errors
/// When it is none.
pub fn from_json(value: &Value) -> Result<Question, String> {
    let text = |field: &str| value[field].as_str().ok_or_else(|| format!("{field} is a text")).map(str::to_owned);
    Ok(Question {
        id: text("id")?.parse().map_err(|error: the_loop_plugin_api::ids::IdError| error.to_string())?,
        item: text("ref")?.parse().map_err(|error: RefError| error.to_string())?,
        text: text("question")?,
        default: value["default"].as_str().map(str::to_owned),
        choices: value["choices"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect(),
        actor: text("actor")?,
    })
}

impl TheLoop {
    /// Posts a question for an agent whose own process cannot (ASK-4).
    ///
    /// # Errors
    /// When it is not posted.
    pub async fn post_question(&self, question: Question) -> Result<Posted, String> {
        write(&self.core.plugins, admit_question(question)).await
    }
}

/// Where a person finds the guide for agents.
pub const GUIDE: &str = include_str!("../../docs/agent-guide.md");

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admission::steps::MARKER;

    fn question(text: &str) -> Question {
        Question {
            id: QuestionId::generate(),
            item: "local:octo/hello#1".parse().unwrap(),
            text: text.to_owned(),
            default: Some("ascending".to_owned()),
            choices: vec!["ascending".to_owned(), "descending".to_owned()],
            actor: "loop-x".to_owned(),
        }
    }

    #[test]
    fn ask_1_a_question_is_stamped_once_and_shows_its_choices() {
        let text = marked(&shown(&question("Which order?")));
        assert_eq!(text.matches(MARKER).count(), 1);
        for part in
            ["Which order?", "- descending", "Without an answer: ascending", "`loop-x`", "_Posted by the-loop._"]
        {
            assert!(text.contains(part), "{part}: {text}");
        }
        let stamped = marked(&shown(&question(&format!("Which order?\n{MARKER}"))));
        assert_eq!(stamped.matches(MARKER).count(), 1, "an agent that stamped it already");
    }

    #[test]
    fn ask_4_what_the_host_is_asked_to_post_is_what_was_asked() {
        let question = question("Which?");
        assert_eq!(from_json(&to_json(&question)), Ok(question));
        assert!(from_json(&json!({"id": "x"})).is_err());
    }

    #[test]
    fn dir_2_the_guide_names_ask() {
        for named in ["the-loop ask --question", "control keyword", MARKER] {
            assert!(GUIDE.contains(named), "{named}");
        }
    }
}
