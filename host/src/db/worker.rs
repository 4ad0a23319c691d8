//! The two threads that own the connections: one writes, one reads (ARC-8).
//!
//! The writer takes everything that waits, does it in one transaction and syncs once (REL-1: many events a sync under load).
//! Nobody is answered before the sync. While one transaction is synced the next one gathers, so that nothing ever waits for
//! company. Work that fails is undone alone; when the transaction itself is lost, everyone in it is told.

use std::{
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

use rusqlite::{Connection, config::DbConfig};
use tokio::sync::{mpsc, oneshot};

use super::error::{DbError, Fault};

/// How much work may wait for a thread before callers wait to hand in theirs (REL-7).
const WAITING: usize = 1024;
/// How much work one transaction takes.
const BATCH: usize = 512;

/// The transaction that work is done in.
pub(super) struct Batch<'c> {
    pub(super) connection: &'c Connection,
    /// How many events wait, once someone has counted; kept up by those who add.
    pub(super) pending: Option<u64>,
}

/// Whether work is more than one statement, and so must be undone as a whole when it fails.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Size {
    OneStatement,
    Several,
}

type Reply = Box<dyn FnOnce(Option<&DbError>) + Send>;
/// Given a batch it does its work; given an error it does nothing. Either way it yields what answers its caller.
type WriteJob = (Size, Box<dyn FnOnce(Result<&mut Batch<'_>, &DbError>) -> (Option<DbError>, Reply) + Send>);
type ReadJob = Box<dyn FnOnce(&Connection) + Send>;

/// What a thread is sent.
enum Message<J> {
    Work(J),
    /// Do what was handed in, take nothing more, close the connection, and say so.
    Close(oneshot::Sender<()>),
}

/// What callers and threads share.
pub(super) struct Shared {
    path: PathBuf,
    /// Device and inode of the file that was opened.
    identity: (u64, u64),
    trouble: Mutex<Option<DbError>>,
    commits: AtomicU64,
}

impl Shared {
    pub(super) fn new(path: PathBuf) -> Result<Self, DbError> {
        let identity = identity(&path).map_err(|error| DbError::io("look at", &path, error))?;
        Ok(Self { path, identity, trouble: Mutex::new(None), commits: AtomicU64::new(0) })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// What is wrong now.
    pub(super) fn trouble(&self) -> Option<DbError> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How many transactions were synced.
    pub(super) fn commits(&self) -> u64 {
        self.commits.load(Ordering::Relaxed)
    }

    /// The error that stands in the way of any further use.
    pub(super) fn condemned(&self) -> Option<DbError> {
        self.trouble().filter(|trouble| matches!(trouble, DbError::Damaged { .. }))
    }

    fn note(&self, outcome: Option<&DbError>) {
        let mut trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        // Damage does not pass.
        if !matches!(*trouble, Some(DbError::Damaged { .. })) {
            *trouble = outcome.cloned();
        }
    }

    fn note_damage(&self, error: &DbError) {
        if matches!(error, DbError::Damaged { .. }) {
            self.note(Some(error));
        }
    }

    /// Whether what is written still goes into the file of that name: writes into one that was removed would vanish.
    fn check_identity(&self) -> Result<(), DbError> {
        if self.condemned().is_none() && identity(&self.path).ok() != Some(self.identity) {
            let problem = "it was removed or replaced while in use".to_owned();
            self.note(Some(&DbError::Damaged { path: self.path.clone(), problem }));
        }
        self.condemned().map_or(Ok(()), Err)
    }
}

fn identity(path: &Path) -> std::io::Result<(u64, u64)> {
    fs::symlink_metadata(path).map(|found| (found.dev(), found.ino()))
}

/// Hands work to the threads. They end when the last of these is gone and what was handed in is done.
#[derive(Clone)]
pub(super) struct Workers {
    shared: Arc<Shared>,
    writes: mpsc::Sender<Message<WriteJob>>,
    reads: mpsc::Sender<Message<ReadJob>>,
}

impl Workers {
    pub(super) fn start(shared: Arc<Shared>, writer: Connection, reader: Connection) -> Result<Self, DbError> {
        let (writes, write_jobs) = mpsc::channel(WAITING);
        let (reads, read_jobs) = mpsc::channel(WAITING);
        let failed = |error| DbError::io("start a thread for", shared.path(), error);
        let of_writer = Arc::clone(&shared);
        thread::Builder::new()
            .name("db-writer".to_owned())
            .spawn(move || run_writer(write_jobs, writer, &of_writer))
            .map_err(failed)?;
        thread::Builder::new()
            .name("db-reader".to_owned())
            .spawn(move || run_reader(read_jobs, reader))
            .map_err(failed)?;
        Ok(Self { shared, writes, reads })
    }

    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Does `work` in a transaction. What it did is durable when this returns `Ok`, and undone when it returns an error.
    /// It is done even when the caller stops waiting.
    pub(super) async fn write<R: Send + 'static>(
        &self,
        size: Size,
        work: impl FnOnce(&mut Batch<'_>) -> Result<R, Fault> + Send + 'static,
    ) -> Result<R, DbError> {
        let (answer, answered) = oneshot::channel();
        let shared = Arc::clone(&self.shared);
        let run = move |batch: Result<&mut Batch<'_>, &DbError>| {
            let result = batch.map_err(Clone::clone).and_then(|b| work(b).map_err(|fault| fault.on(shared.path())));
            let failure = result.as_ref().err().cloned();
            let reply: Reply = Box::new(move |lost| {
                let _ = answer.send(lost.map_or(result, |lost| Err(lost.clone())));
            });
            (failure, reply)
        };
        self.writes.send(Message::Work((size, Box::new(run)))).await.map_err(|_| self.closed())?;
        answered.await.unwrap_or_else(|_| Err(self.closed()))
    }

    /// Reads what is durable.
    pub(super) async fn read<R: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<R, Fault> + Send + 'static,
    ) -> Result<R, DbError> {
        if let Some(condemned) = self.shared.condemned() {
            return Err(condemned);
        }
        let (answer, answered) = oneshot::channel();
        let shared = Arc::clone(&self.shared);
        let run = move |connection: &Connection| {
            let result = work(connection).map_err(|fault| fault.on(shared.path()));
            if let Err(error) = &result {
                shared.note_damage(error);
            }
            let _ = answer.send(result);
        };
        self.reads.send(Message::Work(Box::new(run))).await.map_err(|_| self.closed())?;
        answered.await.unwrap_or_else(|_| Err(self.closed()))
    }

    /// Ends both threads, the writer last, since only the last one to close puts the log into the file.
    pub(super) async fn close(&self) {
        async fn end<J>(thread: &mpsc::Sender<Message<J>>) {
            let (answer, answered) = oneshot::channel();
            // A thread that cannot be told has ended.
            if thread.send(Message::Close(answer)).await.is_ok() {
                let _ = answered.await;
            }
        }
        end(&self.reads).await;
        end(&self.writes).await;
    }

    fn closed(&self) -> DbError {
        self.shared.condemned().unwrap_or_else(|| DbError::Closed { path: self.shared.path.clone() })
    }
}

fn run_reader(mut jobs: mpsc::Receiver<Message<ReadJob>>, connection: Connection) {
    let mut closers = Vec::new();
    while let Some(message) = jobs.blocking_recv() {
        match message {
            Message::Work(job) => job(&connection),
            Message::Close(closer) => {
                jobs.close();
                closers.push(closer);
            }
        }
    }
    drop(connection);
    answer(closers);
}

fn run_writer(mut jobs: mpsc::Receiver<Message<WriteJob>>, connection: Connection, shared: &Shared) {
    let (mut waiting, mut closers) = (Vec::with_capacity(BATCH), Vec::new());
    while jobs.blocking_recv_many(&mut waiting, BATCH) > 0 {
        let mut left = Vec::with_capacity(waiting.len());
        for message in waiting.drain(..) {
            match message {
                Message::Work(job) => left.push(job),
                Message::Close(closer) => {
                    jobs.close();
                    closers.push(closer);
                }
            }
        }
        let mut left = left.into_iter();
        while left.len() > 0 {
            transact(&connection, shared, &mut left);
        }
    }
    // The last one to close puts the log into the file, so that a file that is copied by hand is whole.
    if shared.condemned().is_none() {
        let _ = connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false);
    }
    drop(connection);
    answer(closers);
}

