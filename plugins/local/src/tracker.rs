//! The tracker and its desk.

use std::{path::Path, sync::Arc};

use async_trait::async_trait;
use jiff::Timestamp;
use the_loop_plugin_api::{
    Clock, PluginContext, Post, Tracker, WorkItemRef,
    event::{Actor, CommentChange, Content, Item, ItemChange, ItemState},
    tracker::{Desk, DeskList, Draft, Posted, Reaction, ThreadEntry, TrackerError},
};

use crate::{
    PROVIDER,
    files::{FileError, blocking},
    input,
    item::ItemRecord,
    journal::Entry,
    lock::Held,
    store::Store,
};

/// Who the host's own comments are by. A person's name to all who read it, as on a tracker where the host posts with its
/// operator's token, so that its own words are known by their marker and not by their author.
const HOST_LOGIN: &str = "the-loop";

/// Items kept as files.
pub(crate) struct LocalTracker {
    store: Store,
    clock: Arc<dyn Clock>,
}

/// What a change makes of an item.
enum Step<T> {
    /// It leaves the item as it is.
    Nothing(T),
    /// It changes the item and nobody is told.
    Quiet(T),
    /// It changes the item, and this is what happened.
    Told(T, Actor, Box<Content>),
}

impl LocalTracker {
    pub(crate) fn new(context: &PluginContext) -> Self {
        Self { store: Store::new(context.folder()), clock: context.clock() }
    }

    async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Store) -> Result<T, FileError> + Send + 'static,
    ) -> Result<T, TrackerError> {
        let store = self.store.clone();
        blocking(move || work(&store)).await.and_then(|read| read).map_err(|error| unavailable("read", &error))
    }

    /// Works on the files under the lock.
    async fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Store, &Held) -> Result<T, TrackerError> + Send + 'static,
    ) -> Result<T, TrackerError> {
        let store = self.store.clone();
        let lock: &Path = &store.lock();
        let held = Held::acquire(lock, self.clock.as_ref()).await.map_err(|error| unavailable("write", &error))?;
        let worked = blocking(move || {
            store.recover(&held).map_err(|error| unavailable("write", &error))?;
            work(&store, &held)
        });
        worked.await.map_err(|error| unavailable("write", &error))?
    }

    /// Changes one item.
    async fn change<T: Send + 'static>(
        &self,
        reference: &WorkItemRef,
        change: impl FnOnce(&mut ItemRecord, Timestamp) -> Result<Step<T>, TrackerError> + Send + 'static,
    ) -> Result<T, TrackerError> {
        input::own(reference)?;
        let (reference, now) = (reference.clone(), self.clock.now());
        self.write(move |store, held| {
            let failed = |error| unavailable("write", &error);
            let mut record = store.read(&reference).map_err(failed)?.ok_or_else(|| not_found(&reference))?;
            let at = record.touch(now);
            let (answer, entry) = match change(&mut record, at)? {
                Step::Nothing(answer) => return Ok(answer),
                Step::Quiet(answer) => (answer, None),
                Step::Told(answer, actor, content) => (answer, Some(Entry::new(at, actor, record.shown(), *content))),
            };
            store.commit(held, record, entry.as_ref()).map_err(failed)?;
            Ok(answer)
        })
        .await
    }
}

#[async_trait]
impl Tracker for LocalTracker {
    fn owns(&self, item: &WorkItemRef) -> bool {
        input::owns(item)
    }

    async fn comment(&self, post: &Post) -> Result<Posted, TrackerError> {
        input::text("comment", post.body())?;
        let (key, body) = (post.key().to_owned(), post.body().to_owned());
        self.change(post.item(), move |item, at| {
            if let Some(written) = item.comments.iter().find(|comment| comment.key.as_deref() == Some(&key)) {
                return Ok(Step::Nothing(item.posted(&written.id)));
            }
            let host = Actor::Human { login: HOST_LOGIN.to_owned() };
            Ok(commented(item, host, body, Some(key), at))
        })
        .await
    }

    async fn react(&self, reaction: &Reaction) -> Result<(), TrackerError> {
        input::name("reaction", reaction.content())?;
        let (comment, content) = (reaction.comment().to_owned(), reaction.content().to_owned());
        self.change(reaction.item(), move |item, _| {
            let reactions = match item.reactions(&comment) {
                Some(reactions) => reactions,
                None => return Err(no_comment(item, &comment)),
            };
            if reactions.contains(&content) {
                return Ok(Step::Nothing(()));
            }
            reactions.push(content);
            Ok(Step::Quiet(()))
        })
        .await
    }

    async fn look_up(&self, item: &WorkItemRef) -> Result<Item, TrackerError> {
        input::own(item)?;
        let reference = item.clone();
        let found = self.read(move |store| store.read(&reference)).await?;
        found.map(|record| record.shown()).ok_or_else(|| not_found(item))
    }

    async fn open_items(&self, repository: &WorkItemRef) -> Result<Vec<Item>, TrackerError> {
        input::own(repository)?;
        let repository = repository.clone();
        let records = self.read(move |store| store.repository(&repository)).await?;
        Ok(records.iter().filter(|record| record.state == ItemState::Open).map(ItemRecord::shown).collect())
    }

