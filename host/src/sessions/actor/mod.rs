//! One task an item: carries out what was admitted for it, in order, and brings waiting texts into its session (SES-1).

mod delivering;

use std::{collections::VecDeque, sync::Arc, time::Duration};

use the_loop_plugin_api::{DeliveryId, EventId, WorkItemRef, delivery::HoldReason, event::Item};
use tokio::{
    sync::{mpsc, oneshot},
    time::Instant,
};

use super::{
    answers, binding, checkouts,
    core::Core,
    deliver, end, prompt, register,
    registry::Phase,
    retries::Spawning,
    spawn,
    ticket::{self, Mood},
};
use crate::{
    admission::{
        Act, Admitted, Command, Reason, Source,
        admitted::{Excerpt, Provenance},
        steps,
    },
    db::{Answer, DeliveryRow, NewDelivery, Receipt},
    dispatch::{Effect, Outcome},
    eventlog::{Event, EventType, Level},
    state::{ControlRecord, SessionStatus},
    workspace::Loss,
};

/// An admitted act in an item's queue.
pub(crate) struct Job {
    /// What.
    pub(crate) admitted: Admitted<Act>,
    /// The inbox row to settle when it is done.
    pub(crate) journaled: Option<EventId>,
    /// Who waits for the outcome.
    pub(crate) done: Option<oneshot::Sender<Outcome>>,
}

/// A text that waits to be delivered.
struct Text {
    row: DeliveryRow,
    held: Option<HoldReason>,
    /// Since when it is held without a pause in between.
    held_since: Option<Instant>,
    provenance: Option<Provenance>,
    way: Way,
}

/// How far a text is on its way into the terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Way {
    /// No byte of it was written.
    Unwritten,
    /// It stands in the composer, and only its return is missing.
    Pasted,
    /// It may have been written, and the transcript is asked (REL-3).
    Doubtful {
        /// Why nobody knows.
        why: String,
        /// When a bare return was sent, which submits what stands in the composer.
        returned: Option<Instant>,
    },
}

impl Text {
    fn new(row: DeliveryRow, provenance: Option<Provenance>) -> Self {
        let way = if row.writing {
            let why = "the host ended between the paste and its record".to_owned();
            Way::Doubtful { why, returned: None }
        } else {
            Way::Unwritten
        };
        Self { row, held: None, held_since: None, provenance, way }
    }
}

/// How long a held text waits before its gates are looked at again: soon at first, then ever less often.
const FIRST_LOOK: Duration = Duration::from_millis(20);
const LAST_LOOK: Duration = Duration::from_millis(500);
/// How long after a bare return a transcript may take to show what was in the composer: harnesses write with a delay.
const WRITTEN_DOWN: Duration = Duration::from_secs(3);

struct Actor {
    core: Arc<Core>,
    item: WorkItemRef,
    texts: VecDeque<Text>,
    look: Duration,
    spawning: Spawning,
    /// A text that was interrupted may stand in the composer: nothing may be glued to it.
    residue: bool,
}

/// Runs an item's queue until the host stops.
pub(crate) async fn run(core: Arc<Core>, item: WorkItemRef, mut jobs: mpsc::UnboundedReceiver<Job>) {
    let stop = core.stop.clone();
    let mut actor =
        Actor { core, item, texts: VecDeque::new(), look: FIRST_LOOK, spawning: Spawning::default(), residue: false };
    actor.take_up().await;
    loop {
        let next_text = actor.until_next_look();
        let next_spawn = actor.spawning.until_retry();
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            job = jobs.recv() => match job {
                Some(job) => actor.job(job).await,
                None => return,
            },
            () = wait(next_spawn) => actor.retry_spawn().await,
            () = wait(next_text) => actor.deliver_next().await,
        }
    }
}

async fn wait(span: Option<Duration>) {
    match span {
        Some(span) => tokio::time::sleep(span).await,
        None => std::future::pending().await,
    }
}

impl Actor {
    /// Texts of an earlier process go on in order; of those that may have been written the transcript is asked first.
    async fn take_up(&mut self) {
        match self.core.db.queued(&self.item.to_string()).await {
            Ok(rows) => {
                for row in rows {
                    self.core.count_waiting(&self.item, 1);
                    self.texts.push_back(Text::new(row, None));
                }
            }
            Err(error) => self.core.warn(&self.item, format!("waiting texts cannot be read: {error}")),
        }
    }

