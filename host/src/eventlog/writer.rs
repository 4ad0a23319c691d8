//! The thread that writes: it alone touches the disk, so that no caller waits for it who did not ask to.

use std::{
    error::Error as _,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use jiff::Timestamp;

use super::{
    Event, EventLogError, EventType, Level,
    append::Appender,
    event::Record,
    queue::{Answer, Job, Queue},
};

/// How often a log that cannot be written is tried while nobody writes to it, so that it recovers by itself (STA-4).
const RETRY: Duration = Duration::from_secs(1);

/// How the log fares, for `status` and `doctor` (EVT-3, STA-4).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogHealth {
    /// Whether the config switches the log on.
    pub enabled: bool,
    /// Whether the last attempt to write succeeded.
    pub writable: bool,
    /// How many records could not be written since the start.
    pub failures: u64,
    /// What went wrong last, with its cause.
    pub last_error: Option<String>,
    /// When it went wrong.
    pub last_failure: Option<Timestamp>,
    /// How many torn last lines were completed since the start.
    pub torn: u64,
    /// The number of the last record written by this process.
    pub last_seq: Option<u64>,
}

/// What the thread and the handles share.
pub(super) struct Shared {
    pub(super) queue: Queue,
    pub(super) source: String,
    health: Mutex<LogHealth>,
}

impl Shared {
    pub(super) fn new(source: String, enabled: bool) -> Self {
        let health = LogHealth { enabled, writable: true, ..LogHealth::default() };
        Self { queue: Queue::default(), source, health: Mutex::new(health) }
    }

    pub(super) fn health(&self) -> MutexGuard<'_, LogHealth> {
        // Nothing that runs under this lock can leave it half changed.
        self.health.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a record that could not be written.
    pub(super) fn count_failure(&self, problem: String) {
        let mut health = self.health();
        health.failures += 1;
        health.last_error = Some(problem);
        health.last_failure = Some(Timestamp::now());
    }

    pub(super) fn stamp(&self, event: Event) -> Record {
        event.stamp(Timestamp::now(), &self.source, std::process::id())
    }
}

/// Does the queue's jobs until it is closed.
pub(super) fn run(shared: &Shared, appender: Appender) {
    // Also when this thread panics, which would otherwise leave callers waiting for ever.
    let _abandon = AbandonOnExit(shared);
    let mut writer = Writer { shared, appender, told: 0 };
    loop {
        let retry = (writer.untold() > 0).then_some(RETRY);
        let Some(jobs) = shared.queue.take(retry) else { break };
        let stuck = writer.work(jobs).is_err();
        if stuck && shared.queue.is_closed() {
            // Whoever ends the process must not wait for a disk or a lock once for each few hundred records.
            break;
        }
    }
}

struct AbandonOnExit<'a>(&'a Shared);

impl Drop for AbandonOnExit<'_> {
    fn drop(&mut self) {
        self.0.queue.abandon();
    }
}

struct Writer<'a> {
    shared: &'a Shared,
    appender: Appender,
    /// How many of the failures a record of the log itself tells of.
    told: u64,
}

/// Who is told how a record fared.
enum Waiting {
    Nobody,
    Caller(Answer),
    /// The record tells that so many others were lost.
    Losses(u64),
}

impl Writer<'_> {
    fn untold(&self) -> u64 {
        self.shared.health().failures - self.told
    }

    fn work(&mut self, jobs: Vec<Job>) -> Result<(), EventLogError> {
        let (mut records, mut waiting, mut flushes) = (Vec::new(), Vec::new(), Vec::new());
        let untold = self.untold();
        if untold > 0 {
            records.push(self.losses(untold));
            waiting.push(Waiting::Losses(untold));
        }
        for job in jobs {
            match job {
                Job::Emit(record) => {
                    records.push(record);
                    waiting.push(Waiting::Nobody);
                }
                Job::Append(record, answer) => {
                    records.push(record);
                    waiting.push(Waiting::Caller(answer));
                }
                Job::Flush(done) => flushes.push(done),
            }
        }
        let outcome = if records.is_empty() { Ok(()) } else { self.write(&records, waiting) };
        for done in flushes {
            done();
        }
        outcome
    }

    /// Writes the records and answers for each. An error means that none could even be tried.
    fn write(&mut self, records: &[Record], waiting: Vec<Waiting>) -> Result<(), EventLogError> {
        let outcome = self.appender.append(records);
        self.shared.health().torn = self.appender.torn();
        let (answers, outcome) = match outcome {
            Ok(answers) => (answers, Ok(())),
            Err(problem) => (vec![Err(problem.clone()); records.len()], Err(problem)),
        };
        for (answer, waiting) in answers.into_iter().zip(waiting) {
            self.note(&answer, &waiting);
            if let Waiting::Caller(tell) = waiting {
                tell(answer);
            }
        }
        outcome
    }

    fn note(&mut self, answer: &Result<u64, EventLogError>, waiting: &Waiting) {
        match answer {
            Ok(seq) => {
                let mut health = self.shared.health();
                health.writable = true;
                health.last_seq = Some(*seq);
                if let Waiting::Losses(count) = waiting {
                    self.told += count;
                }
            }
            Err(problem) => {
                self.shared.health().writable = false;
                if !matches!(waiting, Waiting::Losses(_)) {
                    self.shared.count_failure(with_causes(problem));
                }
            }
        }
    }

    /// A log with a hole says so itself, since `status` forgets with the process.
    fn losses(&self, count: u64) -> Record {
        let health = self.shared.health();
        let problem = health.last_error.clone().unwrap_or_default();
        let at = health.last_failure.map(|at| format!("{at:.3}")).unwrap_or_default();
        drop(health);
        let detail = format!("{count} records could not be written, the last at {at}: {problem}");
        let event = Event::new(EventType::HostWarning).level(Level::Warning);
        self.shared.stamp(event.with("subject", "event log").with("detail", detail))
    }
}

fn with_causes(problem: &EventLogError) -> String {
    let mut text = problem.to_string();
    let mut cause = problem.source();
    while let Some(next) = cause {
        text = format!("{text}: {next}");
        cause = next.source();
    }
    text
}
