//! Which questions are open, as the event log tells (ATT-2): kept in memory and brought up to date by what was added to the
//! log, so that asking does not depend on its length (EVT-5).

use std::{
    collections::HashMap,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};

use jiff::Timestamp;
use serde_json::Value;

use crate::eventlog::{EventLogError, EventType, Follower, Query, TypeGlob, follow, record_instant};

/// A question that waits for a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenQuestion {
    /// Its id; empty for one that was recorded without.
    pub id: String,
    /// What is asked. The agent's own text.
    pub question: String,
    /// Answers to choose from.
    pub choices: Vec<String>,
    /// What the agent does if nobody answers.
    pub default: Option<String>,
    /// Who asked, as it said itself.
    pub actor: String,
    /// Where the comment is that carries it; empty where it could not be posted.
    pub comment_url: String,
    /// Since when it waits.
    pub since: Option<Timestamp>,
}

/// A session that could not be brought up and is not tried again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GivenUp {
    /// What is wrong, as the log says.
    pub error: String,
    /// Since when.
    pub since: Option<Timestamp>,
}

/// What the log tells of everything that can wait for a person.
#[derive(Default)]
pub struct Board(Mutex<State>);

#[derive(Default)]
struct State {
    follower: Option<Follower>,
    subjects: HashMap<String, Subject>,
}

#[derive(Default)]
struct Subject {
    question: Option<OpenQuestion>,
    given_up: Option<GivenUp>,
}

/// The types that open or close something.
const TYPES: [EventType; 9] = [
    EventType::SessionAwaitingInput,
    EventType::SessionReplySent,
    EventType::StandingSaid,
    EventType::SessionSpawned,
    EventType::SessionRespawned,
    EventType::SessionSpawnFailed,
    EventType::SessionClosed,
    EventType::SessionCleaned,
    EventType::SessionReset,
];

/// What is open, by subject: a work item's ref, or `standing:<name>`.
pub type Open<T> = Vec<(String, T)>;

impl Board {
    /// Reads what was added to the log since the last look. Blocks.
    ///
    /// # Errors
    /// When the log cannot be read; what was known before stands.
    pub fn look(&self, log: &Path) -> Result<(), EventLogError> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let State { follower, subjects } = &mut *state;
            let Some(follower) = follower else {
                let types = TYPES.iter().map(|kind| TypeGlob::new(kind.name())).collect();
                let (found, following) = follow(log, Query { types, ..Query::default() })?;
                subjects.clear();
                found.records.iter().for_each(|record| take(subjects, record));
                state.follower = Some(following);
                continue;
            };
            let followed = follower.poll()?;
            if followed.missed {
                // What was missed may have closed something: everything is read again.
                state.follower = None;
                continue;
            }
            followed.records.iter().for_each(|record| take(subjects, record));
            if !followed.more {
                return Ok(());
            }
        }
    }

    /// The open question of a subject, as of the last look.
    pub fn question(&self, subject: &str) -> Option<OpenQuestion> {
        self.state(|subjects| subjects.get(subject).and_then(|subject| subject.question.clone()))
    }

    /// Every open question, as of the last look.
    pub fn questions(&self) -> Open<OpenQuestion> {
        self.state(|subjects| {
            subjects.iter().filter_map(|(name, subject)| Some((name.clone(), subject.question.clone()?))).collect()
        })
    }

    /// Every session that was given up, as of the last look.
    pub fn given_up(&self) -> Open<GivenUp> {
        self.state(|subjects| {
            subjects.iter().filter_map(|(name, subject)| Some((name.clone(), subject.given_up.clone()?))).collect()
        })
    }

    fn state<T>(&self, read: impl FnOnce(&HashMap<String, Subject>) -> T) -> T {
        read(&self.0.lock().unwrap_or_else(PoisonError::into_inner).subjects)
    }
}

/// [`Board::look`], off the async threads.
pub(crate) async fn look(board: &Arc<Board>, log: std::path::PathBuf) -> Result<(), String> {
    let board = Arc::clone(board);
    match tokio::task::spawn_blocking(move || board.look(&log)).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(error.to_string()),
        Err(error) => Err(error.to_string()),
    }
}

/// One record, in the order of the log: an answer that comes after a question closes it, whatever the clocks said.
fn take(subjects: &mut HashMap<String, Subject>, record: &Value) {
    let text = |field: &str| record[field].as_str().unwrap_or_default().to_owned();
    let name = match (record["work_item"].as_str(), record["standing"].as_str()) {
        (_, Some(standing)) => format!("standing:{standing}"),
        (Some(item), None) => item.to_owned(),
        (None, None) => return,
    };
    let subject = subjects.entry(name).or_default();
    let since = record["ts"].as_str().and_then(record_instant);
    let kind = record["event"].as_str().unwrap_or_default();
    match TYPES.into_iter().find(|known| known.name() == kind) {
        Some(EventType::SessionAwaitingInput) => {
            let choices = record["choices"].as_array().into_iter().flatten();
            subject.question = Some(OpenQuestion {
                id: text("question_id"),
                question: text("question"),
                choices: choices.filter_map(|choice| choice.as_str().map(str::to_owned)).collect(),
                default: record["default"].as_str().map(str::to_owned),
                actor: text("actor"),
                comment_url: text("comment_url"),
                since,
            });
        }
        Some(EventType::SessionReplySent | EventType::StandingSaid) => subject.question = None,
        Some(EventType::SessionSpawned | EventType::SessionRespawned) => subject.given_up = None,
        Some(EventType::SessionSpawnFailed) => {
            let given_up = record["will_retry"] == false;
            subject.given_up = given_up.then(|| GivenUp { error: text("error"), since });
        }
        // Nobody waits any more.
        Some(EventType::SessionClosed | EventType::SessionCleaned | EventType::SessionReset) => {
            *subject = Subject::default();
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eventlog::{Event, EventLog, LogOptions};

    #[test]
    fn att_2_a_question_is_open_until_an_answer_comes_after_it_in_the_log() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("events.jsonl");
        let options =
            LogOptions { path: path.clone(), source: "test".to_owned(), max_bytes: 0, keep: 1, enabled: true };
        let log = EventLog::open(options).unwrap();
        let board = Board::default();
        let item = "github:octo/hello#7";
        let asked = |question: &str| {
            let event = Event::new(EventType::SessionAwaitingInput).with("work_item", item).with("question", question);
            log.append_blocking(event).unwrap();
        };
        let answered = || {
            let event = Event::new(EventType::SessionReplySent).with("work_item", item).with("surface", "api");
            log.append_blocking(event).unwrap();
        };
        let open = || {
            board.look(&path).unwrap();
            board.question(item).map(|open| open.question)
        };
        assert_eq!(open(), None);
        asked("one?");
        asked("two?");
        assert_eq!(open(), Some("two?".to_owned()));
        answered();
        assert_eq!(open(), None);
        answered();
        asked("three?");
        assert_eq!(open(), Some("three?".to_owned()), "an answer of before does not count");
        let fresh = Board::default();
        fresh.look(&path).unwrap();
        assert_eq!(fresh.questions(), board.questions(), "whoever reads it whole sees the same");
        log.append_blocking(Event::new(EventType::SessionClosed).with("work_item", item)).unwrap();
        assert_eq!(open(), None, "a session that ended waits no more");
    }
}