    fn until_next_look(&self) -> Option<Duration> {
        let takes = self.core.registry.standing(&self.item).phase == Phase::Live && !self.spawning.is_waiting();
        let head = self.texts.front().filter(|_| takes)?;
        Some(match head.way {
            Way::Doubtful { returned: Some(_), .. } => LAST_LOOK,
            _ if head.held.is_some() => self.look,
            _ => Duration::ZERO,
        })
    }

    async fn job(&mut self, job: Job) {
        let Job { admitted, journaled, done } = job;
        let (act, provenance) = admitted.into_parts();
        let outcome = self.act(act, &provenance).await;
        self.core.count_waiting(&self.item, -1);
        if let Some(event) = journaled {
            let (ok, word) = match &outcome {
                Outcome::Failed { .. } => (false, "failed"),
                _ => (true, "done"),
            };
            self.core.settle_event(event, ok, word).await;
        }
        let mood = match &outcome {
            Outcome::Failed { .. } | Outcome::Refused { .. } => Mood::Error,
            _ => Mood::Started,
        };
        if let Some(done) = done {
            // Nobody has to wait for an outcome.
            let _ = done.send(outcome);
        }
        let (core, item) = (Arc::clone(&self.core), self.item.clone());
        self.core.tasks.spawn(async move { ticket::react(&core, &item, &provenance, mood).await });
    }

    async fn act(&mut self, act: Act, provenance: &Provenance) -> Outcome {
        match act {
            Act::Command { command, item, announce, discard_work } => {
                self.command(command, &item, announce, discard_work, provenance).await
            }
            Act::Spawn { item } if self.rests(provenance) => {
                self.spawning.postpone(&item, provenance);
                failed("routing is off; it is started once routing is on again".to_owned())
            }
            Act::Spawn { item } => {
                self.start_again(&item, provenance).await.map_or_else(failed, |effect| outcome(Command::Start, effect))
            }
            Act::Deliver { item, excerpt, through } => {
                if let Some(through) = &through
                    && let Err(error) = binding::bind(&self.core, &self.item, through, None).await
                {
                    self.core.warn(&self.item, format!("the pull request could not be recorded: {error}"));
                }
                let about = through.as_deref().map_or(&item, |through| &through.pull_request);
                self.deliver(about, &excerpt, provenance).await
            }
            Act::Bind { through, closed, .. } => {
                match binding::bind(&self.core, &self.item, &through, closed.then_some(true)).await {
                    Ok(new) => Outcome::Bound { new },
                    Err(error) => failed(format!("the pull request could not be recorded: {error}")),
                }
            }
            Act::Reply { item, text, comment } => self.reply(&item.reference, text, comment, provenance).await,
            Act::End { item } => self.close(&item, provenance, None, Some("issue-closed")).await,
            Act::Close { item, keep_terminal } => self.close(&item, provenance, keep_terminal, None).await,
            Act::Register(registration) => match register::register(&self.core, registration).await {
                Ok(()) => Outcome::Registered,
                Err(text) => failed(text),
            },
            Act::Reset { item, discard_work } => {
                if let Some(loss) = self.at_stake(discard_work).await {
                    return would_lose(&self.item, &loss);
                }
                let outcome = match end::reset(&self.core, &item.reference, discard_work, provenance).await {
                    Ok(removed) => Outcome::Reset { removed },
                    Err(text) => failed(text),
                };
                self.drop_texts("reset").await;
                self.core.registry.settle(&self.item, Phase::None);
                outcome
            }
        }
    }

