//! [`Tracker`]: the system of record behind a work item.

use async_trait::async_trait;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{
    channel::Finding,
    event::{Item, Link},
    registry::HostKey,
    work_item::WorkItemRef,
};

/// A system of record. Reads are free; what it writes was ordered by the host.
#[async_trait]
pub trait Tracker: Send + Sync {
    /// Whether this tracker is the one behind `item`.
    fn owns(&self, item: &WorkItemRef) -> bool;

    /// Writes a comment.
    ///
    /// # Errors
    /// When it was not written, or when nothing tells.
    async fn comment(&self, post: &Post) -> Result<Posted, TrackerError>;

    /// Adds a reaction to a comment. Adding the same one twice is no error.
    ///
    /// # Errors
    /// When it was not added.
    async fn react(&self, reaction: &Reaction) -> Result<(), TrackerError>;

    /// The item as it is now.
    ///
    /// # Errors
    /// [`TrackerError::NotFound`] only on a definite answer; anything else is doubt.
    async fn look_up(&self, item: &WorkItemRef) -> Result<Item, TrackerError>;

    /// What is open in the repository of `item`.
    ///
    /// # Errors
    /// When the list could not be read whole: a part of a list is never given.
    async fn open_items(&self, repository: &WorkItemRef) -> Result<Vec<Item>, TrackerError>;

    /// The thread of an item, oldest first.
    ///
    /// # Errors
    /// When it could not be read whole.
    async fn thread(&self, item: &WorkItemRef) -> Result<Vec<ThreadEntry>, TrackerError>;

    /// What a pull request delivers, the surest first (LNK-1). Empty for a tracker without pull requests.
    ///
    /// # Errors
    /// When it could not be read: what delivers nothing is an empty list, and never an error.
    async fn links(&self, pull_request: &WorkItemRef) -> Result<Vec<Link>, TrackerError> {
        let _ = pull_request;
        Ok(Vec::new())
    }

    /// Checks itself, credentials and reach included, without writing anything. One line a finding, and no secret in any
    /// (SEC-4). Empty for a tracker that needs neither.
    async fn doctor(&self) -> Vec<Finding> {
        Vec::new()
    }

    /// What it does by itself while the host runs, such as writing what an earlier process could not (GHT-3). Returns when
    /// there is nothing left, or at the stop signal of its context. Only the running host calls it.
    async fn run(&self) {}

    /// For a tracker that has no surface of its own for people: what its verbs do (GHT-4).
    fn desk(&self) -> Option<&dyn Desk> {
        None
    }
}

/// The surface of a tracker that people use through this program, as they would use another tracker's web page. What they
/// do here is judged like any other activity, when the ingress source reads it.
#[async_trait]
pub trait Desk: Send + Sync {
    /// The provider of the refs that it makes.
    fn provider(&self) -> &'static str;

    /// Opens an item; its number is the next free one.
    ///
    /// # Errors
    /// When it was not written.
    async fn open(&self, by: &str, draft: &Draft) -> Result<Item, TrackerError>;

    /// Every item, by ref. One that is damaged costs itself and is named.
    ///
    /// # Errors
    /// When there is no reading them at all.
    async fn list(&self) -> Result<DeskList, TrackerError>;

    /// Writes a comment as a person.
    ///
    /// # Errors
    /// When it was not written.
    async fn comment_as(&self, by: &str, item: &WorkItemRef, body: &str) -> Result<Posted, TrackerError>;

    /// Edits a comment as a person.
    ///
    /// # Errors
    /// When it was not written, or there is no such comment.
    async fn edit_as(&self, by: &str, item: &WorkItemRef, comment: &str, body: &str) -> Result<Posted, TrackerError>;

    /// Adds or removes a label.
    ///
    /// # Errors
    /// When it was not written.
    async fn label(&self, by: &str, item: &WorkItemRef, label: &str, present: bool) -> Result<Item, TrackerError>;

    /// Closes or reopens an item.
    ///
    /// # Errors
    /// When it was not written.
    async fn set_open(&self, by: &str, item: &WorkItemRef, open: bool) -> Result<Item, TrackerError>;
}

/// What a desk lists.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeskList {
    /// The items, by ref.
    pub items: Vec<Item>,
    /// What could not be read, each with what is wrong with it.
    pub damaged: Vec<String>,
}

/// A new item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft {
    /// The repository's owner.
    pub owner: String,
    /// The repository's name.
    pub repo: String,
    /// The title.
    pub title: String,
    /// The body.
    pub body: String,
    /// Labels that it has from the start.
    pub labels: Vec<String>,
}

/// One entry of an item's thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ThreadEntry {
    /// The comment's id.
    pub id: String,
    /// Who wrote it.
    pub author: String,
    /// Its text.
    pub body: String,
    /// Where a person reads it.
    pub url: String,
    /// When it was written.
    pub created_at: Timestamp,
    /// Reactions on it.
    #[serde(default)]
    pub reactions: Vec<String>,
}

/// A comment that the host writes, marked as its own already. Only the host can make one (ADM-1).
#[derive(Clone, Debug)]
pub struct Post {
    item: WorkItemRef,
    key: String,
    body: String,
}

impl Post {
    /// Makes a comment; `key` names this post for ever, so that writing it twice writes it once.
    #[must_use]
    pub fn new(_key: &HostKey, item: WorkItemRef, key: String, body: String) -> Self {
        Self { item, key, body }
    }

    /// The item to write on.
    #[must_use]
    pub fn item(&self) -> &WorkItemRef {
        &self.item
    }

    /// What names this post.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The text, with attribution and marker.
    #[must_use]
    pub fn body(&self) -> &str {
        &self.body
    }
}

/// A reaction that the host adds. Only the host can make one (ADM-1).
#[derive(Clone, Debug)]
pub struct Reaction {
    item: WorkItemRef,
    comment: String,
    content: String,
}

impl Reaction {
    /// Makes a reaction to a comment.
    #[must_use]
    pub fn new(_key: &HostKey, item: WorkItemRef, comment: String, content: String) -> Self {
        Self { item, comment, content }
    }

    /// The comment's item.
    #[must_use]
    pub fn item(&self) -> &WorkItemRef {
        &self.item
    }

    /// The comment's id.
    #[must_use]
    pub fn comment(&self) -> &str {
        &self.comment
    }

    /// The reaction's name, such as `eyes`.
    #[must_use]
    pub fn content(&self) -> &str {
        &self.content
    }
}

/// A comment that was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Posted {
    /// Its id.
    pub id: String,
    /// Where a person reads it.
    pub url: String,
}

/// Why a tracker did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum TrackerError {
    /// It says that there is no such thing.
    #[error("there is no {what} on the tracker")]
    NotFound {
        /// What there is not.
        what: String,
    },
    /// What was asked cannot be.
    #[error("{problem}")]
    Invalid {
        /// What is wrong with it.
        problem: String,
    },
    /// It refused or could not be reached; nothing was written.
    #[error("the tracker could not {action}: {problem}")]
    Unavailable {
        /// What was tried.
        action: &'static str,
        /// What it said.
        problem: String,
    },
}
