//! The folder that a session works in, and what becomes of it when the session ends (WSP-1…3, SES-5).

use std::{io, path::PathBuf, sync::Arc};

use the_loop_plugin_api::{WorkItemRef, event::Item};

use super::{core::Core, spawn::NotStarted, surroundings::base_environment, text::sanitise, ticket};
use crate::{
    admission::{Command, Reason, admitted::Provenance},
    eventlog::{Event, EventType, Level},
    state::{CheckoutRecord, SessionRecord, SessionStatus},
    workspace::{Loss, Workspace, WorkspaceError, remove_all},
};

/// Where a session works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// The folder.
    pub(super) cwd: PathBuf,
    /// Its checkout, unless the folder is one that sessions share.
    pub(super) checkout: Option<CheckoutRecord>,
}

/// The folder for a session. A conversation goes on where it was (TMX-6); a new one gets the item's checkout where
/// `routing.workspace.root` is set, or one is left of an earlier session, and else the folder that all share (WSP-1).
pub(super) async fn place(core: &Core, item: &Item, recorded: Option<&SessionRecord>) -> Result<Place, NotStarted> {
    let left = recorded.and_then(|record| record.checkout.as_ref());
    let going_on = recorded.filter(|record| record.status != SessionStatus::Closed);
    if let (Some(record), None) = (going_on, left) {
        return Ok(Place { cwd: record.cwd.clone(), checkout: None });
    }
    let Some(workspace) = workspace(core, left) else {
        return Ok(Place { cwd: core.config.current().spawn_workdir(), checkout: None });
    };
    let prepared = workspace.prepare(item, left).await.map_err(|error| match &error {
        WorkspaceError::Git { .. } | WorkspaceError::Disk { .. } => NotStarted::from(error.to_string()),
        _ => NotStarted::for_good(error.to_string()),
    })?;
    if prepared.new {
        core.log.emit(told(EventType::WorkspacePrepared, &item.reference, &prepared.checkout));
    }
    crate::drills::point("workspace:prepared");
    Ok(Place { cwd: prepared.checkout.path.clone(), checkout: Some(prepared.checkout) })
}

/// What would be lost with an item's checkout; `None` when nothing would.
pub(super) async fn at_stake(core: &Core, item: &WorkItemRef) -> Option<Loss> {
    let checkout = core.registry.session(item)?.checkout?;
    let loss = workspace(core, Some(&checkout))?.loss(item, &checkout).await;
    (!loss.is_empty()).then_some(loss)
}

/// Removes an item's checkout, and takes it off the record. Nothing is removed of which work would be lost, unless it may be
/// (SES-5). Says what was removed; the process that worked in it must have ended.
pub(super) async fn remove(core: &Core, item: &WorkItemRef, discard_work: bool) -> Result<Option<String>, String> {
    let Some(checkout) = core.registry.session(item).and_then(|record| record.checkout) else { return Ok(None) };
    let Some(workspace) = workspace(core, Some(&checkout)) else { return Ok(None) };
    if !discard_work {
        let loss = workspace.loss(item, &checkout).await;
        if !loss.is_empty() {
            return Err(would_lose(item, &loss));
        }
    }
    let cleaned = told(EventType::WorkspaceCleaned, item, &checkout);
    if let Err(error) = workspace.remove(item, &checkout).await {
        core.log.emit(cleaned.with("error", error.to_string()).level(Level::Error));
        return Err(error.to_string());
    }
    core.log.emit(cleaned);
    let change = |record: &mut SessionRecord| record.checkout = None;
    core.registry.change(item, change).await.map_err(|error| error.to_string())?;
    Ok(Some(format!("checkout {}", checkout.path.display())))
}