    async fn thread(&self, item: &WorkItemRef) -> Result<Vec<ThreadEntry>, TrackerError> {
        input::own(item)?;
        let reference = item.clone();
        let found = self.read(move |store| store.read(&reference)).await?;
        found.map(|record| record.thread()).ok_or_else(|| not_found(item))
    }

    fn desk(&self) -> Option<&dyn Desk> {
        Some(self)
    }
}

#[async_trait]
impl Desk for LocalTracker {
    fn provider(&self) -> &'static str {
        PROVIDER
    }

    async fn open(&self, by: &str, draft: &Draft) -> Result<Item, TrackerError> {
        let by = input::person(by)?;
        let repository = input::repository(&draft.owner, &draft.repo)?;
        input::title(&draft.title)?;
        input::short_enough("body", &draft.body)?;
        draft.labels.iter().try_for_each(|label| input::name("label", label))?;
        let (draft, now) = (draft.clone(), self.clock.now());
        self.write(move |store, held| {
            let failed = |error| unavailable("write", &error);
            let number = store.next_number(&repository, held).map_err(failed)?;
            let reference = input::numbered(repository.owner(), repository.repo(), number)?;
            let record = ItemRecord::new(reference, by.clone(), &draft, now);
            let item = record.shown();
            let entry = Entry::new(now, by, item.clone(), Content::Item { change: ItemChange::Opened });
            store.commit(held, record, Some(&entry)).map_err(failed)?;
            Ok(item)
        })
        .await
    }

    async fn list(&self) -> Result<DeskList, TrackerError> {
        let (records, damaged) = self.read(Store::all).await?;
        let damaged = damaged.iter().map(ToString::to_string).collect();
        Ok(DeskList { items: records.iter().map(ItemRecord::shown).collect(), damaged })
    }

    async fn comment_as(&self, by: &str, item: &WorkItemRef, body: &str) -> Result<Posted, TrackerError> {
        let by = input::person(by)?;
        input::text("comment", body)?;
        let body = body.to_owned();
        self.change(item, move |item, at| Ok(commented(item, by, body, None, at))).await
    }

    async fn edit_as(&self, by: &str, item: &WorkItemRef, comment: &str, body: &str) -> Result<Posted, TrackerError> {
        let by = input::person(by)?;
        input::text("comment", body)?;
        let (id, body) = (comment.to_owned(), body.to_owned());
        self.change(item, move |item, at| {
            let Some((comment, before)) = item.edit_comment(&id, &body, at) else {
                return Err(no_comment(item, &id));
            };
            let posted = item.posted(&comment.id);
            if before == comment.body {
                return Ok(Step::Nothing(posted));
            }
            let change = CommentChange::Edited { previous: Some(before) };
            Ok(Step::Told(posted, by, Box::new(Content::Comment { comment, change })))
        })
        .await
    }

    async fn label(&self, by: &str, item: &WorkItemRef, label: &str, present: bool) -> Result<Item, TrackerError> {
        let by = input::person(by)?;
        input::name("label", label)?;
        let label = label.to_owned();
        self.change(item, move |item, _| {
            if item.labels.contains(&label) == present {
                return Ok(Step::Nothing(item.shown()));
            }
            let change = if present {
                item.labels.push(label.clone());
                ItemChange::Labeled { label: Some(label) }
            } else {
                item.labels.retain(|held| *held != label);
                ItemChange::Unlabeled { label: Some(label) }
            };
            Ok(Step::Told(item.shown(), by, Box::new(Content::Item { change })))
        })
        .await
    }

    async fn set_open(&self, by: &str, item: &WorkItemRef, open: bool) -> Result<Item, TrackerError> {
        let by = input::person(by)?;
        self.change(item, move |item, _| {
            let (state, change) =
                if open { (ItemState::Open, ItemChange::Reopened) } else { (ItemState::Closed, ItemChange::Closed) };
            if item.state == state {
                return Ok(Step::Nothing(item.shown()));
            }
            item.state = state;
            Ok(Step::Told(item.shown(), by, Box::new(Content::Item { change })))
        })
        .await
    }
}

fn commented(item: &mut ItemRecord, by: Actor, body: String, key: Option<String>, at: Timestamp) -> Step<Posted> {
    let comment = item.add_comment(by.clone(), body, key, at);
    let posted = item.posted(&comment.id);
    Step::Told(posted, by, Box::new(Content::Comment { comment, change: CommentChange::Created }))
}

fn not_found(item: &WorkItemRef) -> TrackerError {
    TrackerError::NotFound { what: format!("item {item}") }
}

fn no_comment(item: &ItemRecord, id: &str) -> TrackerError {
    TrackerError::NotFound { what: format!("comment {id:?} on {}", item.reference) }
}

fn unavailable(action: &'static str, error: &FileError) -> TrackerError {
    TrackerError::Unavailable { action, problem: error.to_string() }
}
