//! What the control plane does with work items and sessions: one function an operation, shared by every face (ARC-2, CP-1).

use std::{collections::HashMap, path::PathBuf};

use jiff::Timestamp;
use serde::Serialize;
use the_loop_plugin_api::{
    HarnessState, IncarnationId, WorkItemRef,
    runner::Occupant,
    signal::{Evidence, ObservedState},
    work_item::RefError,
};

use super::{checkouts, deliver, signals};
use crate::{
    TheLoop,
    admission::{
        Command, Inbound, OperatorAct, OperatorCall, Reason, Surface, control::UnknownCommand, inbound::Registration,
    },
    dispatch::{Effect, Outcome},
    state::{ControlRecord, SessionRecord, SessionStatus},
};

/// Why an operation was not done.
#[derive(Debug, thiserror::Error)]
pub enum OperationError {
    /// The ref is malformed.
    #[error(transparent)]
    Ref(#[from] RefError),
    /// The verb is none of the five.
    #[error(transparent)]
    Verb(#[from] UnknownCommand),
    /// The text cannot be said: there is nothing in it, or too much.
    #[error("{0}")]
    Text(String),
    /// There is no such thing.
    #[error("{0}")]
    NotFound(String),
    /// It was refused, or cannot be.
    #[error("{0}")]
    Refused(String),
    /// A bound is reached, or the host is stopping.
    #[error("{0}")]
    Unavailable(String),
}

/// A work item as the control plane shows it.
#[derive(Clone, Debug, PartialEq, Serialize, utoipa::ToSchema)]
pub struct WorkItemRow {
    /// Its ref.
    #[serde(rename = "ref")]
    #[schema(value_type = String)]
    pub reference: WorkItemRef,
    /// Where a person reads it.
    pub url: String,
    /// The last command on record.
    pub control: Option<ControlRecord>,
}

/// A work item's parts.
#[derive(Clone, Debug, PartialEq, Serialize, utoipa::ToSchema)]
pub struct RefParts {
    /// The tracker's kind.
    pub provider: String,
    /// The owner.
    pub owner: String,
    /// The repository.
    pub repo: String,
    /// The number.
    pub number: u64,
    /// The whole ref.
    #[serde(rename = "ref")]
    #[schema(value_type = String)]
    pub reference: WorkItemRef,
}

/// A session as the control plane shows it.
#[derive(Clone, Debug, PartialEq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionRow {
    /// The item that it works on.
    #[serde(rename = "ref")]
    #[schema(value_type = String)]
    pub reference: WorkItemRef,
    /// The same in parts.
    pub work_item: RefParts,
    /// Where a person reads the item.
    pub url: String,
    /// The item's title. Untrusted text.
    pub title: String,
    /// The harness.
    pub harness: String,
    /// The harness's conversation id; empty where there is none.
    pub harness_session_id: String,
    /// The folder it works in.
    #[schema(value_type = String)]
    pub cwd: PathBuf,
    /// `starting`, `active`, `paused`, `stopped` or `closed`.
    pub status: SessionStatus,
    /// What the harness does, with the evidence for it (SES-3).
    #[schema(value_type = HarnessStateShape)]
    pub harness_state: ObservedState,
    /// The terminal session's name, as it is typed.
    pub tmux_target: String,
    /// When the record was made.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    /// When something last reached the session.
    #[schema(value_type = String, format = DateTime)]
    pub last_event_at: Timestamp,
    /// The upstream's ids of the last deliveries.
    pub recent_deliveries: Vec<String>,
    /// The last command on record.
    pub control: Option<ControlRecord>,
}

/// How [`SessionRow::harness_state`] is documented: the type itself belongs to the plugins' interface.
#[derive(utoipa::ToSchema)]
#[schema(as = HarnessState)]
#[expect(dead_code, reason = "read by the document alone")]
pub(crate) struct HarnessStateShape {
    /// `idle`, `busy`, `awaiting-permission`, `unknown` or `gone`.
    state: String,
    /// `hook`, `state-file`, `transcript`, `screen`, `probe` or `none`.
    evidence: String,
    /// Since when it holds, as far as the evidence tells.
    #[schema(format = DateTime)]
    since: String,
    /// What the harness shows.
    detail: Option<String>,
}

/// What a command answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ControlAnswer {
    /// The item.
    #[schema(value_type = String)]
    pub work_item: WorkItemRef,
    /// The command.
    pub verb: Command,
    /// What it did.
    pub effect: String,
    /// 0 when it did something, 1 when there was nothing to do.
    pub exit_code: u8,
    /// The same in words.
    pub output: String,
    /// Each with the stream that a command line would print it to.
    pub messages: Vec<Message>,
}

/// A line for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct Message {
    /// `stdout` or `stderr`.
    pub stream: &'static str,
    /// The line.
    pub text: String,
}

