//! Ending a session: stop, close, cleanup, reset (CTL-11, SES-4, SES-5, TMX-5).

use std::{sync::Arc, time::Duration};

use the_loop_plugin_api::{
    Liveness, Runner, RunnerHandle, SessionKey, Termination, WorkItemRef,
    runner::{RunnerError, Terminated},
};

use super::{checkouts, core::Core};
use crate::{
    admission::admitted::Provenance,
    dispatch::Effect,
    eventlog::{Event, EventType, Level},
    state::{SessionRecord, SessionStatus},
};

/// Ends the harness and keeps the conversation for the next start.
pub(crate) async fn stop(core: &Arc<Core>, item: &WorkItemRef) -> Result<Effect, String> {
    let Some(record) = live(core, item) else {
        return Ok(if end_unrecorded(core, item).await? { Effect::Stopped } else { Effect::Noop });
    };
    end_process(core, &record, core.config.current().config.routing.tmux.keep_session_on_close).await?;
    core.registry
        .change(item, |record| record.status = SessionStatus::Stopped)
        .await
        .map_err(|error| error.to_string())?;
    Ok(Effect::Stopped)
}

/// Ends a session for good: the next start is a fresh conversation. `reason` is set when its item ended.
pub(crate) async fn close(
    core: &Arc<Core>,
    item: &WorkItemRef,
    keep: Option<bool>,
    reason: Option<&str>,
) -> Result<bool, String> {
    let Some(record) = core.registry.session(item).filter(|record| record.status != SessionStatus::Closed) else {
        return end_unrecorded(core, item).await;
    };
    let keep = keep.unwrap_or(core.config.current().config.routing.tmux.keep_session_on_close);
    end_process(core, &record, keep).await?;
    core.registry
        .change(item, |record| record.status = SessionStatus::Closed)
        .await
        .map_err(|error| error.to_string())?;
    core.log.emit(
        Event::new(EventType::SessionClosed)
            .with("work_item", item)
            .with("harness", &record.harness)
            .with_some("harness_session_id", record.harness_session_id.as_deref())
            .with("tmux_target", &record.tmux_target)
            .with_some("reason", reason),
    );
    checkouts::closed(core, item, reason).await;
    Ok(true)
}

/// Ends a session and removes what this machine holds of it; the portable record stays.
pub(crate) async fn cleanup(
    core: &Arc<Core>,
    item: &WorkItemRef,
    discard_work: bool,
    provenance: &Provenance,
) -> Result<Effect, String> {
    let (removed, was_live) = match core.registry.session(item) {
        Some(record) => remove(core, &record, discard_work).await?,
        None if end_unrecorded(core, item).await? => (vec![format!("terminal session {}", terminal_name(item))], true),
        None => return Ok(Effect::Noop),
    };
    core.log.emit(
        Event::new(EventType::SessionCleaned)
            .with("work_item", item)
            .with_some("actor", provenance.actor.as_deref())
            .with("source", provenance.via)
            .with("removed", &removed)
            .with("was_live", was_live),
    );
    Ok(Effect::Cleaned)
}

/// Forgets what this machine knows of an item. The event log stays, and nothing is posted.
pub(crate) async fn reset(
    core: &Arc<Core>,
    item: &WorkItemRef,
    discard_work: bool,
    provenance: &Provenance,
) -> Result<Vec<String>, String> {
    let mut removed = Vec::new();
    let mut was_live = false;
    if let Some(record) = core.registry.session(item) {
        let (of_session, live) = remove(core, &record, discard_work).await?;
        removed.extend(of_session);
        was_live = live;
    } else if end_unrecorded(core, item).await? {
        removed.push(format!("terminal session {}", terminal_name(item)));
        was_live = true;
    }
    if core.registry.portable(item).is_some() {
        core.registry.forget_portable(item).await.map_err(|error| error.to_string())?;
        removed.push("portable record".to_owned());
    }
    core.log.emit(
        Event::new(EventType::SessionReset)
            .with("work_item", item)
            .with_some("actor", provenance.actor.as_deref())
            .with("source", provenance.via)
            .with("removed", &removed)
            .with("found", !removed.is_empty())
            .with("was_live", was_live),
    );
    Ok(removed)
}

