//! One event-log record for every end of the pipeline.

use the_loop_plugin_api::{
    EventId, InboundEvent, WorkItemRef,
    event::{Content, Ingress, Item},
};

use super::{
    DecideError,
    admitted::{Act, Provenance, Reason, UpstreamNames},
    control::Command,
    policy::Policy,
    steps::Ended,
};
use crate::eventlog::{Event, EventLog, EventLogError, EventType, Level};

impl UpstreamNames {
    /// The names that an event carries.
    pub(super) fn of(event: &InboundEvent) -> Self {
        let some = |text: &String| (!text.is_empty()).then(|| text.clone());
        Self {
            gh_event: some(&event.upstream.event),
            action: some(&event.upstream.action),
            delivery_id: event.upstream.delivery_id.clone(),
            comment: match &event.content {
                Content::Comment { comment, .. } => Some(comment.id.clone()),
                Content::Item { .. } | Content::Check { .. } | Content::Moved { .. } | Content::Ping => None,
            },
            comment_on: event.item.as_ref().map(|item| item.reference.clone()),
        }
    }
}

/// An event of the webhook was taken.
pub(super) fn received(log: &EventLog, event: &InboundEvent) {
    if event.ingress == Ingress::Webhook {
        let names = UpstreamNames::of(event);
        log.emit(
            Event::new(EventType::WebhookReceived)
                .with_some("gh_event", names.gh_event)
                .with_some("action", names.action)
                .with_some("delivery_id", names.delivery_id)
                .with("verified", event.upstream.verified),
        );
    }
}

/// Nothing was kept of an event.
pub(super) fn refused_at_the_edge(log: &EventLog, event: &InboundEvent, reason: Reason) {
    log.emit(dropped(event, reason).level(Level::Warning));
}

/// The pipeline let an event through. Written before the act, since a command that cannot be recorded is not executed.
pub(super) async fn routed(
    log: &EventLog,
    event: &InboundEvent,
    act: &Act,
    item: &Item,
    policy: &Policy<'_>,
) -> Result<u64, EventLogError> {
    let names = UpstreamNames::of(event);
    log.append(
        Event::new(EventType::RoutingRouted)
            .with_some("gh_event", names.gh_event.clone())
            .with_some("action", names.action)
            .with("work_items", [&item.reference])
            .with("labeled", policy.is_labelled(item))
            .with_some("actor", event.actor.login())
            .with_some("delivery_id", names.delivery_id.clone()),
    )
    .await?;
    log.append(
        Event::new(EventType::DispatchQueued)
            .with("work_item", &item.reference)
            .with("spawn", matches!(act, Act::Spawn { .. } | Act::Command { command: Command::Start, .. }))
            .with_some("gh_event", names.gh_event)
            .with_some("delivery_id", names.delivery_id),
    )
    .await
}

/// The pipeline ended an event.
pub(super) fn ended(log: &EventLog, event: &InboundEvent, ended: &Ended) {
    let names = UpstreamNames::of(event);
    let item = event.item.as_ref().map(|item| item.reference.to_string());
    let record = match ended.reason {
        Reason::Ambiguous => Event::new(EventType::ControlAmbiguous)
            .with("work_items", item.iter().collect::<Vec<_>>())
            .with_some("actor", event.actor.login())
            .with("commands", &ended.commands)
            .level(Level::Warning),
        Reason::SpawnPolicy | Reason::AwaitingStart | Reason::NothingToResume if !ended.commands.is_empty() => {
            Event::new(EventType::ControlRejected)
                .with("work_items", item.iter().collect::<Vec<_>>())
                .with_some("command", ended.commands.first())
                .with("source", "comment")
                .with_some("actor", event.actor.login())
                .with("reason", ended.reason)
                .level(Level::Warning)
        }
        Reason::SpawnPolicy
        | Reason::AwaitingStart
        | Reason::SessionPaused
        | Reason::AlreadyProcessed
        | Reason::NothingToResume
        | Reason::WouldLoseWork
        | Reason::NoSession
        | Reason::NothingToDo => {
            Event::new(EventType::DispatchDropped).with_some("work_item", item).with("reason", ended.reason)
        }
        Reason::RoutingDisabled => Event::new(EventType::RoutingDisabled)
            .with_some("gh_event", names.gh_event)
            .with_some("delivery_id", names.delivery_id)
            .with_some("work_item", item),
        Reason::Overloaded
        | Reason::TooLarge
        | Reason::DuplicateDelivery
        | Reason::SelfComment
        | Reason::SelfAuthored
        | Reason::UnauthorizedActor
        | Reason::NoWorkItem
        | Reason::Shadow => dropped(event, ended.reason),
    };
    log.emit(record);
    if let Content::Moved { from, to } = &event.content {
        moved(log, from, to);
    }
}