/// Removes the checkout of a session that was closed, unless it is to be kept or has work in it.
pub(super) async fn closed(core: &Core, item: &WorkItemRef, reason: Option<&str>) {
    if core.config.current().config.routing.workspace.keep_checkout_on_close {
        return;
    }
    if let Err(kept) = remove(core, item, false).await {
        let deferred = Event::new(EventType::CleanupDeferred)
            .with("work_item", item)
            .with("source", "host")
            .with("reason", Reason::WouldLoseWork)
            .with_some("closed_as", reason)
            .with("error", kept);
        core.log.emit(deferred.level(Level::Warning));
    }
}

/// Refuses a command that would lose work: on the record, and to its author on the ticket (CTL-8).
pub(super) fn refuse(core: &Arc<Core>, item: &WorkItemRef, loss: &Loss, provenance: &Provenance) {
    core.log.emit(
        Event::new(EventType::ControlRejected)
            .with("work_items", [item])
            .with("command", Command::Cleanup)
            .with("source", provenance.via)
            .with_some("actor", provenance.actor.as_deref())
            .with("reason", Reason::WouldLoseWork)
            .level(Level::Warning),
    );
    for doubt in loss.doubts() {
        core.warn(item, format!("git cannot tell what is in a checkout: {doubt}"));
    }
    // Who asked by another way than a comment hears it there.
    if provenance.upstream.comment.is_none() {
        return;
    }
    let listed = loss.lines().iter().map(|line| format!("- `{}`\n", sanitise(line).replace(['`', '\n'], "'")));
    let text = format!(
        "Nothing was cleaned up: this work is in the checkout and nowhere else.\n\n{}\nHave it committed and pushed, then give \
         the command again. The operator can give it up with `the-loop sessions cleanup --discard-work`.",
        listed.collect::<String>()
    );
    let (core, item, provenance) = (Arc::clone(core), item.clone(), provenance.clone());
    core.tasks.clone().spawn(async move {
        let key = format!("answer:{}", provenance.upstream.comment.as_deref().unwrap_or("-"));
        if let Some(Err(error)) = ticket::post(&core, &item, key, &text).await {
            core.warn(&item, format!("the refusal could not be told on the ticket: {error}"));
        }
    });
}

/// What an operator is told of work that would be lost.
pub(super) fn would_lose(item: &WorkItemRef, loss: &Loss) -> String {
    let all = [loss.lines(), loss.doubts()].concat().join("; ");
    format!(
        "{item}: its checkout holds work that is nowhere else: {}. Commit and push it, or pass --discard-work to lose it",
        sanitise(&all)
    )
}

/// Removes what removals left undone when an earlier process died. What is listed now is theirs; it goes in its own time.
pub(super) async fn sweep(core: &Arc<Core>) {
    let Some(workspace) = workspace(core, None) else { return };
    let unswept = |core: &Core, error: io::Error| {
        core.warn("routing.workspace.root", format!("a removed checkout could not be cleared away: {error}"));
    };
    let paths = match workspace.leftovers().await {
        Ok(paths) => paths,
        Err(error) => return unswept(core, error),
    };
    let sweeping = Arc::clone(core);
    core.tasks.spawn(async move {
        for path in paths {
            if let Err(error) = remove_all(&path).await {
                unswept(&sweeping, error);
            }
        }
    });
}

/// The workspace that the config names, or the one in which a checkout was made.
fn workspace<'a>(core: &'a Core, left: Option<&CheckoutRecord>) -> Option<Workspace<'a>> {
    let loaded = core.config.current();
    let config = &loaded.config.routing.workspace;
    let root = match config.root.as_os_str().is_empty() {
        false => loaded.resolve(&config.root),
        true => left?.path.parent()?.to_owned(),
    };
    Some(Workspace::new(root, config, base_environment(core), &core.turns))
}

fn told(kind: EventType, item: &WorkItemRef, checkout: &CheckoutRecord) -> Event {
    Event::new(kind)
        .with("work_item", item)
        .with("strategy", checkout.strategy)
        .with("checkout", &checkout.path)
        .with("branch", &checkout.branch)
}
