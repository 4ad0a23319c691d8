//! The one task that decides, one event after the other.

use std::{
    collections::HashMap,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use the_loop_plugin_api::WorkItemRef;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{Admission, DecideError, HostAct, Inbound, Reason, Refusal, Verdict, Waiting, linkage, record};
use crate::dispatch::{Dispatch, Outcome};

/// The consuming end of the queue, for the one task that decides.
pub struct Deciding {
    admission: Arc<Admission>,
    waiting: mpsc::UnboundedReceiver<Waiting>,
}

/// What a tracker answered meanwhile.
enum Answered {
    /// What a pull request delivers.
    Links(WorkItemRef, Box<linkage::Found>),
    /// The item that an operator's call is about.
    Item(Box<Waiting>),
}

/// What something waits for.
enum Question {
    /// An answer that was asked for already.
    Asked(WorkItemRef),
    /// An answer that has to be asked for.
    Ask(Box<linkage::Question>),
    /// The item that an operator's call is about.
    LookUp(WorkItemRef),
}

/// How long a decision waits that could not be made, because a disk is full or the database is busy.
const RETRY_DECISION: Duration = Duration::from_millis(500);

impl Deciding {
    pub(super) fn new(admission: Arc<Admission>, waiting: mpsc::UnboundedReceiver<Waiting>) -> Self {
        Self { admission, waiting }
    }

    /// Leaves what an earlier process did not finish where it is, for the service that starts next.
    pub fn leave_the_inbox(&mut self) {
        while self.waiting.try_recv().is_ok() {
            self.admission.pending.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Decides one after the other, in the order of arrival, and hands what was admitted to dispatch. Returns when `stop`
    /// is cancelled; what is left in the inbox continues at the next start.
    pub async fn run(mut self, dispatch: Arc<Dispatch>, stop: CancellationToken) {
        let (answers, mut answered) = mpsc::unbounded_channel();
        let mut parked: HashMap<WorkItemRef, Vec<Waiting>> = HashMap::new();
        loop {
            let ready = tokio::select! {
                () = stop.cancelled() => return,
                Some(answered) = answered.recv() => match answered {
                    Answered::Links(pull_request, found) => {
                        let waited = parked.remove(&pull_request).unwrap_or_default();
                        self.admission.linkage.learn(pull_request, *found);
                        waited
                    }
                    Answered::Item(waiting) => vec![*waiting],
                },
                waiting = self.waiting.recv() => {
                    let Some(waiting) = waiting else { return };
                    match self.question(&waiting.inbound, &parked) {
                        // A tracker that is slow holds up the events of this pull request and no other.
                        Some(Question::Asked(pull_request)) => {
                            parked.entry(pull_request).or_default().push(waiting);
                            continue;
                        }
                        Some(Question::Ask(question)) => {
                            parked.entry(question.pull_request().clone()).or_default().push(waiting);
                            let (answers, trackers) = (answers.clone(), Arc::clone(&dispatch));
                            let asked = async move {
                                let pull_request = question.pull_request().clone();
                                let found = question.ask(&|item| trackers.tracker(item)).await;
                                // Nobody listens any more once the host stops.
                                let _ = answers.send(Answered::Links(pull_request, Box::new(found)));
                            };
                            dispatch.spawn(asked, &stop);
                            continue;
                        }
                        Some(Question::LookUp(item)) => {
                            let (answers, trackers) = (answers.clone(), Arc::clone(&dispatch));
                            let asked = async move {
                                let looked_up = Some(trackers.item(&item).await);
                                // Nobody listens any more once the host stops.
                                let _ = answers.send(Answered::Item(Box::new(Waiting { looked_up, ..waiting })));
                            };
                            dispatch.spawn(asked, &stop);
                            continue;
                        }
                        None => vec![waiting],
                    }
                }
            };
            for waiting in ready {
                if self.decided(waiting, &dispatch, &stop).await.is_none() {
                    return;
                }
            }
        }
    }

    /// What has to be asked before something can be decided, so that a slow tracker holds up nothing else.
    fn question(&self, inbound: &Inbound, parked: &HashMap<WorkItemRef, Vec<Waiting>>) -> Option<Question> {
        let event = match inbound {
            Inbound::Event(event) => event,
            Inbound::Operator(call) if call.act.needs_tracker() => {
                return Some(Question::LookUp(call.act.item().clone()));
            }
            Inbound::Operator(_) => return None,
            Inbound::Host(_) => return None,
        };
        let item = event.item.as_ref()?;
        if !self.admission.config.current().config.routing.enabled {
            return None;
        }
        if parked.contains_key(&item.reference) {
            return Some(Question::Asked(item.reference.clone()));
        }
        let asked = self.admission.linkage.question(item, &self.admission.registry)?;
        Some(Question::Ask(Box::new(asked)))
    }

    /// Decides until it is decided; `None` when the host stops first.
    async fn decided(&self, mut waiting: Waiting, dispatch: &Arc<Dispatch>, stop: &CancellationToken) -> Option<()> {
        while let Err(error) = self.one(&mut waiting, dispatch).await {
            record::delayed(&self.admission.log, waiting.id, &error);
            tokio::select! {
                () = stop.cancelled() => return None,
                () = tokio::time::sleep(RETRY_DECISION) => {}
            }
        }
        self.admission.pending.fetch_sub(1, Ordering::Relaxed);
        Some(())
    }

    async fn one(&self, waiting: &mut Waiting, dispatch: &Arc<Dispatch>) -> Result<(), DecideError> {
        let admission = &self.admission;
        let loaded = admission.config.current();
        let verdict = match &waiting.inbound {
            Inbound::Event(event) => admission.decide(waiting.id, event, &loaded.config).await?,
            Inbound::Operator(call) => match waiting.looked_up.take() {
                Some(Ok(item)) => admission.decide_operator(waiting.id, call, item),
                // What needs no tracker goes by the records.
                None => admission.decide_operator(waiting.id, call, admission.registry.item(call.act.item())),
                Some(Err(text)) => {
                    Verdict::Refused(Refusal { reason: Reason::NoWorkItem, answer: None, text: Some(text) })
                }
            },
            Inbound::Host(act) => {
                let HostAct::RetryStart { item } = act;
                admission.decide_host(waiting.id, act, admission.registry.item(item))
            }
        };
        let done = waiting.done.take();
        match verdict {
            Verdict::Admitted(admitted) => {
                dispatch.accept(admitted, waiting.journaled.then_some(waiting.id), done).await
            }
            Verdict::Refused(refusal) => {
                let routed = refusal.reason != Reason::RoutingDisabled;
                if waiting.journaled {
                    admission.db.conclude(waiting.id, refusal.reason.as_str(), routed).await?;
                }
                if let Some(done) = done {
                    // The caller may have gone; the record stands in the log.
                    let _ = done.send(Outcome::Refused { reason: refusal.reason, text: refusal.text });
                }
                if let Some(answer) = refusal.answer {
                    dispatch.answer(answer);
                }
            }
        }
        Ok(())
    }
}
