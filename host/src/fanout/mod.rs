//! What is posted into channels (ASK-6): an agent's question, after its ticket, to every enabled channel that subscribes to
//! it. It is read from the event log, so a question that was asked while the host was down is posted at its next start, if
//! it is still open. A channel's failure changes nothing else: it is recorded, and tried again while the question is open.

#[cfg(test)]
mod tests;

use std::{path::PathBuf, sync::Arc, time::Duration};

use the_loop_plugin_api::{
    Channel, Clock, SessionKey,
    channel::{Message, Thread},
    registry::HostKey,
    session::StandingNameError,
    work_item::RefError,
};
use tokio_util::sync::CancellationToken;

use crate::{
    attention::{self, Board, OpenQuestion},
    eventlog::{Event, EventLog, EventType, Level},
    sessions::core::Core,
    state::{ChannelRecord, StateError, Store},
};

/// Between two looks at the log, which cost one `stat` while nothing is new.
const LOOK: Duration = Duration::from_millis(200);
/// How long a channel may take to post.
const POSTING: Duration = Duration::from_secs(30);
/// Until what was not posted is tried again: doubled with each failure, up to the longest.
const AGAIN: Duration = Duration::from_secs(5);
const AGAIN_AT_MOST: Duration = Duration::from_secs(300);
/// How the log names what belongs to no work item.
const STANDING: &str = "standing:";

/// Posts into one channel what is for it.
struct Fanout {
    name: &'static str,
    channel: Arc<dyn Channel>,
    board: Arc<Board>,
    log: EventLog,
    log_path: PathBuf,
    records: Store<ChannelRecord>,
    key: &'static HostKey,
    clock: Arc<dyn Clock>,
}

/// Posts into every channel that is enabled and subscribes to questions, until `stop`. Each goes its own pace.
pub(crate) async fn run(core: Arc<Core>, stop: CancellationToken) {
    let asked = EventType::SessionAwaitingInput.name();
    let wanted = core.plugins.channels().filter(|(_, channel)| channel.enabled() && channel.subscribes(asked));
    let posting = wanted.map(|(name, channel)| Fanout {
        name,
        channel,
        board: Arc::clone(&core.board),
        log: core.log.clone(),
        log_path: core.config.current().event_log_path(),
        records: Store::new(core.root.channels()),
        key: core.plugins.key(),
        clock: core.clock.clone(),
    });
    futures::future::join_all(posting.map(|one| one.run(stop.clone()))).await;
}

/// Something was not posted; the log says what and why.
#[derive(Debug)]
struct NotPosted;

impl Fanout {
    async fn run(self, stop: CancellationToken) {
        let Some(mut record) = self.load().await else { return };
        let mut pause = AGAIN;
        loop {
            let wait = match self.post_open(&mut record).await {
                Ok(()) => {
                    pause = AGAIN;
                    LOOK
                }
                Err(NotPosted) => {
                    let wait = pause;
                    pause = (pause * 2).min(AGAIN_AT_MOST);
                    wait
                }
            };
            tokio::select! {
                () = self.clock.sleep(wait) => {}
                () = stop.cancelled() => return,
            }
        }
    }

    /// Posts every open question that this channel does not have yet. One that fails does not hold up the others.
    async fn post_open(&self, record: &mut ChannelRecord) -> Result<(), NotPosted> {
        // Where the log cannot be read, `attention` says so; what was known before is posted.
        let _ = attention::look(&self.board, self.log_path.clone()).await;
        let mut outcome = Ok(());
        for (subject, question) in self.board.questions() {
            if record.posted.get(&subject) == Some(&question.id) {
                continue;
            }
            let event = |kind| {
                let event = Event::new(kind).with("channel", self.name);
                let event = match subject.strip_prefix(STANDING) {
                    Some(standing) => event.with("standing", standing),
                    None => event.with("work_item", &subject),
                };
                event.with("event_type", EventType::SessionAwaitingInput.name())
            };
            match self.post(&subject, &question, record.threads.get(&subject)).await {
                Ok(thread) => {
                    self.log.emit(event(EventType::ChannelPosted).with("thread", &thread.id));
                    record.threads.insert(subject.clone(), thread);
                    record.posted.insert(subject, question.id);
                    self.save(record).await;
                }
                Err(error) => {
                    self.log.emit(event(EventType::ChannelPostFailed).with("error", error));
                    outcome = Err(NotPosted);
                }
            }
        }
        outcome
    }

    async fn post(&self, subject: &str, question: &OpenQuestion, thread: Option<&Thread>) -> Result<Thread, String> {
        let message = Message::new(self.key, question.id.clone(), shown(subject, question), question.choices.clone());
        let posting = async {
            let posted = match thread {
                Some(thread) => self.channel.post(thread, &message).await.map(|()| thread.clone()),
                None => self.channel.open(&session_of(subject)?, &message).await,
            };
            posted.map_err(|error| error.to_string())
        };
        let late = |_| Err(format!("the channel did not answer within {} s", POSTING.as_secs()));
        tokio::time::timeout(POSTING, posting).await.unwrap_or_else(late)
    }

    /// What the channel was given before; `None` where that is unknown and may not be replaced: posting on could double
    /// everything.
    async fn load(&self) -> Option<ChannelRecord> {
        let (records, name) = (self.records.clone(), self.name);
        let loaded = match tokio::task::spawn_blocking(move || records.load(name)).await {
            Ok(loaded) => loaded.map_err(|error| {
                (matches!(&error, StateError::Damaged(found) if found.set_aside.is_some()), error.to_string())
            }),
            Err(error) => Err((false, error.to_string())),
        };
        match loaded {
            Ok(found) => Some(found.unwrap_or_else(|| ChannelRecord::new(name))),
            Err((true, problem)) => {
                self.warn(problem);
                Some(ChannelRecord::new(name))
            }
            Err((false, problem)) => {
                self.warn(format!(
                    "{problem}; nothing is posted into {name} until the host is started with it repaired"
                ));
                None
            }
        }
    }

    async fn save(&self, record: &ChannelRecord) {
        let (records, name, record) = (self.records.clone(), self.name, record.clone());
        let saved = match tokio::task::spawn_blocking(move || records.save(name, &record)).await {
            Ok(saved) => saved.map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        if let Err(error) = saved {
            self.warn(format!("what {name} was given is not kept: {error}"));
        }
    }

    fn warn(&self, detail: String) {
        let event = Event::new(EventType::HostWarning).with("subject", "channels").with("detail", detail);
        self.log.emit(event.level(Level::Warning));
    }
}

fn session_of(subject: &str) -> Result<SessionKey, String> {
    match subject.strip_prefix(STANDING) {
        Some(name) => {
            name.parse().map(|name| SessionKey::Standing { name }).map_err(|error: StandingNameError| error.to_string())
        }
        None => subject.parse().map(SessionKey::work_item).map_err(|error: RefError| error.to_string()),
    }
}

/// A question as people read it in a channel, which shows the choices its own way.
fn shown(subject: &str, question: &OpenQuestion) -> String {
    let mut text = format!(
        "**Question** from `{}` ({subject}):\n\n{}",
        question.actor.replace('`', "'"),
        question.question.trim()
    );
    if let Some(default) = &question.default {
        text.push_str(&format!("\n\nWithout an answer: {default}"));
    }
    if !question.comment_url.is_empty() {
        text.push_str(&format!("\n\n{}", question.comment_url));
    }
    text
}
