//! The head of an item's queue: brought into its session, held, or settled where nobody can tell (DEL-5, REL-3).

use std::{sync::Arc, time::Duration};

use the_loop_plugin_api::delivery::HoldReason;
use tokio::time::Instant;

use super::{
    super::{
        answers,
        deliver::{self, Attempt, Doubt, Write},
        spawn,
        ticket::{self, Mood},
    },
    Actor, FIRST_LOOK, LAST_LOOK, WRITTEN_DOWN, Way,
};
use crate::{
    admission::Source,
    db::{DeliveryRow, Receipt},
    eventlog::{Event, EventType, Level},
};

impl Actor {
    pub(super) async fn deliver_next(&mut self) {
        if self.head_rests() {
            if let Some(head) = self.texts.front_mut() {
                // As during a pause, the bound of a hold does not run.
                head.held_since = None;
            }
            return self.hold(HoldReason::RoutingOff).await;
        }
        if self.residue {
            match deliver::flush(&self.core, &self.item).await {
                None => self.residue = false,
                Some(reason) => return self.hold(reason).await,
            }
        }
        let Some(head) = self.texts.front() else { return };
        let write = match &head.way {
            Way::Unwritten => Write::Text,
            Way::Pasted => Write::Return,
            Way::Doubtful { .. } => return self.settle_doubt().await,
        };
        match deliver::attempt(&self.core, &self.item, &head.row, write).await {
            Attempt::Delivered => self.arrived().await,
            Attempt::Held(reason) => self.hold(reason).await,
            Attempt::Pasted(reason) => {
                self.set_way(Way::Pasted);
                self.hold(reason).await;
            }
            Attempt::Doubtful { error } => self.set_way(Way::Doubtful { why: error, returned: None }),
            // Nothing is started for what the control plane says (RPL-2).
            Attempt::NoProcess if head.row.source == Source::ControlPlane.as_str() => {
                let row = head.row.clone();
                self.give_up_on(&row, Receipt::Failed, "session-dead").await;
            }
            Attempt::NoProcess => {
                // A new process has an empty composer.
                self.residue = false;
                self.set_way(Way::Unwritten);
                self.respawn().await;
            }
        }
    }

    /// Whether the head of the queue came from outside and waits for routing to be on again (ADM-6). The prompt of a session
    /// that was started belongs to its start.
    fn head_rests(&self) -> bool {
        let from_outside = |source: &str| source != Source::ControlPlane.as_str() && source != spawn::PROMPT_SOURCE;
        self.texts.front().is_some_and(|head| from_outside(&head.row.source)) && self.core.is_at_rest()
    }

    fn set_way(&mut self, way: Way) {
        if let Some(head) = self.texts.front_mut() {
            head.way = way;
        }
    }

    /// The head of the queue is in the session.
    async fn arrived(&mut self) {
        self.look = FIRST_LOOK;
        let Some(text) = self.texts.pop_front() else { return };
        self.core.count_waiting(&self.item, -1);
        answers::arrived(&self.core, &self.item, &text.row).await;
        if let Some(provenance) = text.provenance {
            let (core, item) = (Arc::clone(&self.core), self.item.clone());
            self.core.tasks.spawn(async move { ticket::react(&core, &item, &provenance, Mood::Completed).await });
        }
    }