    /// One of the five (CTL-11). The record is written before the effect, so that a crash between them leaves what was
    /// asked for; a start or resume reaches this place only when it was admitted (CTL-9).
    async fn command(
        &mut self,
        command: Command,
        item: &Item,
        announce: bool,
        discard_work: bool,
        provenance: &Provenance,
    ) -> Outcome {
        if command == Command::Cleanup
            && let Some(loss) = self.at_stake(discard_work).await
        {
            checkouts::refuse(&self.core, &self.item, &loss, provenance);
            return would_lose(&self.item, &loss);
        }
        let intended = match command {
            Command::Start | Command::Resume => Phase::Live,
            Command::Pause => Phase::Paused,
            Command::Stop => Phase::Stopped,
            Command::Cleanup => Phase::None,
        };
        let control = ControlRecord {
            command: command.as_str().to_owned(),
            source: provenance.via.to_owned(),
            actor: provenance.actor.clone().unwrap_or_default(),
            requested_at: self.core.clock.now(),
            note: String::new(),
            reference: item.reference.clone(),
            other: serde_json::Map::new(),
        };
        let recorded = self.core.registry.record_control(item, control).await.map_err(|error| error.to_string());
        let kept = recorded.is_ok();
        crate::drills::point("command:recorded");
        let done = match recorded {
            Err(error) => Err(format!("the {command} could not be recorded, so it was not carried out: {error}")),
            Ok(()) => match command {
                Command::Start => self.start(item, provenance).await,
                Command::Pause | Command::Resume if end::is_unrecorded(&self.core, &self.item).await => Err(format!(
                    "the record of {}'s session cannot be read, so its process cannot be told apart from a stopped one; stop it, then start it again",
                    self.item
                )),
                Command::Pause => self.set_status(SessionStatus::Active, SessionStatus::Paused, Effect::Paused).await,
                Command::Resume => self.set_status(SessionStatus::Paused, SessionStatus::Active, Effect::Resumed).await,
                Command::Stop => end::stop(&self.core, &self.item).await,
                Command::Cleanup => end::cleanup(&self.core, &self.item, discard_work, provenance).await,
            },
        };
        if command != Command::Start || done.is_ok() {
            self.core.registry.settle(&self.item, intended);
        }
        if !matches!(command, Command::Start) {
            self.spawning.forget();
        }
        if command == Command::Cleanup && done.is_ok() {
            self.drop_texts("session-cleaned").await;
        }
        match done {
            Ok(effect) => {
                let seq = self.tell_command(command, provenance.via, provenance.actor.as_deref(), effect).await;
                if announce {
                    self.announce(command, provenance, seq);
                }
                outcome(command, effect)
            }
            Err(text) => {
                // A start that failed is on record already, with what becomes of it.
                if command != Command::Start || !kept {
                    self.core.log.emit(
                        Event::new(EventType::DispatchError)
                            .with("work_item", &self.item)
                            .with("error", &text)
                            .with("will_retry", false)
                            .with_some("gh_event", provenance.upstream.gh_event.as_deref())
                            .with_some("delivery_id", provenance.upstream.delivery_id.as_deref())
                            .level(Level::Error),
                    );
                }
                failed(text)
            }
        }
    }

    /// Whether something that was asked for in this way has to wait, because routing is off (ADM-6).
    fn rests(&self, provenance: &Provenance) -> bool {
        provenance.source != Source::ControlPlane && self.core.is_at_rest()
    }

    /// Puts a command that was carried out on record (CTL-8); gives its number in the log.
    async fn tell_command(&self, command: Command, via: &str, actor: Option<&str>, effect: Effect) -> Option<u64> {
        let event = Event::new(EventType::ControlCommand)
            .with("work_item", &self.item)
            .with("command", command)
            .with("source", via)
            .with_some("actor", actor)
            .with("effect", effect);
        self.core.log.append(event).await.ok()
    }

    /// A start of before, carried out by the host itself: when it comes up, the log says whose it is (CTL-8).
    async fn start_again(&mut self, item: &Item, provenance: &Provenance) -> Result<Effect, String> {
        let effect = self.start(item, provenance).await?;
        let control = self.core.registry.portable(&self.item).and_then(|record| record.control);
        if let Some(control) = control.filter(|control| control.command == Command::Start.as_str())
            && effect != Effect::Noop
        {
            let actor = Some(control.actor.as_str()).filter(|actor| !actor.is_empty());
            self.tell_command(Command::Start, &control.source, actor, effect).await;
        }
        Ok(effect)
    }

    /// What a removal would lose, unless it may be lost. The removal is then not what is intended any more.
    async fn at_stake(&self, discard_work: bool) -> Option<Loss> {
        if discard_work {
            return None;
        }
        let loss = checkouts::at_stake(&self.core, &self.item).await?;
        self.core.registry.settle(&self.item, Phase::None);
        Some(loss)
    }

