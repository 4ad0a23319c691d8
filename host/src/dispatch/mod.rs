//! From admission to sessions: one queue a session, in order; sessions run beside each other (SES-1).

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use the_loop_plugin_api::{DeliveryId, EventId, Tracker, WorkItemRef, event::Item};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::{
    admission::{Act, Admitted, Answer, Command, Reason, admitted::Provenance},
    eventlog::{Event, EventType, Level},
    sessions::{
        actor::{self, Job},
        core::Core,
        registry::Phase,
        ticket,
    },
};

/// What became of something that was submitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Admission refused it.
    Refused {
        /// Why.
        reason: Reason,
        /// What to tell the caller.
        text: Option<String>,
    },
    /// A command was carried out.
    Command {
        /// Which.
        command: Command,
        /// What it did.
        effect: Effect,
        /// What to tell the caller.
        messages: Vec<String>,
    },
    /// A text is on its way, with this id.
    Queued {
        /// The delivery's id.
        delivery: DeliveryId,
    },
    /// A conversation was registered.
    Registered,
    /// A pull request is on the item's record.
    Bound {
        /// Whether it was not before.
        new: bool,
    },
    /// A session was closed, or there was none.
    Closed {
        /// Whether there was one.
        closed: bool,
    },
    /// An item was forgotten.
    Reset {
        /// What was removed, in words.
        removed: Vec<String>,
    },
    /// It was admitted and could not be done.
    Failed {
        /// Why, and what to do.
        text: String,
    },
}

/// What a command did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Effect {
    /// A session was spawned.
    Spawned,
    /// A session takes input again.
    Resumed,
    /// Nothing is delivered any more.
    Paused,
    /// The harness was ended.
    Stopped,
    /// What this machine held was removed.
    Cleaned,
    /// It was so already.
    Noop,
}

impl Effect {
    /// The word used in the event log and in answers.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Spawned => "spawned",
            Self::Resumed => "resumed",
            Self::Paused => "paused",
            Self::Stopped => "stopped",
            Self::Cleaned => "cleaned",
            Self::Noop => "noop",
        }
    }
}

/// Hands admitted acts to the sessions.
pub struct Dispatch {
    core: Arc<Core>,
    actors: Mutex<HashMap<WorkItemRef, mpsc::UnboundedSender<Job>>>,
}

impl Dispatch {
    /// A dispatch over no sessions yet.
    #[must_use]
    pub fn new(core: Arc<Core>) -> Arc<Self> {
        Arc::new(Self { core, actors: Mutex::new(HashMap::new()) })
    }

    /// Takes an admitted act. Returns as soon as it is queued; `done` hears what became of it.
    pub async fn accept(
        &self,
        admitted: Admitted<Act>,
        journaled: Option<EventId>,
        done: Option<oneshot::Sender<Outcome>>,
    ) {
        let item = item_of(admitted.act()).clone();
        let waiting = self.core.waiting(&item);
        let bound = self.core.config.current().config.routing.max_queue_per_session as usize;
        if matches!(admitted.act(), Act::Deliver { .. } | Act::Reply { .. }) && waiting >= bound {
            self.overloaded(&item, admitted.provenance(), journaled, done).await;
            return;
        }
        if let Some(phase) = self.intended(admitted.act(), &item) {
            self.core.registry.intend(&item, phase);
        }
        self.core.count_waiting(&item, 1);
        let job = Job { admitted, journaled, done };
        // The receiver lives as long as the host: a closed one means that it is stopping, and what is durable goes on later.
        let _ = self.actor(&item).send(job);
    }

    /// Answers on the ticket, without waiting for it.
    pub fn answer(&self, answer: Admitted<Answer>) {
        let core = Arc::clone(&self.core);
        self.core.tasks.spawn(async move { ticket::answer(&core, answer).await });
    }

    /// The item of a ref that an operator named: from its tracker, else as far as the records tell.
    ///
    /// # Errors
    /// When the tracker says that there is no such item.
    pub async fn item(&self, reference: &WorkItemRef) -> Result<Item, String> {
        ticket::look_up(&self.core, reference).await
    }

    /// The tracker behind an item, where one is linked.
    #[must_use]
    pub fn tracker(&self, item: &WorkItemRef) -> Option<Arc<dyn Tracker>> {
        self.core.tracker(item)
    }

    /// Runs something beside the sessions, for as long as the host runs.
    pub(crate) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static, stop: &CancellationToken) {
        let stop = stop.clone();
        self.core.tasks.spawn(async move {
            let _ = stop.run_until_cancelled(work).await;
        });
    }

    /// Makes sure that the queue of an item runs, so that deliveries of an earlier process go on.
    pub fn wake(&self, item: &WorkItemRef) {
        drop(self.actor(item));
    }

    fn actor(&self, item: &WorkItemRef) -> mpsc::UnboundedSender<Job> {
        let mut actors = self.actors.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sender) = actors.get(item) {
            return sender.clone();
        }
        let (sender, jobs) = mpsc::unbounded_channel();
        self.core.tasks.spawn(actor::run(Arc::clone(&self.core), item.clone(), jobs));
        actors.insert(item.clone(), sender.clone());
        sender
    }

    /// What an act will make of an item, as admission must see it from now on.
    fn intended(&self, act: &Act, item: &WorkItemRef) -> Option<Phase> {
        let now = self.core.registry.standing(item).phase;
        match act {
            Act::Command { command: Command::Start | Command::Resume, .. } | Act::Spawn { .. } => Some(Phase::Live),
            Act::Command { command: Command::Pause, .. } => matches!(now, Phase::Live).then_some(Phase::Paused),
            Act::Command { command: Command::Stop, .. } => {
                matches!(now, Phase::Live | Phase::Paused).then_some(Phase::Stopped)
            }
            Act::Command { command: Command::Cleanup, .. } | Act::Reset { .. } => Some(Phase::None),
            Act::End { .. } | Act::Close { .. } => (now != Phase::None).then_some(Phase::Closed),
            Act::Deliver { .. } | Act::Reply { .. } | Act::Bind { .. } | Act::Register(_) => None,
        }
    }

    async fn overloaded(
        &self,
        item: &WorkItemRef,
        provenance: &Provenance,
        journaled: Option<EventId>,
        done: Option<oneshot::Sender<Outcome>>,
    ) {
        self.core.log.emit(
            Event::new(EventType::RoutingDropped)
                .with("reason", Reason::Overloaded)
                .with_some("actor", provenance.actor.as_deref())
                .with_some("gh_event", provenance.upstream.gh_event.as_deref())
                .with_some("delivery_id", provenance.upstream.delivery_id.as_deref())
                .level(Level::Error),
        );
        if let Some(event) = journaled {
            self.core.settle_event(event, false, "overloaded").await;
        }
        if let Some(done) = done {
            let text = Some(format!("the queue of {item} is full; see `the-loop sessions show {item}`"));
            let _ = done.send(Outcome::Refused { reason: Reason::Overloaded, text });
        }
    }
}

/// The item that an act is about.
fn item_of(act: &Act) -> &WorkItemRef {
    match act {
        Act::Command { item, .. }
        | Act::Spawn { item }
        | Act::Deliver { item, .. }
        | Act::Bind { item, .. }
        | Act::End { item }
        | Act::Close { item, .. }
        | Act::Reset { item, .. }
        | Act::Reply { item, .. } => &item.reference,
        Act::Register(registration) => &registration.item,
    }
}