fn answer(closers: Vec<oneshot::Sender<()>>) {
    for closer in closers {
        // One that does not wait any more need not be told.
        let _ = closer.send(());
    }
}

/// Does as much of `left` in one transaction as it takes, and answers for it.
fn transact(connection: &Connection, shared: &Shared, left: &mut impl Iterator<Item = WriteJob>) {
    let begun = shared.check_identity().and_then(|()| execute(connection, shared, "BEGIN IMMEDIATE"));
    let mut replies = Vec::new();
    let outcome = match &begun {
        Ok(()) => work(connection, shared, left, &mut replies).and_then(|()| execute(connection, shared, "COMMIT")),
        Err(error) => {
            // What waits would only meet the same.
            replies.extend(left.map(|(_, run)| run(Err(error)).1));
            Err(error.clone())
        }
    };
    match outcome {
        Ok(()) => {
            shared.commits.fetch_add(1, Ordering::Relaxed);
            shared.note(None);
            replies.into_iter().for_each(|reply| reply(None));
        }
        Err(error) => {
            if !connection.is_autocommit() {
                let _ = execute(connection, shared, "ROLLBACK");
            }
            shared.note(Some(&error));
            replies.into_iter().for_each(|reply| reply(Some(&error)));
        }
    }
}

/// # Errors
/// When the transaction is lost; `replies` holds those whose work went with it.
fn work(
    connection: &Connection,
    shared: &Shared,
    left: &mut impl Iterator<Item = WriteJob>,
    replies: &mut Vec<Reply>,
) -> Result<(), DbError> {
    let mut batch = Batch { connection, pending: None };
    for (size, run) in left.by_ref() {
        let several = size == Size::Several;
        let ready = if several { execute(connection, shared, "SAVEPOINT work") } else { Ok(()) };
        let (failure, reply) = run(match &ready {
            Ok(()) => Ok(&mut batch),
            Err(error) => Err(error),
        });
        replies.push(reply);
        ready?;
        if let Some(error) = failure {
            // A full disk or a failing one ends the whole transaction, and with it the work of all before this one.
            if connection.is_autocommit() || matches!(error, DbError::Damaged { .. }) {
                return Err(error);
            }
            if several {
                execute(connection, shared, "ROLLBACK TO work")?;
            }
            batch.pending = None;
        }
        if several {
            execute(connection, shared, "RELEASE work")?;
        }
    }
    Ok(())
}

fn execute(connection: &Connection, shared: &Shared, sql: &str) -> Result<(), DbError> {
    let done = connection.prepare_cached(sql).and_then(|mut statement| statement.execute([]));
    done.map(drop).map_err(|error| DbError::of(&shared.path, error))
}