    fn announce(&self, command: Command, provenance: &Provenance, seq: Option<u64>) {
        let (core, item) = (Arc::clone(&self.core), self.item.clone());
        let actor = provenance.actor.clone().unwrap_or_default();
        let key = format!("command:{command}:{}", seq.unwrap_or_default());
        self.core.tasks.spawn(async move { ticket::announce_command(&core, &item, command, &actor, key).await });
    }

    async fn set_status(&mut self, from: SessionStatus, to: SessionStatus, effect: Effect) -> Result<Effect, String> {
        let Some(record) = self.core.registry.session(&self.item) else { return Ok(Effect::Noop) };
        let same_phase =
            record.status == from || (from == SessionStatus::Active && record.status == SessionStatus::Starting);
        if !same_phase {
            return Ok(Effect::Noop);
        }
        self.core.registry.change(&self.item, |record| record.status = to).await.map_err(|error| error.to_string())?;
        // The bound of a hold does not run during a pause (ARM-5).
        for text in &mut self.texts {
            text.held_since = None;
            if to == SessionStatus::Paused && text.held.is_some() {
                deliver::note_hold(&self.core, &self.item, &text.row, &HoldReason::Paused).await;
                text.held = Some(HoldReason::Paused);
            }
        }
        let kind = if to == SessionStatus::Paused { EventType::SessionPaused } else { EventType::SessionResumed };
        self.core.log.emit(
            Event::new(kind)
                .with("work_item", &self.item)
                .with("harness", &record.harness)
                .with_some("harness_session_id", record.harness_session_id.as_deref())
                .with("tmux_target", &record.tmux_target),
        );
        Ok(effect)
    }

    /// Spawns a session, takes its conversation up again, or finds that it runs.
    async fn start(&mut self, item: &Item, provenance: &Provenance) -> Result<Effect, String> {
        if let Some(record) = self.core.registry.session(&self.item)
            && record.status == SessionStatus::Paused
        {
            return self.set_status(SessionStatus::Paused, SessionStatus::Active, Effect::Resumed).await;
        }
        let started = spawn::start(&self.core, item, provenance, &mut self.spawning).await;
        match started {
            Ok(Some(started)) => {
                self.core.registry.settle(&self.item, Phase::Live);
                self.take_prompt(started.prompt);
                Ok(if started.resumed { Effect::Resumed } else { Effect::Spawned })
            }
            Ok(None) => {
                self.core.registry.settle(&self.item, Phase::Live);
                Ok(Effect::Noop)
            }
            Err(text) => {
                // A start that is given up leaves nothing that texts could wait for.
                if !self.spawning.will_retry() {
                    self.core.registry.settle(&self.item, Phase::Live);
                    self.drop_texts("session-dead").await;
                }
                Err(text)
            }
        }
    }

    /// The first prompt of a new process goes first; one for an earlier process gave way to it.
    fn take_prompt(&mut self, prompt: Option<DeliveryRow>) {
        let Some(row) = prompt else { return };
        let before = self.texts.len();
        self.texts.retain(|text| text.row.source != spawn::PROMPT_SOURCE);
        let gone = isize::try_from(before - self.texts.len()).unwrap_or(isize::MAX);
        self.core.count_waiting(&self.item, 1 - gone);
        self.texts.push_front(Text::new(row, None));
    }

    /// A start that did not come up is tried again without a new comment (CTL-9).
    async fn retry_spawn(&mut self) {
        let Some((item, provenance)) = self.spawning.take_retry() else { return };
        if self.core.registry.standing(&self.item).phase != Phase::Live {
            return;
        }
        if self.rests(&provenance) {
            return self.spawning.postpone(&item, &provenance);
        }
        self.core.log.emit(
            Event::new(EventType::ControlRetry)
                .with("work_item", &self.item)
                .with("command", Command::Start)
                .with("attempts", self.spawning.attempts()),
        );
        // A failure is on record, and the next try is set already.
        let _ = self.start_again(&item, &provenance).await;
    }