/// A repository has another name: never silently (LNK-5). Its issues are known by the tracker's own id, so that their
/// sessions go on; a pull request that is its own work item has none, and is another item under the new name.
fn moved(log: &EventLog, from: &str, to: &str) {
    let detail = format!(
        "the repository {from:?} is {to:?} now: sessions of its issues go on under the old name; name the new one in the config"
    );
    log.emit(Event::new(EventType::HostWarning).with("subject", to).with("detail", detail).level(Level::Warning));
}

fn dropped(event: &InboundEvent, reason: Reason) -> Event {
    let names = UpstreamNames::of(event);
    Event::new(EventType::RoutingDropped)
        .with("reason", reason)
        .with_some("actor", event.actor.login())
        .with_some("gh_event", names.gh_event)
        .with_some("delivery_id", names.delivery_id)
}

/// What an event would have done, were it not for shadow mode (ADM-6).
pub(super) fn would(log: &EventLog, event: &InboundEvent, act: &Act, item: &Item) {
    let kind = match act {
        Act::Command { command: Command::Start, .. } | Act::Spawn { .. } => EventType::ShadowWouldSpawn,
        Act::Command { .. }
        | Act::End { .. }
        | Act::Close { .. }
        | Act::Reset { .. }
        | Act::Bind { .. }
        | Act::Register(_) => EventType::ShadowWouldCommand,
        Act::Deliver { .. } | Act::Reply { .. } => EventType::ShadowWouldDeliver,
    };
    let names = UpstreamNames::of(event);
    let command = match act {
        Act::Command { command, .. } => Some(*command),
        _ => None,
    };
    log.emit(
        Event::new(kind)
            .with("work_item", &item.reference)
            .with_some("command", command)
            .with_some("actor", event.actor.login())
            .with_some("gh_event", names.gh_event)
            .with_some("delivery_id", names.delivery_id),
    );
}

/// An operator's command was refused.
pub(super) fn operator_rejected(
    log: &EventLog,
    item: &WorkItemRef,
    command: Command,
    provenance: &Provenance,
    reason: Reason,
) {
    log.emit(
        Event::new(EventType::ControlRejected)
            .with("work_items", [item])
            .with("command", command)
            .with("source", provenance.via)
            .with_some("actor", provenance.actor.as_deref())
            .with("reason", reason)
            .level(Level::Warning),
    );
}

/// Unfinished events of an earlier process go on.
pub(super) fn resumed(log: &EventLog, count: u64) {
    if count > 0 {
        log.emit(Event::new(EventType::InboxResumed).with("count", count));
    }
}

/// A row of the inbox cannot be read back.
pub(super) fn unreadable(log: &EventLog, id: EventId, error: &serde_json::Error) {
    log.emit(
        Event::new(EventType::HostWarning)
            .with("subject", id)
            .with("detail", format!("an event of the inbox cannot be read and was set aside: {error}"))
            .level(Level::Error),
    );
}

/// A decision waits.
pub(super) fn delayed(log: &EventLog, id: EventId, error: &DecideError) {
    log.emit(
        Event::new(EventType::HostWarning)
            .with("subject", id)
            .with("detail", format!("the decision on an event waits: {error}"))
            .level(Level::Error),
    );
}
