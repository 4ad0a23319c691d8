//! What every session's task shares.

use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

use the_loop_plugin_api::{Clock, DeliveryId, EventId, Harness, Runner, Tracker, WorkItemRef, registry::HostKey};
use tokio::sync::{Semaphore, broadcast};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{registry::Registry, signals::Signals};
use crate::{
    attention::Board,
    config::ConfigWatch,
    db::{Db, Receipt},
    eventlog::{Event, EventLog, EventType, Level},
    plugins::Plugins,
    state::StateRoot,
    workspace::Turns,
};

/// What every session's task shares.
pub struct Core {
    /// The operator's config, as it is now.
    pub(crate) config: Arc<ConfigWatch>,
    /// Inbox and deliveries.
    pub(crate) db: Db,
    /// The event log.
    pub(crate) log: EventLog,
    /// The records of all items.
    pub(crate) registry: Arc<Registry>,
    /// Where files live.
    pub(crate) root: Arc<StateRoot>,
    /// The plugins, built.
    pub(crate) plugins: Arc<Plugins>,
    /// Time.
    pub(crate) clock: Arc<dyn Clock>,
    /// This program, for the launcher that runs inside a terminal.
    pub(crate) program: PathBuf,
    /// The host's own environment, read once by the caller; sessions get an allow-listed part of it (TMX-7).
    pub(crate) environment: Vec<(String, String)>,
    /// Bounds how many spawns and deliveries are under way at once (`routing.maxConcurrentDispatches`).
    pub(crate) permits: Semaphore,
    /// Every task of a session, so that stopping can wait for them.
    pub(crate) tasks: TaskTracker,
    /// Cancelled when the host stops.
    pub(crate) stop: CancellationToken,
    /// What harnesses said of themselves by hook.
    pub(crate) signals: Signals,
    /// What waits for a person, as the event log tells.
    pub(crate) board: Arc<Board>,
    /// Receipts as they are written, for whoever waits for one.
    pub(crate) settled: broadcast::Sender<(DeliveryId, Receipt)>,
    /// Whose turn it is with a repository's clone.
    pub(crate) turns: Turns,
    /// How many jobs and texts wait, by item.
    pub(crate) waiting: Mutex<HashMap<WorkItemRef, usize>>,
}

impl Core {
    /// The host's authority over plugins.
    pub(crate) fn key(&self) -> &'static HostKey {
        self.plugins.key()
    }

    /// Whether nothing acts now but what an operator asks for (ADM-6): routing was switched off, or to the shadow mode, and
    /// what came in before waits.
    pub(crate) fn is_at_rest(&self) -> bool {
        let loaded = self.config.current();
        !loaded.config.routing.enabled || loaded.config.routing.shadow
    }

    /// The harness of that name.
    #[must_use]
    pub fn harness(&self, name: &str) -> Option<Arc<dyn Harness>> {
        self.plugins.harness(name)
    }

    /// What hosts harness processes.
    #[must_use]
    pub fn runner(&self) -> Option<(&'static str, Arc<dyn Runner>)> {
        self.plugins.runner()
    }

    /// The tracker behind an item, where one is linked.
    #[must_use]
    pub fn tracker(&self, item: &WorkItemRef) -> Option<Arc<dyn Tracker>> {
        self.plugins.tracker(item)
    }

    /// How many jobs and texts of an item wait.
    #[must_use]
    pub fn waiting(&self, item: &WorkItemRef) -> usize {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).get(item).copied().unwrap_or(0)
    }

    /// How many jobs and texts wait in all.
    #[must_use]
    pub fn waiting_in_all(&self) -> usize {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).values().sum()
    }

    /// Counts waiting jobs and texts of an item up or down.
    pub fn count_waiting(&self, item: &WorkItemRef, by: isize) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let count = waiting.entry(item.clone()).or_default();
        *count = count.saturating_add_signed(by);
        if *count == 0 {
            waiting.remove(item);
        }
    }

    /// An event of the inbox is done with. One whose handling failed is not remembered as done: the upstream may send it
    /// again (GHW-3).
    pub async fn settle_event(&self, event: EventId, done: bool, outcome: &str) {
        if let Err(error) = self.db.conclude(event, outcome, done).await {
            // It stays unfinished and is decided again at the next start; every effect is idempotent by its event.
            self.warn(event, format!("an event could not be settled and will be looked at again: {error}"));
        }
    }

    /// Something the operator should know that has no event of its own.
    pub fn warn(&self, subject: impl std::fmt::Display, detail: impl std::fmt::Display) {
        let event =
            Event::new(EventType::HostWarning).with("subject", subject.to_string()).with("detail", detail.to_string());
        self.log.emit(event.level(Level::Warning));
    }
}
