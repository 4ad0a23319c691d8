//! What the host writes on a ticket: answers, announcements, keywords of the control plane, reactions. All of it best effort,
//! marked, and behind an admitted act; none of it changes what the host does otherwise.

use std::time::Duration;

use the_loop_plugin_api::{
    Post, WorkItemRef,
    event::Item,
    tracker::{Reaction, TrackerError},
};

use super::core::Core;
use crate::{
    admission::{Admitted, Answer, Command, Provenance, policy::Policy, steps::MARKER},
    eventlog::{Event, EventType, Level},
};

/// How long a look-up for an operator's call may take before the records answer instead.
const LOOK_UP: Duration = Duration::from_secs(5);

/// `text` with the visible attribution and the marker (KW-05: the host never acts on its own words).
#[must_use]
pub(crate) fn marked(text: &str) -> String {
    // Stamped once, whoever stamped it first (ASK-1).
    if text.contains(MARKER) {
        return text.to_owned();
    }
    format!("{text}\n\n_Posted by the-loop._\n{MARKER}")
}

/// The item of a ref: from its tracker, else as far as the records tell.
pub(crate) async fn look_up(core: &Core, reference: &WorkItemRef) -> Result<Item, String> {
    let Some(tracker) = core.tracker(reference) else { return Ok(core.registry.item(reference)) };
    match tokio::time::timeout(LOOK_UP, tracker.look_up(reference)).await {
        Ok(Ok(item)) => Ok(item),
        Ok(Err(TrackerError::NotFound { what })) => Err(format!("there is no {what} on the tracker of {reference}")),
        Ok(Err(error)) => {
            core.warn(reference, format!("the tracker could not be asked, the records answer instead: {error}"));
            Ok(core.registry.item(reference))
        }
        Err(_) => {
            core.warn(reference, "the tracker did not answer in time, the records answer instead");
            Ok(core.registry.item(reference))
        }
    }
}

/// Tells the author of a refused comment why, once (CTL-8).
pub(crate) async fn answer(core: &Core, answer: Admitted<Answer>) {
    let (Answer { item, text }, provenance) = answer.into_parts();
    let key = format!("answer:{}", provenance.upstream.comment.as_deref().unwrap_or("-"));
    react(core, &item.reference, &provenance, Mood::Error).await;
    if let Some(Err(error)) = post(core, &item.reference, key, &text).await {
        core.warn(&item.reference, format!("the refusal could not be told on the ticket: {error}"));
    }
}

/// Tells the author of a start that it did not come up and is not tried again (CTL-8). Why is for the operator: it may name
/// paths and programs of the host's machine.
pub(crate) async fn tell_not_started(core: &Core, item: &WorkItemRef, provenance: &Provenance) {
    let asked = provenance.event.map_or_else(|| core.clock.now().to_string(), |event| event.to_string());
    let text = format!(
        "The session could not be started on its machine, and that is not tried again by itself. Its operator finds the reason \
         with `the-loop events --work-item {item}`. Once it is put right, give the start command again."
    );
    if let Some(Err(error)) = post(core, item, format!("not-started:{asked}"), &text).await {
        core.warn(item, format!("that it was not started could not be told on the ticket: {error}"));
    }
}

/// Announces the first spawn of an item's session (SES-6).
pub(crate) async fn announce_session(core: &Core, item: &WorkItemRef, session: &str, attach: &[String]) -> bool {
    let text = format!("A session works on this now: `{session}`. On its machine, `{}` shows it.", attach.join(" "));
    let record = match post(core, item, format!("session:{session}"), &text).await {
        None => return false,
        Some(Ok(())) => Event::new(EventType::SessionAnnounced).with("work_item", item).with("tmux_target", session),
        Some(Err(error)) => Event::new(EventType::SessionAnnounceFailed)
            .with("work_item", item)
            .with("error", error.to_string())
            .level(Level::Warning),
    };
    core.log.emit(record);
    true
}

/// Posts the keyword of an operator's command, so that the ticket stays the paper trail (CTL-10). The marker keeps the host
/// from reading its own action back.
pub(crate) async fn announce_command(core: &Core, item: &WorkItemRef, command: Command, actor: &str, key: String) {
    let loaded = core.config.current();
    let Some(keyword) = Policy::new(&loaded.config).vocabulary().spelling(command).map(str::to_owned) else { return };
    let record = match post(core, item, key, &format!("`{actor}` ran this from the control plane:\n\n{keyword}")).await
    {
        None => return,
        Some(Ok(())) => Event::new(EventType::ControlAnnounced).with("work_item", item).with("command", command),
        Some(Err(error)) => Event::new(EventType::ControlAnnounceFailed)
            .with("work_item", item)
            .with("error", error.to_string())
            .level(Level::Warning),
    };
    core.log.emit(record);
}

/// What a reaction says.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Mood {
    Started,
    Completed,
    Error,
}

/// Reacts to the comment that brought an act, if one did and its tracker is linked.
pub(crate) async fn react(core: &Core, item: &WorkItemRef, provenance: &Provenance, mood: Mood) {
    // A comment on a pull request is reacted to there, whatever the item that it is about.
    let on = provenance.upstream.comment_on.as_ref().unwrap_or(item);
    let (Some(comment), Some(tracker)) = (&provenance.upstream.comment, core.tracker(on)) else { return };
    let loaded = core.config.current();
    let reactions = &loaded.config.routing.reactions;
    let (state, content) = match mood {
        Mood::Started => ("started", &reactions.started),
        Mood::Completed => ("completed", &reactions.completed),
        Mood::Error => ("error", &reactions.error),
    };
    if !reactions.enabled || content.is_empty() {
        return;
    }
    let reaction = Reaction::new(core.key(), on.clone(), comment.clone(), content.clone());
    let record = match tracker.react(&reaction).await {
        Ok(()) => Event::new(EventType::ReactionAdded).with("content", content),
        Err(error) => Event::new(EventType::ReactionFailed).with("error", error.to_string()).level(Level::Warning),
    };
    core.log.emit(record.with("work_item", item).with("state", state).with("target", comment));
}

/// Writes a marked comment; `None` where no tracker is linked for the item.
pub(crate) async fn post(core: &Core, item: &WorkItemRef, key: String, text: &str) -> Option<Result<(), TrackerError>> {
    let tracker = core.tracker(item)?;
    let post = Post::new(core.key(), item.clone(), key, marked(text));
    Some(tracker.comment(&post).await.map(drop))
}
