//! What the host knows of every work item: the session's record of this machine and the portable record, in memory and on
//! disk. Memory changes only after the file was written, so that no action is taken that could not be recorded (STA-4).

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use jiff::Timestamp;
use serde_json::json;
use the_loop_plugin_api::{
    SessionKey, WorkItemRef,
    event::{Actor, Item, ItemState},
};

use crate::{
    admission::Command,
    state::{ControlRecord, Damaged, PortableRecord, Record, SessionRecord, SessionStatus, StateError, Store},
};

/// Whether an item has a session, as admission must see it: a command counts from the moment it is admitted, although it
/// may still be waiting to be carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// No session.
    None,
    /// A session that takes input, or will.
    Live,
    /// A session to which nothing is delivered.
    Paused,
    /// Ended, its conversation kept.
    Stopped,
    /// Ended for good.
    Closed,
}

/// What admission needs to know of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Whether it has a session.
    pub phase: Phase,
    /// The last command on record (CTL-9).
    pub control: Option<Command>,
}

/// The records of all work items.
pub struct Registry {
    sessions: Store<SessionRecord>,
    portable: Store<PortableRecord>,
    known: Mutex<Known>,
    damaged: Vec<Damaged>,
}

#[derive(Default)]
struct Known {
    sessions: HashMap<WorkItemRef, SessionRecord>,
    portable: HashMap<WorkItemRef, PortableRecord>,
    intents: HashMap<WorkItemRef, Phase>,
}

impl Registry {
    /// Reads every record. What cannot be read is set aside and named (STA-1).
    ///
    /// # Errors
    /// When a folder cannot be read at all.
    pub fn load(sessions: Store<SessionRecord>, portable: Store<PortableRecord>) -> Result<Self, StateError> {
        let (local, mut damaged) = sessions.load_all()?;
        let (travelling, more) = portable.load_all()?;
        damaged.extend(more);
        let known = Known {
            sessions: local.into_iter().map(|(_, record)| (record.reference.clone(), record)).collect(),
            portable: travelling.into_iter().map(|(_, record)| (record.reference.clone(), record)).collect(),
            intents: HashMap::new(),
        };
        Ok(Self { sessions, portable, known: Mutex::new(known), damaged })
    }

    /// Files that were set aside when the records were read.
    #[must_use]
    pub fn damaged(&self) -> &[Damaged] {
        &self.damaged
    }

    /// What admission needs to know of an item.
    #[must_use]
    pub fn standing(&self, item: &WorkItemRef) -> Standing {
        let known = self.known();
        let recorded = known.sessions.get(item).map_or(Phase::None, |record| phase(record.status));
        Standing {
            phase: known.intents.get(item).copied().unwrap_or(recorded),
            control: known
                .portable
                .get(item)
                .and_then(|record| record.control.as_ref())
                .and_then(|control| control.command.parse().ok()),
        }
    }

    /// Notes what an admitted act will make of an item, until [`Registry::settle`].
    pub fn intend(&self, item: &WorkItemRef, phase: Phase) {
        self.known().intents.insert(item.clone(), phase);
    }

    /// What an admitted act intended is done, or given up: the record speaks again.
    pub fn settle(&self, item: &WorkItemRef, intended: Phase) {
        let mut known = self.known();
        // A later act may intend something else already.
        if known.intents.get(item) == Some(&intended) {
            known.intents.remove(item);
        }
    }

    /// The record of an item's session.
    #[must_use]
    pub fn session(&self, item: &WorkItemRef) -> Option<SessionRecord> {
        self.known().sessions.get(item).cloned()
    }

    /// The item whose session a ref means (RPL-4): its own, or the one that it delivers as a pull request. An endpoint that is
    /// closed falls back to the item's.
    #[must_use]
    pub fn endpoint(&self, named: &WorkItemRef) -> WorkItemRef {
        let known = self.known();
        let runs = |record: &&SessionRecord| record.status != SessionStatus::Closed;
        if known.sessions.get(named).filter(runs).is_some() {
            return named.clone();
        }
        let delivers = |record: &&SessionRecord| record.pull_requests.iter().any(|pull| pull.reference == *named);
        let item = known.sessions.values().filter(delivers).map(|record| &record.reference).min();
        item.unwrap_or(named).clone()
    }

    /// Every session record, by ref.
    #[must_use]
    pub fn sessions(&self) -> Vec<SessionRecord> {
        let mut all: Vec<_> = self.known().sessions.values().cloned().collect();
        all.sort_by(|left, right| left.reference.cmp(&right.reference));
        all
    }

    /// The portable record of an item.
    #[must_use]
    pub fn portable(&self, item: &WorkItemRef) -> Option<PortableRecord> {
        self.known().portable.get(item).cloned()
    }

    /// Every portable record, by ref.
    #[must_use]
    pub fn portables(&self) -> Vec<PortableRecord> {
        let mut all: Vec<_> = self.known().portable.values().cloned().collect();
        all.sort_by(|left, right| left.reference.cmp(&right.reference));
        all
    }

    /// An item as far as the records tell, for acts that no event brought.
    #[must_use]
    pub fn item(&self, reference: &WorkItemRef) -> Item {
        let known = self.known();
        let record = known.sessions.get(reference);
        let url = record.map(|record| record.url.clone()).filter(|url| !url.is_empty());
        Item {
            reference: reference.clone(),
            tracker_id: record.and_then(|record| record.tracker_id.clone()),
            title: record.map(|record| record.title.clone()).unwrap_or_default(),
            url: url.or_else(|| known.portable.get(reference).map(|record| record.url.clone())).unwrap_or_default(),
            state: ItemState::Open,
            labels: Vec::new(),
            author: Actor::Machine,
            is_pull_request: false,
            links: Vec::new(),
        }
    }

