//! The one decision whether anything inbound may act, and how (ARC-5).
//!
//! [`Admission::submit`] is the only entry: webhook, poller, local tracker, channel, REST, CLI, SDK and the host's own
//! retries all pass through it. What comes out the other side is an [`Admitted`] value, which nothing outside this module
//! can make. The steps stand in [`Admission::pipeline`], in the order in which they are taken.

pub mod admitted;
pub mod control;
mod deciding;
pub mod inbound;
mod linkage;
pub mod policy;
mod record;
pub mod steps;
#[cfg(test)]
mod tests;

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use jiff::Timestamp;
use the_loop_plugin_api::{EventId, InboundEvent, context::Refused, event::Item};
use tokio::sync::{mpsc, oneshot};

pub use self::{
    admitted::{Act, Admitted, Answer, Provenance, Reason, Refusal, Verdict},
    control::Command,
    deciding::Deciding,
    inbound::{HostAct, Inbound, OperatorAct, OperatorCall, Question, Source, Surface},
};
use self::{
    admitted::{Through, UpstreamNames},
    linkage::Linkage,
    policy::{Behind, Policy},
    steps::Ended,
};
use crate::{
    config::{Config, ConfigWatch},
    db::{Db, DbError, NewInbox},
    dispatch::Outcome,
    eventlog::{EventLog, EventLogError},
    sessions::registry::{Phase, Registry, Standing},
};

/// The most events that may wait in the inbox (REL-7).
const MAX_PENDING: u64 = 10_000;
/// The largest event that is taken, in bytes of JSON. A tracker's comment is far smaller.
const MAX_EVENT_BYTES: usize = 4 << 20;

/// The decision, and the queue of what waits for it.
pub struct Admission {
    config: Arc<ConfigWatch>,
    db: Db,
    log: EventLog,
    registry: Arc<Registry>,
    linkage: Linkage,
    queue: mpsc::UnboundedSender<Waiting>,
    pending: Arc<AtomicU64>,
}

/// Something in the queue.
struct Waiting {
    id: EventId,
    inbound: Inbound,
    journaled: bool,
    done: Option<oneshot::Sender<Outcome>>,
    /// The item of an operator's call, once its tracker was asked.
    looked_up: Option<Result<Item, String>>,
}

/// Something that was taken.
#[derive(Debug)]
pub struct Submission {
    /// Its id; durable, if it came from outside.
    pub id: EventId,
    /// What became of it. A source acknowledges without waiting for it.
    pub outcome: oneshot::Receiver<Outcome>,
}

impl Admission {
    /// The decision, and the end that [`Deciding::run`] consumes. What an earlier process left unfinished is queued first,
    /// before any source can submit (REL-1).
    ///
    /// # Errors
    /// When the inbox cannot be read.
    pub async fn new(
        config: Arc<ConfigWatch>,
        db: Db,
        log: EventLog,
        registry: Arc<Registry>,
    ) -> Result<(Arc<Self>, Deciding), DbError> {
        let (queue, waiting) = mpsc::unbounded_channel();
        let admission = Arc::new(Self {
            config,
            db,
            log,
            registry,
            linkage: Linkage::default(),
            queue,
            pending: Arc::new(AtomicU64::new(0)),
        });
        let unfinished = admission.db.unfinished().await?;
        let mut resumed = 0;
        for row in unfinished {
            match serde_json::from_str::<InboundEvent>(&row.payload) {
                Ok(event) => {
                    resumed += 1;
                    admission.enqueue(Waiting {
                        id: row.id,
                        inbound: Inbound::Event(Box::new(event)),
                        journaled: true,
                        done: None,
                        looked_up: None,
                    });
                }
                Err(error) => {
                    record::unreadable(&admission.log, row.id, &error);
                    admission.db.finish(row.id, "unreadable").await?;
                }
            }
        }
        record::resumed(&admission.log, resumed);
        Ok((Arc::clone(&admission), Deciding::new(admission, waiting)))
    }

