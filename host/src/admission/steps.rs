//! The steps of the decision, each with its own outcome, in the order of `decide` (ARC-5).

use std::collections::BTreeSet;

use sha2::{Digest, Sha256};
use the_loop_plugin_api::{
    EventId, InboundEvent, WorkItemRef,
    event::{Actor, Comment, CommentChange, Content, Item, ItemChange, ItemState},
};

use super::{
    admitted::{Act, Excerpt, Reason},
    control::{Command, Spoken},
    inbound::Source,
    linkage::Aim,
    policy::{Behind, Policy},
};
use crate::{
    db::{Db, DbError, KeyClaim, Revision},
    sessions::registry::{Phase, Standing},
};

/// Stamped on everything the host writes to a ticket.
pub const MARKER: &str = "<!-- the-loop:agent-comment -->";

/// A step's end of an event: why, and what to tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Why.
    pub reason: Reason,
    /// What the author should be told, once, on the ticket.
    pub answer: Option<String>,
    /// Commands that were seen, for the record of a refused command.
    pub commands: BTreeSet<Command>,
}

impl Ended {
    pub(super) fn because(reason: Reason) -> Self {
        Self { reason, answer: None, commands: BTreeSet::new() }
    }

    fn command(reason: Reason, command: Command, answer: impl Into<String>) -> Self {
        Self { reason, answer: Some(answer.into()), commands: BTreeSet::from([command]) }
    }
}

/// What step 2 learned of a comment's earlier revision.
#[derive(Debug, Default)]
pub struct Earlier {
    /// Commands that the text before the edit carried already.
    commands: BTreeSet<Command>,
}

/// Step 2: this delivery id, or this exact revision of this comment, was already handled. A delivery whose handling failed
/// was not, and may be sent again.
pub async fn duplicate(
    db: &Db,
    id: EventId,
    event: &InboundEvent,
    policy: &Policy<'_>,
) -> Result<Result<Earlier, Ended>, DbError> {
    let mut keys = Vec::new();
    if let Some(delivery) = &event.upstream.delivery_id {
        keys.push(format!("delivery:{}:{delivery}", event.ingress.as_str()));
    }
    let comment = comment_of(event);
    let name = comment.map(|(item, comment, _)| comment_key(item, comment));
    if let (Some((_, comment, _)), Some(name)) = (comment, &name) {
        let at = comment.updated_at.map_or_else(|| "-".to_owned(), |at| at.to_string());
        keys.push(format!("revision:{name}:{at}:{}", sha(&comment.body)));
    }
    if let KeyClaim::Duplicate { key, .. } = db.claim_keys(id, keys).await? {
        let reason = if key.starts_with("delivery:") { Reason::DuplicateDelivery } else { Reason::AlreadyProcessed };
        return Ok(Err(Ended::because(reason)));
    }
    let (Some((_, comment, change)), Some(name)) = (comment, name) else { return Ok(Ok(Earlier::default())) };
    let known = db.revision(&name).await?;
    let stale =
        known.as_ref().and_then(|known| known.updated_at).zip(comment.updated_at).is_some_and(|(seen, now)| seen > now);
    if stale {
        return Ok(Err(Ended::because(Reason::AlreadyProcessed)));
    }
    let mut earlier = Earlier::default();
    if let CommentChange::Edited { previous } = change {
        let unchanged = match (&known, previous) {
            (Some(known), _) => known.text_sha == sha(&comment.body),
            (None, Some(previous)) => *previous == comment.body,
            (None, None) => false,
        };
        if unchanged {
            return Ok(Err(Ended::because(Reason::AlreadyProcessed)));
        }
        earlier.commands = match (&known, previous) {
            (Some(known), _) => known.commands.iter().filter_map(|word| word.parse().ok()).collect(),
            (None, Some(previous)) => commands(&policy.vocabulary().read(previous)),
            (None, None) => BTreeSet::new(),
        };
    }
    let now = commands(&policy.vocabulary().read(&comment.body));
    let commands = now.into_iter().map(|command| command.as_str().to_owned()).collect();
    db.record_revision(&name, Revision { updated_at: comment.updated_at, text_sha: sha(&comment.body), commands })
        .await?;
    Ok(Ok(earlier))
}

/// Step 3: the host's own words, or a bot's, never act. Judges authored text only: CI events come from bots and pass.
pub fn own_words(event: &InboundEvent) -> Result<(), Ended> {
    let Content::Comment { comment, .. } = &event.content else { return Ok(()) };
    if comment.body.contains(MARKER) {
        return Err(Ended::because(Reason::SelfComment));
    }
    if matches!(comment.author, Actor::Bot { .. }) || matches!(event.actor, Actor::Bot { .. }) {
        return Err(Ended::because(Reason::SelfAuthored));
    }
    Ok(())
}