    /// Writes a session's record, changed by `change`; `None` makes one that is not there yet of `fresh`.
    ///
    /// # Errors
    /// When the file cannot be written; memory is then as before.
    pub async fn update(
        self: &Arc<Self>,
        item: &WorkItemRef,
        fresh: impl FnOnce() -> SessionRecord,
        change: impl FnOnce(&mut SessionRecord),
    ) -> Result<SessionRecord, StateError> {
        let mut record = self.session(item).unwrap_or_else(fresh);
        change(&mut record);
        let (registry, slug, saved) = (Arc::clone(self), item.slug(), record.clone());
        blocking(move || registry.sessions.save(&slug, &saved)).await?;
        self.known().sessions.insert(item.clone(), record.clone());
        Ok(record)
    }

    /// Writes an existing session's record, changed by `change`. Does nothing where there is none.
    ///
    /// # Errors
    /// When the file cannot be written; memory is then as before.
    pub async fn change(
        self: &Arc<Self>,
        item: &WorkItemRef,
        change: impl FnOnce(&mut SessionRecord),
    ) -> Result<Option<SessionRecord>, StateError> {
        match self.session(item) {
            Some(record) => self.update(item, || record, change).await.map(Some),
            None => Ok(None),
        }
    }

    /// Notes something about a session that the next write of its record carries along: not worth a write of its own.
    pub fn note(&self, item: &WorkItemRef, change: impl FnOnce(&mut SessionRecord)) {
        if let Some(record) = self.known().sessions.get_mut(item) {
            change(record);
        }
    }

    /// Writes the last command of an item (CTL-9).
    ///
    /// # Errors
    /// When the file cannot be written; memory is then as before.
    pub async fn record_control(self: &Arc<Self>, item: &Item, control: ControlRecord) -> Result<(), StateError> {
        let mut record = self
            .portable(&item.reference)
            .unwrap_or_else(|| PortableRecord::new(item.reference.clone(), item.url.clone()));
        if !item.url.is_empty() {
            record.url.clone_from(&item.url);
        }
        record.control = Some(control);
        let (registry, slug, saved) = (Arc::clone(self), item.reference.slug(), record.clone());
        blocking(move || registry.portable.save(&slug, &saved)).await?;
        self.known().portable.insert(item.reference.clone(), record);
        self.write_index().await
    }

    /// Writes the derived list of what travels. Read by nothing but people.
    async fn write_index(self: &Arc<Self>) -> Result<(), StateError> {
        let rows: Vec<_> =
            self.portables().into_iter().map(|record| json!({"ref": record.reference, "url": record.url})).collect();
        let (registry, index) = (Arc::clone(self), json!({"version": 1, "workItems": rows}));
        blocking(move || registry.portable.write_list("index", &index)).await
    }

    /// Removes the record of an item's session.
    ///
    /// # Errors
    /// When the file cannot be removed.
    pub async fn forget_session(self: &Arc<Self>, item: &WorkItemRef) -> Result<(), StateError> {
        let (registry, slug) = (Arc::clone(self), item.slug());
        blocking(move || registry.sessions.remove(&slug)).await?;
        self.known().sessions.remove(item);
        Ok(())
    }

    /// Removes the portable record of an item.
    ///
    /// # Errors
    /// When the file cannot be removed.
    pub async fn forget_portable(self: &Arc<Self>, item: &WorkItemRef) -> Result<(), StateError> {
        let (registry, slug) = (Arc::clone(self), item.slug());
        blocking(move || registry.portable.remove(&slug)).await?;
        self.known().portable.remove(item);
        self.write_index().await
    }

    /// A poisoned lock still holds whole records: every change under it is one insert or one removal.
    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A new record of a session that is about to start.
#[must_use]
pub fn fresh_record(item: &Item, harness: &str, cwd: std::path::PathBuf, now: Timestamp) -> SessionRecord {
    SessionRecord {
        version: SessionRecord::VERSION,
        reference: item.reference.clone(),
        url: item.url.clone(),
        title: item.title.clone(),
        harness: harness.to_owned(),
        harness_session_id: None,
        cwd,
        checkout: None,
        status: SessionStatus::Starting,
        tmux_target: SessionKey::work_item(item.reference.clone()).terminal_name(),
        runner: None,
        incarnation: None,
        tracker_id: item.tracker_id.clone(),
        created_at: now,
        last_event_at: now,
        recent_deliveries: Vec::new(),
        pull_requests: Vec::new(),
        spawn_failures: 0,
        announced: false,
        other: serde_json::Map::new(),
    }
}

fn phase(status: SessionStatus) -> Phase {
    match status {
        SessionStatus::Starting | SessionStatus::Active => Phase::Live,
        SessionStatus::Paused => Phase::Paused,
        SessionStatus::Stopped => Phase::Stopped,
        SessionStatus::Closed => Phase::Closed,
    }
}

/// Files are written off the async threads (ARC-8).
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StateError> + Send + 'static,
) -> Result<T, StateError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(join) => std::panic::resume_unwind(join.into_panic()),
    }
}