    /// The one entry for everything inbound (ARC-5). Returns once it is durable, if it came from outside (step 1); the rest
    /// of the pipeline runs behind.
    ///
    /// # Errors
    /// [`Refused`] means that nothing was kept.
    pub async fn submit(&self, inbound: Inbound) -> Result<Submission, Refused> {
        let id = EventId::generate();
        let journaled = match &inbound {
            Inbound::Event(event) => {
                self.journal(id, event).await?;
                true
            }
            // An operator's call is acknowledged by its effect, and the host's own acts follow from records: neither is
            // acknowledged to anyone before it is done.
            Inbound::Operator(_) | Inbound::Host(_) => false,
        };
        let (done, outcome) = oneshot::channel();
        self.enqueue(Waiting { id, inbound, journaled, done: Some(done), looked_up: None });
        Ok(Submission { id, outcome })
    }

    /// How many events wait for a decision.
    #[must_use]
    pub fn pending(&self) -> u64 {
        self.pending.load(Ordering::Relaxed)
    }

    fn enqueue(&self, waiting: Waiting) {
        self.pending.fetch_add(1, Ordering::Relaxed);
        // A closed queue means that the host is stopping: what is durable continues at the next start.
        if self.queue.send(waiting).is_err() {
            self.pending.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Step 1: the event is durable before its source acknowledges it.
    async fn journal(&self, id: EventId, event: &InboundEvent) -> Result<(), Refused> {
        let pending = self.pending();
        if pending >= MAX_PENDING {
            record::refused_at_the_edge(&self.log, event, Reason::Overloaded);
            return Err(Refused::Overloaded { pending });
        }
        let payload =
            serde_json::to_string(event).map_err(|error| Refused::NotRecorded { reason: error.to_string() })?;
        if payload.len() > MAX_EVENT_BYTES {
            record::refused_at_the_edge(&self.log, event, Reason::TooLarge);
            return Err(Refused::TooLarge { size: payload.len(), limit: MAX_EVENT_BYTES });
        }
        let row = NewInbox {
            id,
            source: event.ingress.as_str().to_owned(),
            received_at: Timestamp::now(),
            payload,
            max_bytes: MAX_EVENT_BYTES,
            max_pending: MAX_PENDING,
        };
        self.db.journal(row).await.map_err(|error| Refused::NotRecorded { reason: error.to_string() })?;
        record::received(&self.log, event);
        Ok(())
    }

    /// Steps 2 to 7 for what came from outside.
    async fn pipeline(
        &self,
        id: EventId,
        event: &InboundEvent,
        policy: &Policy<'_>,
    ) -> Result<Result<(Act, Behind), Ended>, DbError> {
        if !policy.routing_enabled() {
            return Ok(Err(Ended::because(Reason::RoutingDisabled)));
        }
        let earlier = match steps::duplicate(&self.db, id, event, policy).await? {
            Ok(earlier) => earlier,
            Err(ended) => return Ok(Err(ended)),
        };
        let decided = || {
            steps::own_words(event)?;
            let behind = steps::actor(event, policy)?;
            let aim = self.linkage.aim(steps::target(event)?, &self.registry);
            let standing = self.registry.standing(&aim.item.reference);
            let act = match steps::control(event, &earlier, &behind, policy)? {
                Some(command) => steps::command_policy(command, &aim.item, &standing, policy)?,
                None => steps::arming(event, &aim, &behind, &standing, policy)?,
            };
            Ok((act, behind))
        };
        Ok(decided())
    }

    /// The decision for an event: its verdict, recorded.
    async fn decide(&self, id: EventId, event: &InboundEvent, config: &Config) -> Result<Verdict, DecideError> {
        let policy = Policy::new(config);
        let provenance = |behind: &Behind| Provenance {
            source: Source::from(event.ingress),
            actor: match behind {
                Behind::Person(name) => Some(name.clone()),
                Behind::Nobody | Behind::Host => event.actor.login().map(str::to_owned),
            },
            via: "comment",
            event: Some(id),
            upstream: UpstreamNames::of(event),
        };
        match self.pipeline(id, event, &policy).await? {
            Ok((act, _)) if policy.shadow() => {
                record::would(&self.log, event, &act, act_item(&act));
                Ok(Verdict::Refused(Refusal { reason: Reason::Shadow, answer: None, text: None }))
            }
            Ok((act, behind)) => {
                // A command that cannot be recorded is not executed (EVT-3): the event stays in the inbox until it can.
                record::routed(&self.log, event, &act, act_item(&act), &policy).await?;
                Ok(Verdict::Admitted(Admitted::new(act, provenance(&behind))))
            }
            Err(ended) => {
                record::ended(&self.log, event, &ended);
                let answer = ended.answer.clone().filter(|_| !policy.shadow()).zip(event.item.clone());
                let answer = answer.map(|(text, item)| Admitted::new(Answer { item, text }, provenance(&Behind::Host)));
                Ok(Verdict::Refused(Refusal { reason: ended.reason, answer, text: ended.answer }))
            }
        }
    }

    /// The decision for an operator's call: past the boundary it is the operator's, and steps 3, 4 and CTL-6 do not judge it
    /// (ADM-0). Under every value of `spawnOnUnmatched` the operator may start (ARM-3).
    fn decide_operator(&self, id: EventId, call: &OperatorCall, item: Item) -> Verdict {
        let standing = self.registry.standing(call.act.item());
        let provenance = Provenance {
            source: Source::ControlPlane,
            actor: Some(call.claimed_actor.clone()),
            via: call.surface.as_str(),
            event: Some(id),
            upstream: UpstreamNames::default(),
        };
        let act = match call.act.clone() {
            OperatorAct::Command { command: Command::Resume, item: reference, .. }
                if standing.phase != Phase::Paused =>
            {
                record::operator_rejected(&self.log, &reference, Command::Resume, &provenance, Reason::NothingToResume);
                let text = format!("{reference} has no paused session to resume; `the-loop sessions start` starts one");
                return Verdict::Refused(Refusal { reason: Reason::NothingToResume, answer: None, text: Some(text) });
            }
            OperatorAct::Command { command, comment, discard_work, .. } => {
                Act::Command { command, item, announce: comment, discard_work }
            }
            OperatorAct::Register(registration) => Act::Register(registration),
            OperatorAct::LinkPullRequest { pull_request, .. } => {
                let pull_request = Item { is_pull_request: true, ..self.registry.item(&pull_request) };
                let through = Box::new(Through { pull_request, linked_by: "hand" });
                Act::Bind { item, through, closed: false }
            }
            OperatorAct::Close { keep_terminal, .. } => Act::Close { item, keep_terminal },
            OperatorAct::Reset { discard_work, .. } => Act::Reset { item, discard_work },
            OperatorAct::Reply { text, comment, .. } => match steps::reply(&item.reference, &standing) {
                Ok(()) => Act::Reply { item, text, comment },
                Err((reason, text)) => {
                    return Verdict::Refused(Refusal { reason, answer: None, text: Some(text) });
                }
            },
        };
        Verdict::Admitted(Admitted::new(act, provenance))
    }

    /// The decision for what the host does by itself. Only what an admitted start left standing may be tried again.
    fn decide_host(&self, id: EventId, act: &HostAct, item: Item) -> Verdict {
        let HostAct::RetryStart { item: reference } = act;
        let Standing { phase, control } = self.registry.standing(reference);
        let provenance = Provenance {
            source: Source::Host,
            actor: None,
            via: "host",
            event: Some(id),
            upstream: UpstreamNames::default(),
        };
        if control == Some(Command::Start) && phase == Phase::Live {
            Verdict::Admitted(Admitted::new(Act::Spawn { item }, provenance))
        } else {
            Verdict::Refused(Refusal { reason: Reason::AwaitingStart, answer: None, text: None })
        }
    }
}

/// A decision that could not be made now: the event stays in the inbox and is decided later.
#[derive(Debug, thiserror::Error)]
enum DecideError {
    #[error("host.db did not answer")]
    Db(#[from] DbError),
    #[error("the event log cannot be written")]
    Log(#[from] EventLogError),
}

/// Lets a question out to its ticket (ASK-4): past the boundary, and of all acts the one that is decided beside the queue.
/// It must work while database, log and service do not, reads no state, and can do nothing but post what it holds.
pub fn admit_question(question: Question) -> Admitted<Question> {
    let provenance = Provenance {
        source: Source::ControlPlane,
        actor: Some(question.actor.clone()),
        via: "ask",
        event: None,
        upstream: UpstreamNames::default(),
    };
    Admitted::new(question, provenance)
}

fn act_item(act: &Act) -> &Item {
    match act {
        Act::Command { item, .. }
        | Act::Spawn { item }
        | Act::Deliver { item, .. }
        | Act::Bind { item, .. }
        | Act::End { item }
        | Act::Close { item, .. }
        | Act::Reset { item, .. }
        | Act::Reply { item, .. } => item,
        // Only an operator's call registers, and that path records by itself.
        Act::Register(_) => unreachable!("no event registers a session"),
    }
}
