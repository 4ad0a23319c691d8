//! One text into one session: the gates, the runner, the receipt (DEL-1 to DEL-7).

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use async_trait::async_trait;
use the_loop_plugin_api::{
    Delivery, DeliveryId, Harness, HarnessState, Liveness, Runner, RunnerHandle, WorkItemRef,
    delivery::{DeliveryOutcome, HoldReason, InputGate, Readiness},
    harness::ProcessFacts,
};

use super::{
    core::Core,
    registry::Phase,
    signals,
    surroundings::base_environment,
    transcript::{self, Told},
};
use crate::{
    db::{DeliveryRow, Receipt},
    eventlog::{Event, EventType, Level},
    state::SessionRecord,
};

/// What came of one try to deliver a text.
pub(crate) enum Attempt {
    /// It reached the session.
    Delivered,
    /// No byte was written; it waits for this.
    Held(HoldReason),
    /// No byte was written; there is no process to write to.
    NoProcess,
    /// The text stands in the composer, and its return was withheld for this.
    Pasted(HoldReason),
    /// It may have been written, for all that the runner can tell: the transcript is asked (DEL-7).
    Doubtful {
        /// What the runner says.
        error: String,
    },
}

/// What is to be written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Write {
    /// The text and its return.
    Text,
    /// The return alone: the text stands in the composer already, or may (DEL-6).
    Return,
}

/// Tries to deliver a text.
pub(crate) async fn attempt(core: &Arc<Core>, item: &WorkItemRef, row: &DeliveryRow, write: Write) -> Attempt {
    let Some(record) = core.registry.session(item) else { return Attempt::Held(HoldReason::NotReady) };
    let Some(handle) = record.runner.clone() else { return Attempt::NoProcess };
    let (Some((_, runner)), Some(harness)) = (core.runner(), core.harness(&record.harness)) else {
        return Attempt::Held(HoldReason::NotReady);
    };
    // The semaphore is closed by nobody; were it, the host would be stopping.
    let Ok(_permit) = core.permits.acquire().await else { return Attempt::Held(HoldReason::NotReady) };
    let facts = process_facts(core, &*runner, &handle, &record);
    let readiness = effective_readiness(core, item, &*harness, &facts).await;
    let gate = Arc::new(Gate {
        core: Arc::clone(core),
        item: item.clone(),
        delivery: row.id,
        harness,
        facts,
        signals: readiness == Readiness::Signals,
        writing: AtomicBool::new(row.writing),
    });
    let text = if write == Write::Text { row.text.clone() } else { String::new() };
    let delivery = Delivery::new(core.key(), row.id, text, readiness, gate.clone());
    let outcome = runner.deliver(&handle, &delivery).await;
    if outcome == DeliveryOutcome::Delivered {
        crate::drills::point("delivery:written");
    }
    // What wrote no byte must not look, after a crash, as if it might have (DEL-7).
    if gate.writing.load(Ordering::SeqCst)
        && write == Write::Text
        && wrote_nothing(&outcome)
        && let Err(error) = core.db.clear_writing(row.id).await
    {
        core.warn(row.id, format!("a held text could not be marked as unwritten: {error}"));
    }
    match outcome {
        DeliveryOutcome::Delivered => {
            settle(core, item, row, Receipt::Delivered, None, "runner").await;
            let succeeded = Event::new(EventType::DispatchSucceeded)
                .with("work_item", item)
                .with("harness", &record.harness)
                .with("via", &handle.runner)
                .with("delivery", row.id);
            core.log.emit(succeeded);
            let now = core.clock.now();
            core.registry.note(item, |record| record.last_event_at = now);
            Attempt::Delivered
        }
        DeliveryOutcome::Held(reason) => Attempt::Held(reason),
        DeliveryOutcome::NotWritten { error } => {
            core.warn(row.id, format!("nothing was written and it is tried again: {error}"));
            Attempt::Held(HoldReason::RunnerSilent)
        }
        DeliveryOutcome::Gone { .. } => Attempt::NoProcess,
        DeliveryOutcome::Unsubmitted(reason) => Attempt::Pasted(reason),
        DeliveryOutcome::Uncertain { error } => Attempt::Doubtful { error },
    }
}

fn wrote_nothing(outcome: &DeliveryOutcome) -> bool {
    match outcome {
        DeliveryOutcome::Held(_) | DeliveryOutcome::NotWritten { .. } | DeliveryOutcome::Gone { .. } => true,
        DeliveryOutcome::Delivered | DeliveryOutcome::Unsubmitted(_) | DeliveryOutcome::Uncertain { .. } => false,
    }
}

