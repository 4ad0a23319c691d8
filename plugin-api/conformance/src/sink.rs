//! The host's inbox, as the kit plays it.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use the_loop_plugin_api::{
    EventId, InboundEvent, InboundSink,
    context::{Accepted, IngressNote, Refused},
};
use tokio::{sync::Notify, time};

/// Keeps what a plugin submits, and can refuse like a host that is full (REL-7).
#[derive(Default)]
pub struct RecordingSink {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Default)]
struct State {
    events: Vec<InboundEvent>,
    notes: Vec<IngressNote>,
    refusing: bool,
    refused: usize,
}

impl RecordingSink {
    /// What was taken, in order.
    #[must_use]
    pub fn events(&self) -> Vec<InboundEvent> {
        self.state().events.clone()
    }

    /// What was noted, in order.
    #[must_use]
    pub fn notes(&self) -> Vec<IngressNote> {
        self.state().notes.clone()
    }

    /// How many submissions were refused.
    #[must_use]
    pub fn refused(&self) -> usize {
        self.state().refused
    }

    /// Refuses from now on, or takes again.
    pub fn refuse(&self, refusing: bool) {
        self.state().refusing = refusing;
    }

    /// Waits until `enough` holds of what was taken and of the number refused; false when `patience` runs out first.
    pub async fn wait_until(&self, patience: Duration, enough: impl Fn(&[InboundEvent], usize) -> bool) -> bool {
        time::timeout(patience, async {
            loop {
                let changed = self.changed.notified();
                {
                    let state = self.state();
                    if enough(&state.events, state.refused) {
                        return;
                    }
                }
                changed.await;
            }
        })
        .await
        .is_ok()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic while it was held left whole values: every change is one push or one assignment.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl InboundSink for RecordingSink {
    async fn submit(&self, event: InboundEvent) -> Result<Accepted, Refused> {
        let answer = {
            let mut state = self.state();
            if state.refusing {
                state.refused += 1;
                Err(Refused::Overloaded { pending: 1 })
            } else {
                state.events.push(event);
                Ok(Accepted { event: EventId::generate() })
            }
        };
        self.changed.notify_waiters();
        answer
    }

    fn note(&self, note: IngressNote) {
        self.state().notes.push(note);
        self.changed.notify_waiters();
    }
}