/// Step 4: a human action needs an actor of the allow-list (ADM-2). Events with no human behind them pass and can do little
/// (ADM-3); so does a closing, whoever closed (ADM-5).
pub fn actor(event: &InboundEvent, policy: &Policy<'_>) -> Result<Behind, Ended> {
    if let Some(name) = policy.person(Source::from(event.ingress), &event.actor) {
        return Ok(Behind::Person(name));
    }
    if crate::drills::admission_is_open() {
        return Ok(Behind::Person(event.actor.login().unwrap_or_default().to_owned()));
    }
    match (&event.content, &event.actor) {
        (Content::Item { change: ItemChange::Closed }, _) | (Content::Ping | Content::Moved { .. }, _) => {
            Ok(Behind::Nobody)
        }
        (Content::Comment { .. }, Actor::Machine) => Err(Ended::because(Reason::UnauthorizedActor)),
        (Content::Item { .. } | Content::Check { .. }, Actor::Machine) => Ok(Behind::Nobody),
        (
            Content::Comment { .. } | Content::Item { .. } | Content::Check { .. },
            Actor::Human { .. } | Actor::Bot { .. } | Actor::Missing,
        ) => Err(Ended::because(Reason::UnauthorizedActor)),
    }
}

/// Step 5: the work item that the event is about.
pub fn target(event: &InboundEvent) -> Result<&Item, Ended> {
    event.item.as_ref().ok_or_else(|| Ended::because(Reason::NoWorkItem))
}

/// Step 6: a command, an ambiguity, or neither. Only comments command (CTL-7), only a named person does (CTL-6), and an edit
/// runs only what its text newly says (ADM-4).
pub fn control(
    event: &InboundEvent,
    earlier: &Earlier,
    behind: &Behind,
    policy: &Policy<'_>,
) -> Result<Option<Command>, Ended> {
    let Content::Comment { comment, change } = &event.content else { return Ok(None) };
    if !policy.commands_enabled() || *change == CommentChange::Deleted {
        return Ok(None);
    }
    match policy.vocabulary().read(&comment.body) {
        Spoken::Nothing => Ok(None),
        Spoken::Ambiguous(commands) => Err(Ended {
            reason: Reason::Ambiguous,
            answer: Some(
                "That comment says two different things to the-loop, so neither was done. Post one command alone."
                    .to_owned(),
            ),
            commands,
        }),
        Spoken::Command(command) if earlier.commands.contains(&command) => {
            Err(Ended::because(Reason::AlreadyProcessed))
        }
        Spoken::Command(command) => match behind {
            Behind::Person(_) | Behind::Host => Ok(Some(command)),
            Behind::Nobody => Err(Ended::because(Reason::UnauthorizedActor)),
        },
    }
}

/// Step 7 for a command of a ticket: arming (ARM-1, ARM-2) and policy (ARM-3).
pub fn command_policy(command: Command, item: &Item, standing: &Standing, policy: &Policy<'_>) -> Result<Act, Ended> {
    match command {
        Command::Start => {
            if policy.never_spawns() {
                return Err(Ended::command(
                    Reason::SpawnPolicy,
                    command,
                    "Nothing can be started from a ticket here (`routing.spawnOnUnmatched: never`). The operator can run `the-loop sessions start`.",
                ));
            }
            if !policy.may_spawn(item) {
                return Err(Ended::command(
                    Reason::SpawnPolicy,
                    command,
                    format!(
                        "This item is not armed, so the start did nothing and is not remembered. Add the label `{}` and comment again.",
                        policy.label()
                    ),
                ));
            }
            if item.state == ItemState::Closed {
                return Err(Ended::command(
                    Reason::SpawnPolicy,
                    command,
                    "This item is closed, so the start did nothing. Reopen it and comment again.",
                ));
            }
        }
        Command::Resume => {
            if standing.phase != Phase::Paused {
                return Err(Ended::command(
                    Reason::NothingToResume,
                    command,
                    "There is no paused session to resume. Use the start command to start one.",
                ));
            }
        }
        Command::Pause | Command::Stop | Command::Cleanup => {}
    }
    Ok(Act::Command { command, item: item.clone(), announce: false, discard_work: false })
}

/// Step 7 for an answer of the control plane: into a session that runs, and never into one that is paused (RPL-2).
pub fn reply(item: &WorkItemRef, standing: &Standing) -> Result<(), (Reason, String)> {
    match standing.phase {
        Phase::Live => Ok(()),
        Phase::Paused => Err((
            Reason::SessionPaused,
            format!("the session of {item} is paused; run `the-loop sessions resume --work-item {item}` first"),
        )),
        Phase::None | Phase::Stopped | Phase::Closed => Err((Reason::NoSession, no_session(item))),
    }
}