/// With `routing.unsignalled: screen`, a harness that should signal and says nothing is treated as one without signals
/// (DEL-5).
async fn effective_readiness(
    core: &Core,
    item: &WorkItemRef,
    harness: &dyn Harness,
    facts: &ProcessFacts,
) -> Readiness {
    let stated = harness.readiness();
    if stated != Readiness::Signals
        || core.config.current().config.routing.unsignalled != crate::config::Unsignalled::Screen
    {
        return stated;
    }
    if facts.age > SILENT_FOR && signals::observe(core, item, harness, facts).await.is_none() {
        Readiness::Screen { quiet_for: QUIET }
    } else {
        stated
    }
}

/// How long a harness that should signal may be silent before `routing.unsignalled: screen` takes over.
const SILENT_FOR: std::time::Duration = std::time::Duration::from_secs(5);
/// How long the screen of a harness without signals must have been quiet.
const QUIET: std::time::Duration = std::time::Duration::from_secs(1);

/// Asked by the runner before the paste and again before the return.
struct Gate {
    core: Arc<Core>,
    item: WorkItemRef,
    delivery: DeliveryId,
    harness: Arc<dyn Harness>,
    facts: ProcessFacts,
    signals: bool,
    writing: AtomicBool,
}

#[async_trait]
impl InputGate for Gate {
    async fn check(&self) -> Result<(), HoldReason> {
        match self.core.registry.standing(&self.item).phase {
            Phase::Live => {}
            Phase::Paused => return Err(HoldReason::Paused),
            Phase::None | Phase::Stopped | Phase::Closed => return Err(HoldReason::NotReady),
        }
        if self.signals {
            let observed = signals::observe(&self.core, &self.item, &*self.harness, &self.facts).await;
            match observed.map(|observed| observed.state) {
                Some(HarnessState::Idle | HarnessState::Busy) => {}
                Some(HarnessState::AwaitingPermission) => return Err(HoldReason::DialogOpen),
                Some(HarnessState::Unknown | HarnessState::Gone) | None => return Err(HoldReason::StateUnknown),
            }
        }
        // From here on a byte may be written, and a crash must find that on record (REL-3).
        if !self.writing.swap(true, Ordering::SeqCst) && self.core.db.mark_writing(self.delivery).await.is_err() {
            self.writing.store(false, Ordering::SeqCst);
            return Err(HoldReason::StateUnknown);
        }
        crate::drills::point("delivery:writing");
        Ok(())
    }
}

/// Settles a text, in its receipt and in the log.
pub(crate) async fn settle(
    core: &Core,
    item: &WorkItemRef,
    row: &DeliveryRow,
    to: Receipt,
    reason: Option<&str>,
    evidence: &str,
) {
    let now = core.clock.now();
    if let Err(error) = core.db.transition(row.id, to, reason.map(str::to_owned), evidence.to_owned(), now).await {
        core.warn(row.id, format!("the receipt could not be written: {error}"));
    }
    // Nobody has to wait for a receipt.
    let _ = core.settled.send((row.id, to));
    // Waited for: a record that was only queued is lost with the process, and the log would not know what the receipt
    // says. What falls between the two is made up for at the next start.
    if let Err(error) = core.log.append(settled(item, row.id, to, reason, evidence)).await {
        core.warn(row.id, format!("its receipt could not be told in the event log: {error}"));
    }
}

/// The record of a receipt that ends a text's way.
pub(crate) fn settled(
    item: impl serde::Serialize,
    id: DeliveryId,
    to: Receipt,
    reason: Option<&str>,
    evidence: &str,
) -> Event {
    let (kind, level) = match to {
        // A prompt that gives way to a newer one is no failure that anybody has to look at.
        Receipt::Failed if reason == Some("superseded") => (EventType::DeliveryFailed, Level::Info),
        Receipt::Failed => (EventType::DeliveryFailed, Level::Error),
        Receipt::Uncertain | Receipt::Unknown => (EventType::DeliveryUncertain, Level::Error),
        Receipt::Queued | Receipt::Delivered | Receipt::Submitted | Receipt::Answered => {
            (EventType::DeliveryDelivered, Level::Info)
        }
    };
    Event::new(kind)
        .with("delivery", id)
        .with("work_item", item)
        .with_some("reason", reason)
        .with("evidence", evidence)
        .level(level)
}

