//! Writes, one after the other for each repository, at GitHub's pace, until each has a definite end (GHT-1, GHT-3).

use std::{
    collections::HashMap,
    io,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures::future::join_all;
use jiff::ToSpan;
use serde_json::{Value, json};
use the_loop_plugin_api::{
    PluginContext, WorkItemRef,
    tracker::{Posted, TrackerError},
};
use tokio::sync;

use super::{
    client::{CallError, Client},
    outbox::{Entry, Outbox, Write},
};

/// How many paces the longest wait between two tries takes.
const LONGEST_BACKOFF: u32 = 300;
/// How many paces are waited where GitHub asks for a wait and does not say how long: a minute.
const UNTOLD: u32 = 60;

/// The writes of one repository take turns; the last one's time stands behind the lock, in time since boot.
type Lane = Arc<sync::Mutex<Option<Duration>>>;

/// Writes to GitHub.
pub(super) struct Writer {
    client: Arc<Client>,
    context: PluginContext,
    outbox: Outbox,
    pace: Duration,
    lanes: Mutex<HashMap<(String, String), Lane>>,
}

/// How one try ended.
enum Tried {
    /// It is written; a comment says where.
    Done(Option<Posted>),
    /// It will never be written.
    Never(TrackerError),
    /// Try again, after this long if GitHub said so.
    Again(Option<Duration>),
}

impl Writer {
    pub(super) fn new(client: Arc<Client>, context: PluginContext, pace: Duration) -> Self {
        let outbox = Outbox::new(context.folder());
        Self { client, context, outbox, pace, lanes: Mutex::default() }
    }

    /// Writes it, however long that takes. When the host stops first, it is written after the next start.
    pub(super) async fn write(&self, entry: Entry) -> Result<Option<Posted>, TrackerError> {
        self.client.check().await.map_err(|error| unavailable(&error))?;
        self.outbox.put(&entry).await.map_err(|error| unrecorded(&error))?;
        let stop = self.context.stop();
        stop.run_until_cancelled(self.in_turn(&entry))
            .await
            .unwrap_or_else(|| Err(unavailable(&"the host stops; it is written after the next start")))
    }

    /// Writes what an earlier process could not.
    pub(super) async fn take_up(&self) {
        // Without a token nothing can be written; the entries stay for a start that has one.
        if self.client.check().await.is_err() {
            return;
        }
        let Ok(pending) = self.outbox.pending(self.context.clock().now()).await else { return };
        let mut lanes: HashMap<(String, String), Vec<Entry>> = HashMap::new();
        for entry in pending {
            lanes.entry(repository(&entry.item)).or_default().push(entry);
        }
        let each = lanes.into_values().map(async |entries: Vec<Entry>| {
            for entry in entries {
                // It has its end, one way or the other; whoever asked for it is gone.
                let _ = self.in_turn(&entry).await;
            }
        });
        self.context.stop().run_until_cancelled(join_all(each)).await;
    }

    async fn in_turn(&self, entry: &Entry) -> Result<Option<Posted>, TrackerError> {
        let lane = self.lane(&entry.item);
        let mut last = lane.lock().await;
        let name = entry.name();
        // While it waited for its turn, the same write may have been done for someone else.
        let Some(mut entry) = self.outbox.get(&name).await.map_err(|error| unrecorded(&error))? else {
            return Ok(None);
        };
        if let Some(posted) = entry.done {
            return Ok(Some(posted));
        }
        let mut failures = 0;
        loop {
            self.pause_since(*last).await;
            let tried = self.one(&mut entry).await.map_err(|error| unrecorded(&error))?;
            *last = Some(self.context.clock().since_boot());
            match tried {
                Tried::Done(posted) => {
                    match &posted {
                        Some(_) => {
                            entry.done.clone_from(&posted);
                            self.outbox.save(&entry).await
                        }
                        None => self.outbox.remove(&name).await,
                    }
                    .map_err(|error| unrecorded(&error))?;
                    return Ok(posted);
                }
                Tried::Never(error) => {
                    self.outbox.remove(&name).await.map_err(|error| unrecorded(&error))?;
                    return Err(error);
                }
                Tried::Again(told) => {
                    let backoff = self.pace * 2_u32.saturating_pow(failures).min(LONGEST_BACKOFF);
                    failures += 1;
                    self.context.clock().sleep(told.unwrap_or(backoff)).await;
                }
            }
        }
    }

    async fn one(&self, entry: &mut Entry) -> io::Result<Tried> {
        let done = match &entry.write {
            Write::Reaction { comment, content } => self.react(&entry.item, comment, content).await.map(|()| None),
            Write::Comment { .. } => {
                let found = if entry.tried { self.find(entry).await } else { Ok(None) };
                match found {
                    Ok(Some(posted)) => Ok(Some(posted)),
                    Ok(None) => {
                        if !entry.tried {
                            entry.tried = true;
                            self.outbox.save(entry).await?;
                        }
                        self.post(entry).await.map(Some)
                    }
                    Err(error) => Err(error),
                }
            }
        };
        Ok(match done {
            Ok(posted) => Tried::Done(posted),
            Err(CallError::Doubt { .. }) => Tried::Again(None),
            Err(CallError::Limited { wait }) => Tried::Again(Some(wait.unwrap_or(self.pace * UNTOLD))),
            Err(CallError::NotFound) => Tried::Never(TrackerError::NotFound { what: what(entry) }),
            Err(CallError::Denied { status: 422, message }) => {
                Tried::Never(TrackerError::Invalid { problem: format!("GitHub does not take it: {message}") })
            }
            Err(error @ (CallError::Denied { .. } | CallError::NoCredentials(_) | CallError::Misconfigured { .. })) => {
                Tried::Never(unavailable(&error))
            }
        })
    }

    async fn post(&self, entry: &Entry) -> Result<Posted, CallError> {
        let Write::Comment { body, .. } = &entry.write else {
            return Err(CallError::Misconfigured { problem: "a reaction is no comment".to_owned() });
        };
        let path = format!("{}/issues/{}/comments", repository_path(&entry.item), entry.item.number());
        let written = self.client.post(&path, &json!({"body": format!("{body}\n{}", entry.stamp())})).await?;
        posted(&written).ok_or_else(|| CallError::Doubt { problem: "the answer shows no comment".to_owned() })
    }

    /// Looks for a comment that may have been written although nobody heard of it.
    async fn find(&self, entry: &Entry) -> Result<Option<Posted>, CallError> {
        // The two clocks may differ.
        let since = entry.asked_at.checked_sub(1.hour()).unwrap_or(entry.asked_at);
        let path = format!(
            "{}/issues/{}/comments?per_page=100&since={}",
            repository_path(&entry.item),
            entry.item.number(),
            since.strftime("%Y-%m-%dT%H:%M:%SZ")
        );
        let stamp = entry.stamp();
        let thread = self.client.list(&path).await?;
        let is_it = |comment: &&Value| comment["body"].as_str().is_some_and(|body| body.trim_end().ends_with(&stamp));
        Ok(thread.iter().find(is_it).and_then(posted))
    }

    async fn react(&self, item: &WorkItemRef, comment: &str, content: &str) -> Result<(), CallError> {
        let (kind, id) = match comment.split_once('-') {
            Some(("inline", id)) => ("pulls", id),
            Some(("review", id)) => return self.react_to_review(item, id, content).await,
            _ => ("issues", comment),
        };
        is_number(id)?;
        let path = format!("{}/{kind}/comments/{id}/reactions", repository_path(item));
        self.client.post(&path, &json!({"content": content})).await.map(drop)
    }

    /// Reviews have no reactions in the REST API.
    async fn react_to_review(&self, item: &WorkItemRef, id: &str, content: &str) -> Result<(), CallError> {
        is_number(id)?;
        let path = format!("{}/pulls/{}/reviews/{id}", repository_path(item), item.number());
        let review = self.client.get(&path).await?;
        let subject = review["node_id"].as_str().ok_or(CallError::NotFound)?;
        let content = match content {
            "+1" => "THUMBS_UP".to_owned(),
            "-1" => "THUMBS_DOWN".to_owned(),
            other => other.to_ascii_uppercase(),
        };
        let query = "mutation($subject: ID!, $content: ReactionContent!) { \
                     addReaction(input: {subjectId: $subject, content: $content}) { clientMutationId } }";
        self.client.graphql(query, json!({"subject": subject, "content": content})).await.map(drop)
    }

    /// Waits until a pace has passed since the last write.
    async fn pause_since(&self, last: Option<Duration>) {
        let clock = self.context.clock();
        let passed = last.map(|last| clock.since_boot().saturating_sub(last));
        let left = passed.and_then(|passed| self.pace.checked_sub(passed)).unwrap_or_default();
        if !left.is_zero() {
            clock.sleep(left).await;
        }
    }

    fn lane(&self, item: &WorkItemRef) -> Lane {
        let mut lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(lanes.entry(repository(item)).or_default())
    }
}

fn repository(item: &WorkItemRef) -> (String, String) {
    (item.owner().to_owned(), item.repo().to_owned())
}

/// The API's path of an item's repository. The parts of a ref need no escaping.
pub(super) fn repository_path(item: &WorkItemRef) -> String {
    format!("/repos/{}/{}", item.owner(), item.repo())
}

fn posted(comment: &Value) -> Option<Posted> {
    let url = comment["html_url"].as_str().unwrap_or_default().to_owned();
    Some(Posted { id: comment["id"].as_u64()?.to_string(), url })
}

fn is_number(id: &str) -> Result<(), CallError> {
    let digits = !id.is_empty() && id.bytes().all(|b| b.is_ascii_digit());
    digits.then_some(()).ok_or(CallError::NotFound)
}

fn what(entry: &Entry) -> String {
    match &entry.write {
        Write::Comment { .. } => format!("item {}", entry.item),
        Write::Reaction { comment, .. } => format!("comment {comment} on {}", entry.item),
    }
}

fn unavailable(problem: &dyn std::fmt::Display) -> TrackerError {
    TrackerError::Unavailable { action: "write", problem: problem.to_string() }
}

fn unrecorded(error: &io::Error) -> TrackerError {
    unavailable(&format!("the write could not be kept: {error}"))
}