    /// A text that may have been written is settled from the transcript (REL-3): found, it has arrived; provably absent, it
    /// is delivered again under the same id; where nothing tells, a person has to look, and it is never repeated.
    async fn settle_doubt(&mut self) {
        let Some(head) = self.texts.front() else { return };
        let Way::Doubtful { why, returned } = &head.way else { return };
        let (row, why, returned) = (head.row.clone(), why.clone(), *returned);
        match deliver::doubt(&self.core, &self.item, &row).await {
            Doubt::Arrived => {
                deliver::settle(&self.core, &self.item, &row, Receipt::Delivered, None, "transcript").await;
                self.arrived().await;
            }
            Doubt::Absent => self.deliver_again(&row).await,
            // Nobody can tell whether it arrived. What may stand in the composer is submitted before it is settled, so that
            // another crash in between still finds it in doubt and glues nothing to it.
            Doubt::Unknowable => match deliver::flush(&self.core, &self.item).await {
                Some(reason) => self.hold(reason).await,
                None => {
                    self.give_up_on(&row, Receipt::Uncertain, &why).await;
                    self.residue = false;
                }
            },
            Doubt::NotYet { busy } => {
                if returned.is_some_and(|at| at.elapsed() < WRITTEN_DOWN) || (busy && returned.is_some()) {
                    return self.bounded(HoldReason::NotReady).await;
                }
                // What may stand in the composer is submitted, so that nothing is glued to it and the transcript tells.
                match deliver::flush(&self.core, &self.item).await {
                    Some(reason) => self.hold(reason).await,
                    None if returned.is_some() => self.deliver_again(&row).await,
                    None => self.set_way(Way::Doubtful { why, returned: Some(Instant::now()) }),
                }
            }
        }
    }

    async fn deliver_again(&mut self, row: &DeliveryRow) {
        deliver::again(&self.core, row).await;
        if let Some(head) = self.texts.front_mut() {
            head.row.writing = false;
            head.way = Way::Unwritten;
        }
    }

    /// The head of the queue is settled without having arrived, as far as anybody knows.
    async fn give_up_on(&mut self, row: &DeliveryRow, receipt: Receipt, why: &str) {
        deliver::settle(&self.core, &self.item, row, receipt, Some(why), "host").await;
        self.residue = receipt == Receipt::Uncertain;
        let given_up = self.texts.pop_front();
        self.core.count_waiting(&self.item, -1);
        if let Some(provenance) = given_up.and_then(|text| text.provenance) {
            let (core, item) = (Arc::clone(&self.core), self.item.clone());
            self.core.tasks.spawn(async move { ticket::react(&core, &item, &provenance, Mood::Error).await });
        }
    }

    /// A text waits, in order, with its reason in the receipt, for as long as the bound allows (DEL-5).
    async fn hold(&mut self, reason: HoldReason) {
        let Some(head) = self.texts.front_mut() else { return };
        if head.held.as_ref() == Some(&reason) {
            self.look = (self.look * 2).min(LAST_LOOK);
        } else {
            self.look = FIRST_LOOK;
            deliver::note_hold(&self.core, &self.item, &head.row, &reason).await;
            head.held = Some(reason.clone());
        }
        self.bounded(reason).await;
    }

    /// The bound of a wait: what ran out of time is given up, as a failure or, where it may have been written, as a doubt.
    async fn bounded(&mut self, reason: HoldReason) {
        let bound = Duration::from_secs(self.core.config.current().config.routing.delivery_hold_seconds);
        let Some(head) = self.texts.front_mut() else { return };
        if head.held_since.get_or_insert_with(Instant::now).elapsed() <= bound {
            return;
        }
        let row = head.row.clone();
        match &head.way {
            Way::Unwritten => self.give_up_on(&row, Receipt::Failed, "hold-expired").await,
            Way::Pasted => self.give_up_on(&row, Receipt::Failed, "submit-unconfirmed").await,
            Way::Doubtful { why, .. } => {
                let why = format!("{why}; then it waited too long: {}", reason.as_str());
                self.give_up_on(&row, Receipt::Uncertain, &why).await;
            }
        }
    }

    /// The process is gone although the session is live: its conversation is taken up again (TMX-6), never in a tight loop.
    async fn respawn(&mut self) {
        let item = self.core.registry.item(&self.item);
        match spawn::respawn(&self.core, &item, &mut self.spawning).await {
            Ok(started) => {
                self.take_prompt(started.and_then(|started| started.prompt));
            }
            Err(text) => {
                if self.spawning.gave_up() {
                    self.drop_texts("session-dead").await;
                }
                self.core.log.emit(
                    Event::new(EventType::DispatchFailed)
                        .with("work_item", &self.item)
                        .with("error", text)
                        .with("will_retry", !self.spawning.gave_up())
                        .level(Level::Error),
                );
            }
        }
    }
}
