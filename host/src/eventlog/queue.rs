//! What waits for the writer's thread.

use std::{
    collections::VecDeque,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use super::{EventLogError, event::Record};

/// How many records may wait that nobody waits for. A log that is slower than this for long is failing, and memory must not
/// fail with it.
const MOST_WAITING: usize = 16 * 1024;

/// How many records are written under one lock at most, so that other processes get their turn.
const MOST_AT_ONCE: usize = 512;

/// Tells a caller how its record fared.
pub(super) type Answer = Box<dyn FnOnce(Result<u64, EventLogError>) + Send>;

/// One thing for the thread to do.
pub(super) enum Job {
    /// Nobody waits for this record.
    Emit(Record),
    /// Somebody does.
    Append(Record, Answer),
    /// Everything before this has been tried when it is answered.
    Flush(Box<dyn FnOnce() + Send>),
}

/// The queue. Those who put records in never wait for the disk while they do.
#[derive(Default)]
pub(super) struct Queue {
    jobs: Mutex<Jobs>,
    filled: Condvar,
}

#[derive(Default)]
struct Jobs {
    waiting: VecDeque<Job>,
    closed: bool,
}

impl Queue {
    /// Queues a record that nobody waits for; `false` when there is no room or no writer.
    pub(super) fn offer(&self, record: Record) -> bool {
        let mut jobs = self.lock();
        if jobs.closed || jobs.waiting.len() >= MOST_WAITING {
            return false;
        }
        jobs.waiting.push_back(Job::Emit(record));
        drop(jobs);
        self.filled.notify_one();
        true
    }

    /// Queues a job that somebody waits for. There are as many as there are waiting callers, so it has no bound of its own.
    /// When the writer has ended the job is dropped, which the caller sees by its answer being dropped.
    pub(super) fn push(&self, job: Job) {
        let mut jobs = self.lock();
        if !jobs.closed {
            jobs.waiting.push_back(job);
            drop(jobs);
            self.filled.notify_one();
        }
    }

    /// Takes what waits, in order. Empty after `idle` without a job; `None` once the queue is closed and empty.
    pub(super) fn take(&self, idle: Option<Duration>) -> Option<Vec<Job>> {
        let mut jobs = self.lock();
        while jobs.waiting.is_empty() {
            if jobs.closed {
                return None;
            }
            match idle {
                None => jobs = self.filled.wait(jobs).unwrap_or_else(PoisonError::into_inner),
                Some(idle) => {
                    let (back, waited) = self.filled.wait_timeout(jobs, idle).unwrap_or_else(PoisonError::into_inner);
                    jobs = back;
                    if waited.timed_out() && jobs.waiting.is_empty() {
                        return Some(Vec::new());
                    }
                }
            }
        }
        let count = jobs.waiting.len().min(MOST_AT_ONCE);
        Some(jobs.waiting.drain(..count).collect())
    }

    /// Takes no more jobs; those that wait are still done.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.filled.notify_one();
    }

    /// Whether no more jobs are taken.
    pub(super) fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// Takes no more jobs and drops those that wait, so that nobody waits for a writer that is gone.
    pub(super) fn abandon(&self) {
        let mut jobs = self.lock();
        jobs.closed = true;
        let dropped = std::mem::take(&mut jobs.waiting);
        drop(jobs);
        drop(dropped);
    }

    fn lock(&self) -> MutexGuard<'_, Jobs> {
        // Nothing that runs under this lock can leave the queue half changed.
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
