//! The ingress source: reads the journal and moves on only behind what the host took (REL-1).

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use jiff::Timestamp;
use the_loop_plugin_api::{
    Clock, InboundSink, IngressSource, PluginContext,
    context::{IngressNote, NoteOutcome, Refused},
    event::InboundEvent,
    ingress::{IngressError, IngressHealth, Listener, Misconfigured},
};
use tokio_util::sync::CancellationToken;

use crate::{
    cursor::Cursor,
    files::{FileError, blocking},
    journal::{self, Line},
    lock::Held,
    store::Store,
};

/// How often the journal is looked at: soon enough that nobody waits, and a look is two calls to the system.
const LOOK: Duration = Duration::from_millis(25);
/// The first and the longest wait before something that failed is tried again.
const FIRST_WAIT: Duration = Duration::from_millis(50);
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// The activity of the local tracker.
pub(crate) struct LocalIngress {
    store: Store,
    sink: Arc<dyn InboundSink>,
    clock: Arc<dyn Clock>,
    stop: CancellationToken,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    taken: u64,
    skipped: u64,
    last_look: Option<Timestamp>,
    /// What is waited for.
    waiting: Option<String>,
    /// What was lost of the journal, which no later success heals.
    damage: Option<String>,
}

impl LocalIngress {
    pub(crate) fn new(context: &PluginContext) -> Self {
        Self {
            store: Store::new(context.folder()),
            sink: context.sink(),
            clock: context.clock(),
            stop: context.stop(),
            state: Mutex::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic while it was held left whole values: every change is an assignment.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Follows the journal until the stop signal.
    async fn follow(&self) -> Result<(), FileError> {
        let store = self.store.clone();
        let (mut cursor, problem) = blocking(move || Cursor::load(&store.cursor(), &store.journal())).await??;
        self.damaged(problem);
        while !self.stop.is_cancelled() {
            let (store, from) = (self.store.clone(), cursor.clone());
            let seen = blocking(move || look(&store, from)).await??;
            cursor = seen.cursor;
            self.damaged(seen.problem);
            {
                let mut state = self.state();
                state.last_look = Some(self.clock.now());
                state.waiting = None;
            }
            if seen.lines.is_empty() {
                self.pause(LOOK).await;
            }
            for line in seen.lines {
                if !self.hand_over(&cursor, &line).await {
                    break;
                }
                cursor = cursor.after(&line);
                if !self.keep(&cursor).await {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Hands one line over, as often as it takes; false when it is to be read again.
    async fn hand_over(&self, cursor: &Cursor, line: &[u8]) -> bool {
        let place = || format!("the line at byte {} of {}", cursor.offset, self.store.journal().display());
        let event = match journal::parse(line) {
            Line::Entry(entry) => entry.event(),
            Line::Garbage => {
                self.skip(None, NoteOutcome::InvalidPayload, format!("{} is no activity and was skipped", place()));
                return true;
            }
            Line::Newer(version) => {
                self.state().waiting = Some(format!("{} has format {version}; update the-loop", place()));
                self.pause(LONGEST_WAIT).await;
                return false;
            }
        };
        let mut wait = FIRST_WAIT;
        while !self.stop.is_cancelled() {
            // The answer is always waited for: a submission that is broken off may have been taken.
            match self.sink.submit(event.clone()).await {
                Ok(_) => {
                    let mut state = self.state();
                    state.taken += 1;
                    state.waiting = None;
                    return true;
                }
                Err(refused @ Refused::TooLarge { .. }) => {
                    // It will be as large the next time, and everything behind it would wait for ever.
                    self.skip(Some(&event), NoteOutcome::TooLarge, format!("{} was skipped: {refused}", place()));
                    return true;
                }
                Err(refused) => self.state().waiting = Some(format!("{refused}; {} waits", place())),
            }
            wait = self.back_off(wait).await;
        }
        false
    }

    /// Writes the cursor down, as often as it takes: what was taken must not be handed over again while this runs. False
    /// when the stop signal came first.
    async fn keep(&self, cursor: &Cursor) -> bool {
        let mut wait = FIRST_WAIT;
        loop {
            let (store, cursor) = (self.store.clone(), cursor.clone());
            match blocking(move || cursor.save(&store.cursor())).await.and_then(|saved| saved) {
                Ok(()) => return true,
                Err(error) => self.state().waiting = Some(error.to_string()),
            }
            if self.stop.is_cancelled() {
                return false;
            }
            wait = self.back_off(wait).await;
        }
    }

    fn skip(&self, event: Option<&InboundEvent>, outcome: NoteOutcome, problem: String) {
        self.state().skipped += 1;
        self.damaged(Some(problem));
        self.sink.note(IngressNote {
            outcome,
            event: event.map(|event| event.upstream.event.clone()),
            delivery_id: event.and_then(|event| event.upstream.delivery_id.clone()),
        });
    }

    fn damaged(&self, problem: Option<String>) {
        if problem.is_some() {
            self.state().damage = problem;
        }
    }

    async fn back_off(&self, wait: Duration) -> Duration {
        self.pause(wait).await;
        (wait * 2).min(LONGEST_WAIT)
    }

    /// Waits, but no longer than until the stop signal.
    async fn pause(&self, span: Duration) {
        tokio::select! {
            () = self.clock.sleep(span) => {}
            () = self.stop.cancelled() => {}
        }
    }
}

/// What one look at the journal shows.
struct Seen {
    cursor: Cursor,
    /// The whole lines behind the cursor, or some of them.
    lines: Vec<Vec<u8>>,
    problem: Option<String>,
}

/// What is new behind the cursor. A change that a killed writer left behind is completed first, if nobody is at it.
fn look(store: &Store, cursor: Cursor) -> Result<Seen, FileError> {
    if store.pending().exists()
        && let Some(held) = Held::try_acquire(&store.lock())?
    {
        store.recover(&held)?;
    }
    let length = journal::length(&store.journal())?;
    let (cursor, problem) = if length < cursor.offset { cursor.placed(&store.journal())? } else { (cursor, None) };
    let lines = if length > cursor.offset { journal::read_from(&store.journal(), cursor.offset)? } else { Vec::new() };
    Ok(Seen { cursor, lines, problem })
}

#[async_trait]
impl IngressSource for LocalIngress {
    fn enabled(&self) -> bool {
        true
    }

    fn check(&self) -> Result<Vec<String>, Misconfigured> {
        Ok(Vec::new())
    }

    fn listener(&self) -> Option<Listener> {
        None
    }

    async fn run(&self) -> Result<(), IngressError> {
        self.follow().await.map_err(|error| {
            let what = format!("the activity of the local tracker cannot be read: {error}");
            self.state().waiting = Some(what.clone());
            IngressError { what, source: Some(Box::new(error)) }
        })
    }

    fn health(&self) -> IngressHealth {
        let state = self.state();
        let mut detail = format!("{} activities taken since the start", state.taken);
        if state.skipped > 0 {
            detail.push_str(&format!(", {} skipped", state.skipped));
        }
        // What was skipped costs itself alone: everything after it is taken.
        if let Some(damage) = &state.damage {
            detail.push_str(&format!("; {damage}"));
        }
        IngressHealth { detail, last_cycle: state.last_look, problem: state.waiting.clone(), bound: None }
    }
}
