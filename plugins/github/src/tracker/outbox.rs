//! Writes that are on their way, each a file of its own, so that they survive a restart and are written once (GHT-1, GHT-3).
//!
//! An entry is there before its first request. `tried` is set before a request that creates something: whoever finds it set
//! looks for the comment before it writes another. A comment that was written leaves its entry behind for a while, so that
//! the same post asked for again is answered and not written again.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use jiff::{Timestamp, ToSpan};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use the_loop_plugin_api::{
    Post, WorkItemRef,
    tracker::{Posted, Reaction},
};

/// The format of an entry.
const VERSION: u32 = 1;

/// How long the entry of a comment that was written is kept, in hours.
const KEPT: i64 = 30 * 24;

/// One write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Entry {
    version: u32,
    /// On which item.
    pub(super) item: WorkItemRef,
    /// What.
    pub(super) write: Write,
    /// When it was asked for.
    pub(super) asked_at: Timestamp,
    /// Whether a request may have reached GitHub.
    pub(super) tried: bool,
    /// The comment, once it is written.
    pub(super) done: Option<Posted>,
}

/// What is written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub(super) enum Write {
    /// A comment.
    Comment {
        /// What names it for ever.
        key: String,
        /// Its text.
        body: String,
    },
    /// A reaction, which GitHub itself keeps from being added twice.
    Reaction {
        /// To which comment.
        comment: String,
        /// Its name.
        content: String,
    },
}

impl Entry {
    pub(super) fn comment(post: &Post, now: Timestamp) -> Self {
        let write = Write::Comment { key: post.key().to_owned(), body: post.body().to_owned() };
        Self { version: VERSION, item: post.item().clone(), write, asked_at: now, tried: false, done: None }
    }

    pub(super) fn reaction(reaction: &Reaction, now: Timestamp) -> Self {
        let write = Write::Reaction { comment: reaction.comment().to_owned(), content: reaction.content().to_owned() };
        Self { version: VERSION, item: reaction.item().clone(), write, asked_at: now, tried: false, done: None }
    }

    /// What names the write among all.
    pub(super) fn name(&self) -> String {
        let (kind, what) = match &self.write {
            Write::Comment { key, .. } => ("comment", key.clone()),
            Write::Reaction { comment, content } => ("reaction", format!("{comment} {content}")),
        };
        let digest = Sha256::digest(format!("{kind}\n{}\n{what}", self.item));
        hex::encode(&digest[..16])
    }

    /// The invisible line by which a comment is known again.
    pub(super) fn stamp(&self) -> String {
        format!("{STAMP}{} -->", self.name())
    }
}

/// How a stamp begins.
pub(super) const STAMP: &str = "<!-- the-loop:post ";

/// The entries' folder.
#[derive(Clone, Debug)]
pub(super) struct Outbox(PathBuf);

impl Outbox {
    /// The outbox in a plugin's own folder.
    pub(super) fn new(folder: &Path) -> Self {
        Self(folder.join("outbox"))
    }

    /// Puts a write down unless it is down already.
    pub(super) async fn put(&self, entry: &Entry) -> io::Result<()> {
        let (outbox, entry) = (self.clone(), entry.clone());
        blocking(move || match outbox.read(&entry.name())? {
            Some(_) => Ok(()),
            None => outbox.write(&entry),
        })
        .await
    }

    /// Puts a write down as it is now.
    pub(super) async fn save(&self, entry: &Entry) -> io::Result<()> {
        let (outbox, entry) = (self.clone(), entry.clone());
        blocking(move || outbox.write(&entry)).await
    }

    /// The write of that name.
    pub(super) async fn get(&self, name: &str) -> io::Result<Option<Entry>> {
        let (outbox, name) = (self.clone(), name.to_owned());
        blocking(move || outbox.read(&name)).await
    }

    /// Forgets a write.
    pub(super) async fn remove(&self, name: &str) -> io::Result<()> {
        let path = self.path(name);
        blocking(move || match fs::remove_file(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            done => done,
        })
        .await
    }

    /// What is still to be written, in the order in which it was asked for. Old entries of what was written go.
    pub(super) async fn pending(&self, now: Timestamp) -> io::Result<Vec<Entry>> {
        let outbox = self.clone();
        blocking(move || outbox.sweep(now)).await
    }

    fn sweep(&self, now: Timestamp) -> io::Result<Vec<Entry>> {
        let files = match fs::read_dir(&self.0) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            files => files?,
        };
        let old = now.checked_sub(KEPT.hours()).unwrap_or(Timestamp::MIN);
        let mut pending = Vec::new();
        for file in files {
            let path = file?.path();
            let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
            if path.extension().is_none_or(|extension| extension != "json") {
                continue;
            }
            // One that cannot be read costs itself and no other.
            let Ok(Some(entry)) = self.read(name) else { continue };
            match &entry.done {
                Some(_) if entry.asked_at < old => fs::remove_file(&path)?,
                Some(_) => {}
                None => pending.push(entry),
            }
        }
        pending.sort_by_key(|entry| entry.asked_at);
        Ok(pending)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(format!("{name}.json"))
    }

    fn read(&self, name: &str) -> io::Result<Option<Entry>> {
        match fs::read(self.path(name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            read => serde_json::from_slice(&read?).map(Some).map_err(io::Error::other),
        }
    }

    /// Written aside, synced and renamed: whole or not there.
    fn write(&self, entry: &Entry) -> io::Result<()> {
        fs::create_dir_all(&self.0)?;
        let mut aside = tempfile::NamedTempFile::new_in(&self.0)?;
        serde_json::to_writer(&mut aside, entry).map_err(io::Error::other)?;
        aside.as_file().sync_all()?;
        aside.persist(self.path(&entry.name())).map_err(|error| error.error)?;
        fs::File::open(&self.0)?.sync_all()
    }
}

/// Files are read and written off the async threads (ARC-8).
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other)?
}