/// Notes why a text waits.
pub(crate) async fn note_hold(core: &Core, item: &WorkItemRef, row: &DeliveryRow, reason: &HoldReason) {
    if let Err(error) = core.db.note_wait(row.id, reason.as_str().to_owned(), core.clock.now()).await {
        core.warn(row.id, format!("the reason of a hold could not be written: {error}"));
    }
    core.log.emit(
        Event::new(EventType::DeliveryHeld)
            .with("delivery", row.id)
            .with("work_item", item)
            .with("reason", reason.as_str()),
    );
}

/// Sends a return alone: an interrupted text may stand in the composer, and whatever comes next would be glued to it. The
/// same gates are asked as for a text, and an empty composer takes a return for nothing. Tells what to wait for, if anything.
pub(crate) async fn flush(core: &Arc<Core>, item: &WorkItemRef) -> Option<HoldReason> {
    let record = core.registry.session(item)?;
    let (handle, (_, runner), harness) = (record.runner.clone()?, core.runner()?, core.harness(&record.harness)?);
    let facts = process_facts(core, &*runner, &handle, &record);
    let readiness = effective_readiness(core, item, &*harness, &facts).await;
    let gate = Gate {
        core: Arc::clone(core),
        item: item.clone(),
        delivery: DeliveryId::generate(),
        harness,
        facts,
        signals: readiness == Readiness::Signals,
        // Nothing of a delivery's own is written, so there is nothing to put on record.
        writing: AtomicBool::new(true),
    };
    let delivery = Delivery::new(core.key(), gate.delivery, String::new(), readiness, Arc::new(gate));
    match runner.deliver(&handle, &delivery).await {
        DeliveryOutcome::Delivered | DeliveryOutcome::Gone { .. } => None,
        DeliveryOutcome::Held(reason) | DeliveryOutcome::Unsubmitted(reason) => Some(reason),
        DeliveryOutcome::NotWritten { .. } | DeliveryOutcome::Uncertain { .. } => Some(HoldReason::RunnerSilent),
    }
}

/// What is known of a session's process.
pub(crate) fn process_facts(
    core: &Core,
    runner: &dyn Runner,
    handle: &RunnerHandle,
    record: &SessionRecord,
) -> ProcessFacts {
    ProcessFacts {
        pid: runner.agent_pid(handle),
        cwd: record.cwd.clone(),
        conversation: record.harness_session_id.clone(),
        // Of this spawn; the record may be older. A clock that was set back makes it young, which only waits longer.
        age: record
            .incarnation
            .and_then(|incarnation| core.clock.now().duration_since(incarnation.made_at()).try_into().ok())
            .unwrap_or_default(),
        environment: base_environment(core),
    }
}

/// What is known of a text that may have been written when an earlier process died (REL-3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Doubt {
    /// The harness has it.
    Arrived,
    /// It is provably absent: its process is gone and its transcript does not hold it.
    Absent,
    /// The process lives and its transcript does not hold it yet.
    NotYet {
        /// It works on a turn, and may have taken the text without having written it down.
        busy: bool,
    },
    /// Nothing tells.
    Unknowable,
}

/// Asks the transcript about a text that may have been written. Every process is asked that the session had since.
pub(crate) async fn doubt(core: &Core, item: &WorkItemRef, row: &DeliveryRow) -> Doubt {
    let Some(record) = core.registry.session(item) else { return Doubt::Unknowable };
    let (Some(handle), Some((_, runner)), Some(harness)) =
        (record.runner.clone(), core.runner(), core.harness(&record.harness))
    else {
        return Doubt::Unknowable;
    };
    let facts = process_facts(core, &*runner, &handle, &record);
    let conversation = record.harness_session_id.as_deref().unwrap_or_default();
    match transcript::look(harness.transcript(conversation, &facts), row.id).await {
        Told::Found => Doubt::Arrived,
        Told::Nothing => Doubt::Unknowable,
        Told::NotYet => match runner.probe(&handle.name, Some(&handle)).await {
            Liveness::Dead { .. } | Liveness::Absent | Liveness::Live { ours: false } => Doubt::Absent,
            Liveness::Live { ours: true } | Liveness::Unknown { .. } => {
                let observed = signals::observe(core, item, &*harness, &facts).await;
                Doubt::NotYet { busy: observed.is_some_and(|observed| observed.state == HarnessState::Busy) }
            }
        },
    }
}

/// A text that is provably absent goes on as one that was never written, under the same id (REL-3).
pub(crate) async fn again(core: &Core, row: &DeliveryRow) {
    let why = Some("absent-from-transcript".to_owned());
    let noted = core.db.transition(row.id, Receipt::Queued, why, "transcript".to_owned(), core.clock.now()).await;
    if let Err(error) = noted {
        core.warn(row.id, format!("that it is delivered again could not be recorded: {error}"));
    }
}