/// What to tell who answers a session that does not run.
pub fn no_session(item: &WorkItemRef) -> String {
    format!(
        "no session of {item} runs, and a reply starts none; `the-loop sessions start --work-item {item}` does, or answer on the ticket"
    )
}

/// Step 7 for anything else: may this spawn, may this be delivered now.
pub fn arming(
    event: &InboundEvent,
    aim: &Aim,
    behind: &Behind,
    standing: &Standing,
    policy: &Policy<'_>,
) -> Result<Act, Ended> {
    let Aim { item, through } = aim;
    if let Content::Item { change: ItemChange::Closed } = &event.content {
        return match (standing.phase, through) {
            (Phase::None | Phase::Closed, _) => Err(Ended::because(Reason::NothingToDo)),
            // Only what closed is ended (LNK-6).
            (Phase::Live | Phase::Paused | Phase::Stopped, Some(through)) => {
                Ok(Act::Bind { item: item.clone(), through: through.clone(), closed: true })
            }
            (Phase::Live | Phase::Paused | Phase::Stopped, None) => Ok(Act::End { item: item.clone() }),
        };
    }
    match standing.phase {
        Phase::Paused => return Err(Ended::because(Reason::SessionPaused)),
        Phase::Live => {
            let excerpt = excerpt(event).ok_or_else(|| Ended::because(Reason::NothingToDo))?;
            return Ok(Act::Deliver { item: item.clone(), excerpt, through: through.clone() });
        }
        Phase::None | Phase::Stopped | Phase::Closed => {}
    }
    // A machine's report never spawns, whoever may stand behind it (ADM-3).
    let person = matches!(behind, Behind::Person(_) | Behind::Host) && !matches!(event.content, Content::Check { .. });
    if !policy.may_spawn(item) || !person || item.state == ItemState::Closed || excerpt(event).is_none() {
        return Err(Ended::because(Reason::SpawnPolicy));
    }
    // After a disarming command nothing spawns until the next start (CTL-9), whatever the label says.
    let disarmed = standing.control.is_some_and(|command| !command.arms());
    let waits = policy.requires_start() && standing.control != Some(Command::Start);
    if waits || disarmed || standing.phase == Phase::Closed {
        return Err(Ended::because(Reason::AwaitingStart));
    }
    Ok(Act::Spawn { item: item.clone() })
}

/// The fields of an event that a prompt may show (DEL-8); `None` for what nobody needs to be told.
fn excerpt(event: &InboundEvent) -> Option<Excerpt> {
    let author = event.actor.login().unwrap_or("someone").to_owned();
    match &event.content {
        Content::Comment { change: CommentChange::Deleted, .. } | Content::Moved { .. } | Content::Ping => None,
        Content::Check { check } => Some(Excerpt::Check(check.clone())),
        Content::Comment { comment, change } => Some(Excerpt::Comment {
            author,
            url: comment.url.clone(),
            body: comment.body.clone(),
            edited: matches!(change, CommentChange::Edited { .. }),
            surface: comment.surface.clone(),
        }),
        Content::Item { change } => {
            let what = match change {
                ItemChange::Opened => "opened".to_owned(),
                ItemChange::Reopened => "reopened".to_owned(),
                ItemChange::Labeled { label } => format!("labelled {:?}", label.as_deref().unwrap_or("")),
                ItemChange::Unlabeled { label } => format!("unlabelled {:?}", label.as_deref().unwrap_or("")),
                ItemChange::Closed => "closed".to_owned(),
                ItemChange::Other { action } if action == "edited" => "edited".to_owned(),
                ItemChange::Other { .. } => return None,
            };
            Some(Excerpt::Change { author, what })
        }
    }
}

fn comment_of(event: &InboundEvent) -> Option<(&WorkItemRef, &Comment, &CommentChange)> {
    match (&event.content, &event.item) {
        (Content::Comment { comment, change }, Some(item)) if *change != CommentChange::Deleted => {
            Some((&item.reference, comment, change))
        }
        _ => None,
    }
}

/// Comment ids are unique on one tracker: provider, host and, for trackers that number by repository, the repository.
fn comment_key(item: &WorkItemRef, comment: &Comment) -> String {
    format!("{}:{}:{}/{}:{}", item.provider(), item.host().unwrap_or(""), item.owner(), item.repo(), comment.id)
}

fn commands(spoken: &Spoken) -> BTreeSet<Command> {
    match spoken {
        Spoken::Nothing => BTreeSet::new(),
        Spoken::Command(command) => BTreeSet::from([*command]),
        Spoken::Ambiguous(commands) => commands.clone(),
    }
}

fn sha(text: &str) -> String {
    hex::encode(Sha256::digest(text.as_bytes()))
}
