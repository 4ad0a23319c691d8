//! One item as its file keeps it.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use the_loop_plugin_api::{
    WorkItemRef,
    event::{Actor, Comment, CommentSurface, Item, ItemState},
    tracker::{Draft, Posted, ThreadEntry},
};
use ulid::Ulid;

use crate::files::VERSION;

/// An item with its comments.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ItemRecord {
    version: u32,
    #[serde(rename = "ref")]
    pub(crate) reference: WorkItemRef,
    tracker_id: String,
    title: String,
    body: String,
    author: Actor,
    pub(crate) state: ItemState,
    pub(crate) labels: Vec<String>,
    created_at: Timestamp,
    updated_at: Timestamp,
    pub(crate) comments: Vec<CommentRecord>,
    /// Reactions on the item's own text.
    #[serde(default)]
    reactions: Vec<String>,
}

/// A comment on it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CommentRecord {
    pub(crate) id: String,
    author: Actor,
    pub(crate) body: String,
    created_at: Timestamp,
    updated_at: Timestamp,
    /// What names the host's post, so that it is written once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) key: Option<String>,
    #[serde(default)]
    reactions: Vec<String>,
}

impl ItemRecord {
    /// A new item.
    pub(crate) fn new(reference: WorkItemRef, author: Actor, draft: &Draft, now: Timestamp) -> Self {
        let mut labels: Vec<String> = Vec::new();
        for label in &draft.labels {
            if !labels.contains(label) {
                labels.push(label.clone());
            }
        }
        Self {
            version: VERSION,
            reference,
            tracker_id: format!("itm_{}", Ulid::generate()),
            title: draft.title.clone(),
            body: draft.body.clone(),
            author,
            state: ItemState::Open,
            labels,
            created_at: now,
            updated_at: now,
            comments: Vec::new(),
            reactions: Vec::new(),
        }
    }

    /// Notes that the item changes. Its times never repeat and never run backwards, whatever the clock does: an edit is told
    /// from the revision before by its time.
    pub(crate) fn touch(&mut self, now: Timestamp) -> Timestamp {
        let after = self.updated_at.saturating_add(SignedDuration::from_millis(1)).unwrap_or(self.updated_at);
        self.updated_at = now.max(after);
        self.updated_at
    }

    /// The item as an event shows it.
    pub(crate) fn shown(&self) -> Item {
        Item {
            reference: self.reference.clone(),
            tracker_id: Some(self.tracker_id.clone()),
            title: self.title.clone(),
            url: self.reference.to_string(),
            state: self.state,
            labels: self.labels.clone(),
            author: self.author.clone(),
            is_pull_request: false,
            links: Vec::new(),
        }
    }

    /// Adds a comment and gives it back.
    pub(crate) fn add_comment(&mut self, author: Actor, body: String, key: Option<String>, now: Timestamp) -> Comment {
        let comment = CommentRecord {
            id: format!("cmt_{}", Ulid::generate()),
            author,
            body,
            created_at: now,
            updated_at: now,
            key,
            reactions: Vec::new(),
        };
        let shown = self.shown_comment(&comment);
        self.comments.push(comment);
        shown
    }

    /// Changes a comment's text; the comment as it is now and its text before, or `None` where there is no such comment.
    pub(crate) fn edit_comment(&mut self, id: &str, body: &str, now: Timestamp) -> Option<(Comment, String)> {
        let index = self.comments.iter().position(|comment| comment.id == id)?;
        let comment = &mut self.comments[index];
        let before = std::mem::replace(&mut comment.body, body.to_owned());
        comment.updated_at = now;
        Some((self.shown_comment(&self.comments[index]), before))
    }

    /// The reactions on a comment, or on the item's own text by the item's id.
    pub(crate) fn reactions(&mut self, id: &str) -> Option<&mut Vec<String>> {
        if id == self.tracker_id {
            return Some(&mut self.reactions);
        }
        self.comments.iter_mut().find(|comment| comment.id == id).map(|comment| &mut comment.reactions)
    }

    /// The thread, oldest first: the item's own text, if it has any, under the item's id, then the comments.
    pub(crate) fn thread(&self) -> Vec<ThreadEntry> {
        let opening = (!self.body.trim().is_empty()).then(|| ThreadEntry {
            id: self.tracker_id.clone(),
            author: login(&self.author),
            body: self.body.clone(),
            url: self.reference.to_string(),
            created_at: self.created_at,
            reactions: self.reactions.clone(),
        });
        let comments = self.comments.iter().map(|comment| ThreadEntry {
            id: comment.id.clone(),
            author: login(&comment.author),
            body: comment.body.clone(),
            url: self.comment_url(&comment.id),
            created_at: comment.created_at,
            reactions: comment.reactions.clone(),
        });
        opening.into_iter().chain(comments).collect()
    }

    /// A comment's id and address.
    pub(crate) fn posted(&self, id: &str) -> Posted {
        Posted { id: id.to_owned(), url: self.comment_url(id) }
    }

    fn comment_url(&self, id: &str) -> String {
        format!("{}/{id}", self.reference)
    }

    fn shown_comment(&self, comment: &CommentRecord) -> Comment {
        Comment {
            id: comment.id.clone(),
            url: self.comment_url(&comment.id),
            author: comment.author.clone(),
            body: comment.body.clone(),
            updated_at: Some(comment.updated_at),
            surface: CommentSurface::Conversation,
        }
    }
}

fn login(author: &Actor) -> String {
    author.login().unwrap_or_default().to_owned()
}