    async fn close(
        &mut self,
        item: &Item,
        provenance: &Provenance,
        keep: Option<bool>,
        reason: Option<&str>,
    ) -> Outcome {
        self.spawning.forget();
        let closed = end::close(&self.core, &item.reference, keep, reason).await;
        self.core.registry.settle(&self.item, Phase::Closed);
        self.drop_texts("session-closed").await;
        match closed {
            Ok(closed) => Outcome::Closed { closed },
            Err(text) => {
                self.core.warn(
                    &self.item,
                    format!("closing for {}: {text}", provenance.actor.as_deref().unwrap_or("nobody")),
                );
                failed(text)
            }
        }
    }

    /// Texts that can never be delivered any more are settled, and say so.
    async fn drop_texts(&mut self, reason: &str) {
        while let Some(text) = self.texts.pop_front() {
            deliver::settle(&self.core, &self.item, &text.row, Receipt::Failed, Some(reason), "host").await;
            self.core.count_waiting(&self.item, -1);
        }
    }

    /// A text about an event of the item.
    async fn deliver(&mut self, item: &Item, excerpt: &Excerpt, provenance: &Provenance) -> Outcome {
        let limit = self.core.config.current().config.routing.max_delivery_bytes;
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let id = DeliveryId::generate();
        let answer = matches!(excerpt, Excerpt::Comment { .. })
            .then(|| Answer { surface: answers::TICKET.to_owned(), quote: None });
        self.queue(id, prompt::event(item, &self.item, excerpt, id, limit), answer, provenance).await
    }

    /// An answer of the control plane's: into a process that runs, and never into one that would have to be started (RPL-2).
    async fn reply(&mut self, item: &WorkItemRef, text: String, comment: bool, provenance: &Provenance) -> Outcome {
        match spawn::running(&self.core, self.core.registry.session(item).as_ref()).await {
            Ok(true) => {}
            Ok(false) => {
                return Outcome::Refused { reason: Reason::NoSession, text: Some(steps::no_session(item)) };
            }
            Err(text) => return failed(text),
        }
        let id = DeliveryId::generate();
        let actor = provenance.actor.as_deref().unwrap_or("operator");
        let framed = prompt::reply(item, provenance.via, actor, &text, id);
        let surface = provenance.source.as_str().to_owned();
        let answer = Answer { surface, quote: comment.then_some(text) };
        self.queue(id, framed, Some(answer), provenance).await
    }

    /// Writes a text down as a delivery, so that it outlives this process, and queues it. One event makes one delivery,
    /// however often it is decided.
    async fn queue(
        &mut self,
        id: DeliveryId,
        text: String,
        answer: Option<Answer>,
        provenance: &Provenance,
    ) -> Outcome {
        let new = NewDelivery {
            id,
            target: self.item.to_string(),
            source: provenance.source.as_str().to_owned(),
            actor: provenance.actor.clone(),
            text,
            event: provenance.event,
            answer,
            at: self.core.clock.now(),
        };
        match self.core.db.create_delivery(new).await {
            Ok(Some(row)) => {
                self.core.log.emit(
                    Event::new(EventType::DeliveryQueued)
                        .with("delivery", id)
                        .with("work_item", &self.item)
                        .with_some("reason", provenance.upstream.gh_event.as_deref()),
                );
                self.core.count_waiting(&self.item, 1);
                if let Some(upstream) = &provenance.upstream.delivery_id {
                    self.core.registry.note(&self.item, |record| record.remember_delivery(upstream.clone()));
                }
                self.texts.push_back(Text::new(row, Some(provenance.clone())));
                crate::drills::point("delivery:queued");
                Outcome::Queued { delivery: id }
            }
            // The same event made a delivery before a crash; that one goes its own way.
            Ok(None) => Outcome::Queued { delivery: id },
            Err(error) => failed(format!("the text could not be recorded, so it was not delivered: {error}")),
        }
    }
}

fn outcome(command: Command, effect: Effect) -> Outcome {
    Outcome::Command { command, effect, messages: Vec::new() }
}

fn failed(text: String) -> Outcome {
    Outcome::Failed { text }
}

fn would_lose(item: &WorkItemRef, loss: &Loss) -> Outcome {
    Outcome::Refused { reason: Reason::WouldLoseWork, text: Some(checkouts::would_lose(item, loss)) }
}
