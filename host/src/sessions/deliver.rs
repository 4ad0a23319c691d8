//! One text into one session: the gates, the runner, the receipt (DEL-1 to DEL-7).

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use async_trait::async_trait;
use the_loop_plugin_api::{
    Delivery, DeliveryId, Harness, HarnessState, Runner, RunnerHandle, WorkItemRef,
    delivery::{DeliveryOutcome, HoldReason, InputGate, Readiness},
    harness::ProcessFacts,
};

use super::{core::Core, registry::Phase};
use crate::{
    db::{DeliveryRow, Receipt},
    eventlog::{Event, EventType, Level},
    state::SessionRecord,
};

/// What came of one try to deliver a text.
pub(crate) enum Attempt {
    /// It is settled, one way or the other.
    Settled {
        /// Whether it reached the session.
        delivered: bool,
    },
    /// No byte was written; it waits for this.
    Held(HoldReason),
    /// No byte was written; there is no process to write to.
    NoProcess,
    /// The text stands in the composer, and its return was withheld for this.
    Pasted(HoldReason),
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
    let readiness = effective_readiness(core, &*harness, &facts).await;
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
    crate::drills::point("delivery:written");
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
            core.log.emit(
                Event::new(EventType::DispatchSucceeded)
                    .with("work_item", item)
                    .with("harness", &record.harness)
                    .with("via", &handle.runner)
                    .with("delivery", row.id),
            );
            let now = core.clock.now();
            core.registry.note(item, |record| record.last_event_at = now);
            Attempt::Settled { delivered: true }
        }
        DeliveryOutcome::Held(reason) => Attempt::Held(reason),
        DeliveryOutcome::NotWritten { error } => {
            core.warn(row.id, format!("nothing was written and it is tried again: {error}"));
            Attempt::Held(HoldReason::RunnerSilent)
        }
        DeliveryOutcome::Gone { .. } => Attempt::NoProcess,
        DeliveryOutcome::Unsubmitted(reason) => Attempt::Pasted(reason),
        DeliveryOutcome::Uncertain { error } => {
            settle(core, item, row, Receipt::Uncertain, Some(&error), "runner").await;
            Attempt::Settled { delivered: false }
        }
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
async fn effective_readiness(core: &Core, harness: &dyn Harness, facts: &ProcessFacts) -> Readiness {
    let stated = harness.readiness();
    if stated != Readiness::Signals
        || core.config.current().config.routing.unsignalled != crate::config::Unsignalled::Screen
    {
        return stated;
    }
    if facts.age > SILENT_FOR && harness.observe(facts).await.is_none() {
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
            match self.harness.observe(&self.facts).await.map(|observed| observed.state) {
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
    let (kind, level) = match to {
        // A prompt that gives way to a newer one is no failure that anybody has to look at.
        Receipt::Failed if reason == Some("superseded") => (EventType::DeliveryFailed, Level::Info),
        Receipt::Failed => (EventType::DeliveryFailed, Level::Error),
        Receipt::Uncertain | Receipt::Unknown => (EventType::DeliveryUncertain, Level::Error),
        Receipt::Queued | Receipt::Delivered | Receipt::Submitted | Receipt::Answered => {
            (EventType::DeliveryDelivered, Level::Info)
        }
    };
    core.log.emit(
        Event::new(kind)
            .with("delivery", row.id)
            .with("work_item", item)
            .with_some("reason", reason)
            .with("evidence", evidence)
            .level(level),
    );
}

/// Notes why a text waits.
pub(crate) async fn note_hold(core: &Core, item: &WorkItemRef, row: &DeliveryRow, reason: &HoldReason) {
    let now = core.clock.now();
    if let Err(error) =
        core.db.transition(row.id, Receipt::Queued, Some(reason.as_str().to_owned()), "host".to_owned(), now).await
    {
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
    let readiness = effective_readiness(core, &*harness, &facts).await;
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

fn process_facts(core: &Core, runner: &dyn Runner, handle: &RunnerHandle, record: &SessionRecord) -> ProcessFacts {
    ProcessFacts {
        pid: runner.agent_pid(handle),
        cwd: record.cwd.clone(),
        conversation: record.harness_session_id.clone(),
        age: core.clock.now().duration_since(record.created_at).try_into().unwrap_or_default(),
    }
}

/// A text that may have been written when an earlier process died is never pasted again on doubt (REL-3, DEL-7).
pub(crate) async fn settle_interrupted(core: &Core, item: &WorkItemRef, row: &DeliveryRow) {
    settle(core, item, row, Receipt::Uncertain, Some("the host ended between the paste and its record"), "none").await;
}