/// What this machine holds of a session. Work that was done while it was being ended is found here: the session is then
/// stopped, and nothing more is removed.
async fn remove(core: &Arc<Core>, record: &SessionRecord, discard_work: bool) -> Result<(Vec<String>, bool), String> {
    let was_live = live(core, &record.reference).is_some();
    let mut removed = Vec::new();
    if record.runner.is_some() {
        end_process(core, record, false).await?;
        removed.push(format!("terminal session {}", record.tmux_target));
    }
    match checkouts::remove(core, &record.reference, discard_work).await {
        Ok(checkout) => removed.extend(checkout),
        Err(text) => {
            if was_live {
                let stopped = |record: &mut SessionRecord| record.status = SessionStatus::Stopped;
                core.registry.change(&record.reference, stopped).await.map_err(|error| error.to_string())?;
            }
            return Err(text);
        }
    }
    core.registry.forget_session(&record.reference).await.map_err(|error| error.to_string())?;
    removed.push("session record".to_owned());
    Ok((removed, was_live))
}

fn live(core: &Core, item: &WorkItemRef) -> Option<SessionRecord> {
    let is_live = |record: &SessionRecord| {
        matches!(record.status, SessionStatus::Starting | SessionStatus::Active | SessionStatus::Paused)
    };
    core.registry.session(item).filter(is_live)
}

fn terminal_name(item: &WorkItemRef) -> String {
    SessionKey::work_item(item.clone()).terminal_name()
}

/// A live process that was spawned for an item and of which no record tells: its file was damaged, or a newer version of the
/// program wrote it (STA-1).
async fn unrecorded(core: &Core, item: &WorkItemRef) -> Option<RunnerHandle> {
    if core.registry.session(item).is_some() {
        return None;
    }
    let (runner_name, runner) = core.runner()?;
    let name = terminal_name(item);
    if !matches!(runner.probe(&name, None).await, Liveness::Live { .. }) {
        return None;
    }
    let occupant = runner.survey().await?.into_iter().find(|occupant| occupant.name == name && !occupant.dead)?;
    Some(RunnerHandle { runner: runner_name.to_owned(), name, incarnation: occupant.incarnation?, data: occupant.data })
}

/// Whether an item has a live process of which no record tells.
pub(crate) async fn is_unrecorded(core: &Core, item: &WorkItemRef) -> bool {
    unrecorded(core, item).await.is_some()
}

/// Ends a process of which no record tells, and removes its terminal: whoever ends a session means what runs.
async fn end_unrecorded(core: &Core, item: &WorkItemRef) -> Result<bool, String> {
    let Some(handle) = unrecorded(core, item).await else { return Ok(false) };
    end_handle(core, item, None, &handle, false).await?;
    Ok(true)
}

/// Ends the process of a record, and removes its terminal unless it is kept for reading.
async fn end_process(core: &Core, record: &SessionRecord, keep: bool) -> Result<(), String> {
    let Some(handle) = &record.runner else { return Ok(()) };
    end_handle(core, &record.reference, Some(&record.harness), handle, keep).await
}

/// Ends a process gracefully, then by force, and removes its terminal unless it is kept for reading. A process
/// that is not ours is left alone; a runner that does not answer ends nothing.
async fn end_handle(
    core: &Core,
    item: &WorkItemRef,
    harness: Option<&str>,
    handle: &RunnerHandle,
    keep: bool,
) -> Result<(), String> {
    let Some((_, runner)) = core.runner() else { return Ok(()) };
    let grace = Duration::from_secs(core.config.current().config.routing.tmux.harness_kill_grace_seconds);
    let order = Termination::new(core.key(), grace);
    let ended = runner.terminate(handle, &order).await;
    let event = Event::new(EventType::SessionHarnessTerminated)
        .with("work_item", item)
        .with_some("harness", harness)
        .with("tmux_target", &handle.name);
    match ended {
        Ok(Terminated::Gracefully | Terminated::Forced) => core.log.emit(event.with("ok", true)),
        Ok(Terminated::AlreadyGone) | Err(RunnerError::Gone { .. } | RunnerError::NotOurs { .. }) => {}
        Err(error @ RunnerError::Silent { .. }) => {
            core.log.emit(event.with("ok", false).with("error", error.to_string()).level(Level::Error));
            return Err(format!("{error}; nothing was ended"));
        }
    }
    if keep { Ok(()) } else { remove_terminal(&*runner, handle, &order).await }
}

async fn remove_terminal(runner: &dyn Runner, handle: &RunnerHandle, order: &Termination) -> Result<(), String> {
    match runner.kill(handle, order).await {
        Ok(()) | Err(RunnerError::Gone { .. } | RunnerError::NotOurs { .. }) => Ok(()),
        Err(error @ RunnerError::Silent { .. }) => Err(error.to_string()),
    }
}