impl Message {
    fn out(text: String) -> Vec<Self> {
        vec![Self { stream: "stdout", text }]
    }
}

impl TheLoop {
    /// Every work item that has a portable record.
    #[must_use]
    pub fn work_items(&self) -> Vec<WorkItemRow> {
        let portables = self.core.registry.portables();
        portables
            .into_iter()
            .map(|record| WorkItemRow { reference: record.reference, url: record.url, control: record.control })
            .collect()
    }

    /// One work item.
    ///
    /// # Errors
    /// When the ref is malformed or unknown.
    pub fn work_item(&self, reference: &str) -> Result<WorkItemRow, OperationError> {
        let item: WorkItemRef = reference.parse()?;
        let record = self.core.registry.portable(&item).ok_or_else(|| {
            OperationError::NotFound(format!("nothing is known of {item}; `the-loop sessions list` lists what is"))
        })?;
        Ok(WorkItemRow { reference: record.reference, url: record.url, control: record.control })
    }

    /// Every session, of one status if asked. Costs one look at the runner for all of them (TMX-9).
    pub async fn sessions(&self, status: Option<SessionStatus>) -> Vec<SessionRow> {
        let records: Vec<SessionRecord> = self
            .core
            .registry
            .sessions()
            .into_iter()
            .filter(|record| status.is_none_or(|wanted| record.status == wanted))
            .collect();
        if records.is_empty() {
            return Vec::new();
        }
        let look = self.look().await;
        let rows = records.into_iter().map(|record| self.row(record, look.as_ref()));
        futures::future::join_all(rows).await
    }

    /// One session.
    ///
    /// # Errors
    /// When the ref is malformed, or there is no session for it.
    pub async fn session(&self, reference: &str) -> Result<SessionRow, OperationError> {
        let item: WorkItemRef = reference.parse()?;
        let record = self.core.registry.session(&item).ok_or_else(|| no_session(&item))?;
        let look = self.look().await;
        Ok(self.row(record, look.as_ref()).await)
    }

    /// The command with which a person attaches to a session's terminal, and whether it is only for reading.
    ///
    /// # Errors
    /// When the ref is malformed, or there is no session for it.
    pub fn attach_command(&self, reference: &str) -> Result<Vec<String>, OperationError> {
        let item: WorkItemRef = reference.parse()?;
        let record = self.core.registry.session(&item).ok_or_else(|| no_session(&item))?;
        let (_, runner) =
            self.core.runner().ok_or_else(|| OperationError::Refused("no runner is linked".to_owned()))?;
        Ok(runner.attach(&record.tmux_target, record.status == SessionStatus::Closed))
    }

    /// One of the five commands (CTL-10). `discard_work` lets a cleanup lose what is in the item's checkout alone (SES-5).
    ///
    /// # Errors
    /// When the ref or the verb is malformed, or the command is refused or fails.
    pub async fn control(
        &self,
        surface: Surface,
        actor: &str,
        reference: &str,
        verb: &str,
        comment: bool,
        discard_work: bool,
    ) -> Result<ControlAnswer, OperationError> {
        let item: WorkItemRef = reference.parse()?;
        let command: Command = verb.parse()?;
        let act = OperatorAct::Command { command, item: item.clone(), comment, discard_work };
        match self.call(surface, actor, act).await? {
            Outcome::Command { effect, .. } => {
                let target = self.core.registry.session(&item).map(|record| record.tmux_target).unwrap_or_default();
                let output = describe(&item, command, effect, &target);
                Ok(ControlAnswer {
                    work_item: item,
                    verb: command,
                    effect: effect.as_str().to_owned(),
                    exit_code: u8::from(effect == Effect::Noop && command != Command::Start),
                    messages: Message::out(output.clone()),
                    output,
                })
            }
            other => Err(unexpected(&other)),
        }
    }

    /// Takes over a conversation that was started elsewhere.
    ///
    /// # Errors
    /// When the ref is malformed, the harness is unknown, or the item has a session and `force` is not given.
    pub async fn register(
        &self,
        surface: Surface,
        actor: &str,
        registration: RegisterRequest,
    ) -> Result<SessionRecord, OperationError> {
        let item: WorkItemRef = registration.reference.parse()?;
        let act = OperatorAct::Register(Registration {
            item: item.clone(),
            harness: registration.harness,
            conversation: registration.conversation,
            cwd: registration.cwd,
            force: registration.force,
        });
        match self.call(surface, actor, act).await? {
            Outcome::Registered => self.core.registry.session(&item).ok_or_else(|| no_session(&item)),
            other => Err(unexpected(&other)),
        }
    }

