//! The one way in of every plugin (ARC-4): to the one admission entry.

use std::sync::Arc;

use async_trait::async_trait;
use the_loop_plugin_api::{
    InboundEvent, InboundSink,
    context::{Accepted, IngressNote, NoteOutcome, Refused},
};
use tokio_util::sync::CancellationToken;

use crate::{
    admission::{Admission, Inbound},
    eventlog::{Event, EventLog, EventType, Level},
    state::Damaged,
};

pub(super) struct HostSink {
    admission: Arc<Admission>,
    log: EventLog,
    stop: CancellationToken,
}

impl HostSink {
    pub(super) fn new(admission: Arc<Admission>, log: EventLog, stop: CancellationToken) -> Self {
        Self { admission, log, stop }
    }
}

/// The sink of a process that runs no service.
pub(super) struct Closed;

#[async_trait]
impl InboundSink for Closed {
    async fn submit(&self, _event: InboundEvent) -> Result<Accepted, Refused> {
        Err(Refused::Stopping)
    }

    fn note(&self, _note: IngressNote) {}
}

#[async_trait]
impl InboundSink for HostSink {
    async fn submit(&self, event: InboundEvent) -> Result<Accepted, Refused> {
        if self.stop.is_cancelled() {
            return Err(Refused::Stopping);
        }
        let submission = self.admission.submit(Inbound::Event(Box::new(event))).await?;
        crate::drills::point("inbox:journaled");
        Ok(Accepted { event: submission.id })
    }

    fn note(&self, note: IngressNote) {
        let reason = match note.outcome {
            NoteOutcome::Ignored => {
                let event = Event::new(EventType::WebhookIgnored)
                    .with_some("gh_event", note.event)
                    .with_some("delivery_id", note.delivery_id);
                self.log.emit(event);
                return;
            }
            NoteOutcome::InvalidSignature => "invalid-signature",
            NoteOutcome::Unsigned => "unsigned",
            NoteOutcome::InvalidPayload => "invalid-payload",
            NoteOutcome::TooLarge => "too-large",
        };
        let event = Event::new(EventType::WebhookRejected).with("reason", reason);
        self.log.emit(
            event.with_some("gh_event", note.event).with_some("delivery_id", note.delivery_id).level(Level::Warning),
        );
    }
}

/// Names the files that were set aside when the records were read (STA-1).
pub(super) fn record_set_aside(log: &EventLog, damaged: &[Damaged]) {
    for file in damaged {
        log.emit(
            Event::new(EventType::StateRecordSetAside)
                .with("path", &file.path)
                .with_some("set_aside", file.set_aside.as_ref())
                .with("problem", file.problem.to_string())
                .level(Level::Error),
        );
    }
}
