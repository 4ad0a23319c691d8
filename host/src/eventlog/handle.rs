//! The handle that everything else writes to the log with.

use std::{
    fmt,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError, mpsc},
    thread::{self, JoinHandle},
};

use tokio::sync::oneshot;

use super::{
    Event, EventLogError, LogHealth,
    append::Appender,
    queue::Job,
    writer::{self, Shared},
};

/// How a log is written.
#[derive(Clone, Debug)]
pub struct LogOptions {
    /// The log's file. Its lock is the file of the same name ending in `.lock`.
    pub path: PathBuf,
    /// Which of the product's processes writes: `source` in its records.
    pub source: String,
    /// The size beyond which the log is rotated (EVT-3); 0 never rotates, which is for processes beside the host.
    pub max_bytes: u64,
    /// How many rotated files are kept.
    pub keep: u32,
    /// Whether records are written at all.
    pub enabled: bool,
}

/// Writes to the event log (EVT-1). Clones write through one thread, in the order in which they were called.
#[derive(Clone)]
pub struct EventLog {
    inner: Arc<Inner>,
}

struct Inner {
    shared: Arc<Shared>,
    enabled: bool,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl EventLog {
    /// Starts the writer. A log that cannot be written now is no error here: nothing may stop because of it but what
    /// asks to be recorded (EVT-3), and it is tried again with each record.
    ///
    /// # Errors
    /// When the path names no file, or the system gives no thread.
    pub fn open(options: LogOptions) -> Result<Self, EventLogError> {
        let LogOptions { path, source, max_bytes, keep, enabled } = options;
        if path.file_name().is_none() {
            return Err(EventLogError::NoFile { path });
        }
        let shared = Arc::new(Shared::new(source, enabled));
        let thread = if enabled {
            let shared = Arc::clone(&shared);
            let appender = Appender::new(path, max_bytes, keep);
            let started = thread::Builder::new()
                .name("event-log".to_owned())
                .spawn(move || writer::run(&shared, appender))
                .map_err(|source| EventLogError::Thread { source: Arc::new(source) })?;
            Some(started)
        } else {
            None
        };
        Ok(Self { inner: Arc::new(Inner { shared, enabled, thread: Mutex::new(thread) }) })
    }

    /// Records without waiting and without failing. What cannot be written is counted in [`EventLog::health`] and told of in
    /// the log once it can be written again.
    pub fn emit(&self, event: Event) {
        if !self.inner.enabled {
            return;
        }
        let shared = &self.inner.shared;
        if !shared.queue.offer(shared.stamp(event)) {
            shared.count_failure("too many records wait to be written".to_owned());
        }
    }

    /// Records and waits until the line is written: for what must not be done unrecorded, such as control commands and
    /// permission decisions (EVT-3). Gives the record's number, or 0 where the config switches the log off.
    ///
    /// # Errors
    /// When the record could not be written.
    pub async fn append(&self, event: Event) -> Result<u64, EventLogError> {
        if !self.inner.enabled {
            return Ok(0);
        }
        let (tell, told) = oneshot::channel();
        self.push(event, move |answer| {
            // The caller may have stopped waiting.
            let _ = tell.send(answer);
        });
        told.await.unwrap_or(Err(EventLogError::Closed))
    }

    /// [`EventLog::append`] for callers outside the async threads.
    ///
    /// # Errors
    /// When the record could not be written.
    pub fn append_blocking(&self, event: Event) -> Result<u64, EventLogError> {
        if !self.inner.enabled {
            return Ok(0);
        }
        let (tell, told) = mpsc::sync_channel(1);
        self.push(event, move |answer| {
            let _ = tell.send(answer);
        });
        told.recv().unwrap_or(Err(EventLogError::Closed))
    }

    /// Waits until everything that was recorded before has been written, or has failed.
    pub async fn flush(&self) {
        if !self.inner.enabled {
            return;
        }
        let (tell, told) = oneshot::channel();
        self.inner.shared.queue.push(Job::Flush(Box::new(move || {
            let _ = tell.send(());
        })));
        // A writer that has ended has nothing left to write.
        let _ = told.await;
    }

    /// How the log fares.
    #[must_use]
    pub fn health(&self) -> LogHealth {
        self.inner.shared.health().clone()
    }

    fn push(&self, event: Event, answer: impl FnOnce(Result<u64, EventLogError>) + Send + 'static) {
        let shared = &self.inner.shared;
        shared.queue.push(Job::Append(shared.stamp(event), Box::new(answer)));
    }
}

impl fmt::Debug for EventLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventLog").field("health", &self.health()).finish_non_exhaustive()
    }
}

impl Drop for Inner {
    /// Writes what still waits, so that a process that ends has said everything.
    fn drop(&mut self) {
        self.shared.queue.close();
        let thread = self.thread.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // A panic of the thread was reported when it happened.
            let _ = thread.join();
        }
    }
}