    /// Ends a session; the next start is a fresh conversation. `false` when there was none.
    ///
    /// # Errors
    /// When the ref is malformed or the process could not be ended.
    pub async fn close(
        &self,
        surface: Surface,
        actor: &str,
        reference: &str,
        keep_terminal: Option<bool>,
    ) -> Result<bool, OperationError> {
        let item: WorkItemRef = reference.parse()?;
        match self.call(surface, actor, OperatorAct::Close { item, keep_terminal }).await? {
            Outcome::Closed { closed } => Ok(closed),
            other => Err(unexpected(&other)),
        }
    }

    /// Records that a pull request delivers an item, so that its events go to the item's session (LNK-2). `pull_request` is a
    /// ref, or a number in the item's repository. Idempotent: `false` when it was on record.
    ///
    /// # Errors
    /// When a ref is malformed, or there is no session for the item.
    pub async fn link_pull_request(
        &self,
        surface: Surface,
        actor: &str,
        reference: &str,
        pull_request: &str,
    ) -> Result<(WorkItemRef, bool), OperationError> {
        let item: WorkItemRef = reference.parse()?;
        let number = pull_request.strip_prefix('#').unwrap_or(pull_request);
        let pull_request = match number.parse::<u64>() {
            Ok(number) => WorkItemRef::new(item.provider(), item.host(), item.owner(), item.repo(), number)?,
            Err(_) => pull_request.parse()?,
        };
        self.core.registry.session(&item).ok_or_else(|| no_session(&item))?;
        let act = OperatorAct::LinkPullRequest { item, pull_request: pull_request.clone() };
        match self.call(surface, actor, act).await? {
            Outcome::Bound { new } => Ok((pull_request, new)),
            other => Err(unexpected(&other)),
        }
    }

    /// Forgets what this machine knows of an item; says what was removed. `discard_work` lets it lose what is in the item's
    /// checkout alone (SES-5).
    ///
    /// # Errors
    /// When the ref is malformed or the process could not be ended.
    pub async fn reset(
        &self,
        surface: Surface,
        actor: &str,
        reference: &str,
        discard_work: bool,
    ) -> Result<Vec<String>, OperationError> {
        let item: WorkItemRef = reference.parse()?;
        match self.call(surface, actor, OperatorAct::Reset { item, discard_work }).await? {
            Outcome::Reset { removed } => Ok(removed),
            other => Err(unexpected(&other)),
        }
    }

    /// What a reset would remove, and what of it is work that is nowhere else.
    ///
    /// # Errors
    /// When the ref is malformed.
    pub async fn reset_preview(&self, reference: &str) -> Result<Vec<String>, OperationError> {
        let item: WorkItemRef = reference.parse()?;
        let mut found = Vec::new();
        if let Some(record) = self.core.registry.session(&item) {
            if record.runner.is_some() {
                found.push(format!("terminal session {}", record.tmux_target));
            }
            if let Some(checkout) = &record.checkout {
                found.push(format!("checkout {}", checkout.path.display()));
                let loss = checkouts::at_stake(&self.core, &item).await.unwrap_or_default();
                found.extend(loss.lines().iter().map(|line| format!("only with --discard-work, {line}")));
            }
            found.push("session record".to_owned());
        }
        if self.core.registry.portable(&item).is_some() {
            found.push("portable record".to_owned());
        }
        Ok(found)
    }

    /// Through the one admission entry, like everything else (ADM-1).
    pub(super) async fn call(
        &self,
        surface: Surface,
        actor: &str,
        act: OperatorAct,
    ) -> Result<Outcome, OperationError> {
        let call = OperatorCall { surface, claimed_actor: actor.to_owned(), act };
        let submission = self
            .admission
            .submit(Inbound::Operator(call))
            .await
            .map_err(|error| OperationError::Unavailable(error.to_string()))?;
        match submission.outcome.await {
            Ok(Outcome::Failed { text }) => Err(OperationError::Refused(text)),
            Ok(Outcome::Refused { reason, text }) => {
                let text = text.unwrap_or_else(|| reason.as_str().to_owned());
                Err(match reason {
                    Reason::NoWorkItem | Reason::NoSession => OperationError::NotFound(text),
                    Reason::Overloaded => OperationError::Unavailable(text),
                    _ => OperationError::Refused(text),
                })
            }
            Ok(outcome) => Ok(outcome),
            Err(_) => Err(OperationError::Unavailable(
                "the host is stopping; look at `the-loop status` and try again".to_owned(),
            )),
        }
    }

    pub(crate) async fn look(&self) -> Option<Look> {
        let (_, runner) = self.core.runner()?;
        Some(Look::of(runner.survey().await?))
    }

    async fn row(&self, record: SessionRecord, look: Option<&Look>) -> SessionRow {
        let item = record.reference.clone();
        SessionRow {
            work_item: RefParts {
                provider: item.provider().to_owned(),
                owner: item.owner().to_owned(),
                repo: item.repo().to_owned(),
                number: item.number(),
                reference: item.clone(),
            },
            harness_state: self.observed(&record, look).await,
            control: self.core.registry.portable(&item).and_then(|portable| portable.control),
            reference: item,
            url: record.url,
            title: record.title,
            harness: record.harness,
            harness_session_id: record.harness_session_id.unwrap_or_default(),
            cwd: record.cwd,
            status: record.status,
            tmux_target: record.tmux_target,
            created_at: record.created_at,
            last_event_at: record.last_event_at,
            recent_deliveries: record.recent_deliveries,
        }
    }

    /// What is known of a session's harness: what a probe tells, and what it says of itself. One that runs and says nothing
    /// is unknown, never idle (SES-3).
    pub(crate) async fn observed(&self, record: &SessionRecord, look: Option<&Look>) -> ObservedState {
        let now = self.core.clock.now();
        let state = |state, evidence, detail: &str| ObservedState {
            state,
            evidence,
            since: now,
            detail: Some(detail.to_owned()),
        };
        let (Some(look), Some(handle)) = (look, &record.runner) else {
            return match &record.runner {
                Some(_) => state(HarnessState::Unknown, Evidence::None, "the runner did not answer"),
                None => state(HarnessState::Gone, Evidence::Probe, "no process was started yet"),
            };
        };
        match look.occupant(record) {
            None => return state(HarnessState::Gone, Evidence::Probe, "its terminal is gone"),
            Some(occupant) if occupant.dead => {
                return state(HarnessState::Gone, Evidence::Probe, "its process has exited");
            }
            Some(_) => {}
        }
        let said = match (self.core.harness(&record.harness), self.core.runner()) {
            (Some(harness), Some((_, runner))) => {
                let facts = deliver::process_facts(&self.core, &*runner, handle, record);
                signals::observe(&self.core, &record.reference, &*harness, &facts).await
            }
            _ => None,
        };
        said.unwrap_or_else(|| {
            state(HarnessState::Unknown, Evidence::Probe, "its process runs; this harness does not say what it does")
        })
    }
}

/// What one look at the runner showed.
pub(crate) struct Look {
    by_name: HashMap<String, Occupant>,
    by_incarnation: HashMap<IncarnationId, Occupant>,
}

impl Look {
    fn of(occupants: Vec<Occupant>) -> Self {
        let by_incarnation = occupants.iter().filter_map(|one| Some((one.incarnation?, one.clone()))).collect();
        Self { by_incarnation, by_name: occupants.into_iter().map(|one| (one.name.clone(), one)).collect() }
    }

    /// The terminal of a session: the one that carries its spawn, whatever a person calls it by now, else the one of its name.
    pub(crate) fn occupant(&self, record: &SessionRecord) -> Option<&Occupant> {
        let spawned = record.incarnation.and_then(|incarnation| self.by_incarnation.get(&incarnation));
        spawned.or_else(|| self.by_name.get(&record.tmux_target))
    }
}

/// A conversation to take over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegisterRequest {
    /// The item's ref.
    pub reference: String,
    /// The harness.
    pub harness: String,
    /// The harness's conversation id.
    pub conversation: String,
    /// The folder it works in, absolute.
    pub cwd: PathBuf,
    /// Replace a registered conversation.
    pub force: bool,
}

/// What a reset removed, or would, in words.
#[must_use]
pub fn reset_text(reference: &str, removed: &[String], preview: bool) -> String {
    match (removed.is_empty(), preview) {
        (true, _) => format!("{reference}: nothing is known of it"),
        (false, true) => format!("{reference}: would remove {}", removed.join(", ")),
        (false, false) => format!("{reference}: removed {}", removed.join(", ")),
    }
}

fn no_session(item: &WorkItemRef) -> OperationError {
    OperationError::NotFound(format!(
        "there is no session for {item}; `the-loop sessions start --work-item {item}` starts one"
    ))
}

/// An outcome that the act cannot have: a mistake of ours, told rather than hidden.
pub(super) fn unexpected(outcome: &Outcome) -> OperationError {
    OperationError::Refused(format!("the host answered something else than was asked: {outcome:?}"))
}

fn describe(item: &WorkItemRef, command: Command, effect: Effect, target: &str) -> String {
    match effect {
        Effect::Spawned => format!("{item}: started in {target}"),
        Effect::Resumed => format!("{item}: resumed in {target}"),
        Effect::Paused => format!("{item}: paused; nothing is delivered until it is resumed"),
        Effect::Stopped => format!("{item}: stopped; the next start resumes its conversation"),
        Effect::Cleaned => format!("{item}: cleaned up; the next start is a fresh conversation"),
        Effect::Noop if command == Command::Start => format!("{item}: runs already in {target}"),
        Effect::Noop => format!("{item}: nothing to do for {command}: it is so already, or there is no session"),
    }
}
