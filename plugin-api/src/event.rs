//! What a source says happened outside: [`InboundEvent`].
//!
//! An event is a claim, not a permission. It is plain data that the host journals before it answers upstream, so every
//! type here reads back from what an earlier version wrote: fields are added with a default, never renamed.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::work_item::WorkItemRef;

/// The kinds of source a plugin can be. The host's own sources (control plane, loop, host) are not among them: no plugin
/// can claim to be one (ADM-0).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ingress {
    /// A pushed delivery of a tracker.
    Webhook,
    /// A listing of a tracker that was asked for.
    Poll,
    /// The local tracker.
    Local,
    /// A conversation surface beside the ticket.
    Channel,
}

impl Ingress {
    /// The word used in the event log.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Webhook => "webhook",
            Self::Poll => "poll",
            Self::Local => "local",
            Self::Channel => "channel",
        }
    }
}

/// One thing that happened outside.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InboundEvent {
    /// The kind of source that saw it.
    pub ingress: Ingress,
    /// How the upstream names it.
    pub upstream: Upstream,
    /// Who did it. Of an edit, the person who edited (ADM-4).
    pub actor: Actor,
    /// The item it is about, as it was when it happened.
    pub item: Option<Item>,
    /// What happened.
    pub content: Content,
}

/// The upstream's own words for an event, kept for the log and for telling repeats.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Upstream {
    /// The event's kind in the upstream's words, such as `issue_comment`.
    pub event: String,
    /// Its action, such as `created`; empty where the kind has none.
    #[serde(default)]
    pub action: String,
    /// The upstream's id of this delivery. Two deliveries with one id are one delivery.
    #[serde(default)]
    pub delivery_id: Option<String>,
    /// Whether its origin was proven, by a signature or by our own request.
    #[serde(default)]
    pub verified: bool,
}

/// Who performed an action, as the surface names them. A name is never authentication.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Actor {
    /// A person's account.
    Human {
        /// Login or member id, spelled as the surface spells it.
        login: String,
    },
    /// An account that the surface marks as a bot.
    Bot {
        /// Its login.
        login: String,
    },
    /// Nobody: an event with no human behind it, such as a CI result (ADM-3).
    Machine,
    /// A human action whose author the surface no longer names, such as a deleted account (ADM-3).
    Missing,
}

impl Actor {
    /// The name to log, if the surface gave one.
    #[must_use]
    pub fn login(&self) -> Option<&str> {
        match self {
            Self::Human { login } | Self::Bot { login } => Some(login),
            Self::Machine | Self::Missing => None,
        }
    }
}

/// A ticket or pull request, as the event showed it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Item {
    /// Its ref.
    pub reference: WorkItemRef,
    /// The tracker's own id, which a rename or a transfer does not change (LNK-5).
    #[serde(default)]
    pub tracker_id: Option<String>,
    /// Its title. Untrusted text.
    #[serde(default)]
    pub title: String,
    /// Where a person reads it.
    #[serde(default)]
    pub url: String,
    /// Open or closed.
    pub state: ItemState,
    /// Its labels' names.
    #[serde(default)]
    pub labels: Vec<String>,
    /// Who opened it.
    pub author: Actor,
    /// Whether it is a pull request.
    #[serde(default)]
    pub is_pull_request: bool,
    /// What a pull request delivers, as far as the event itself tells (LNK-1).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<Link>,
}

/// A work item that a pull request delivers (LNK-1).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// The work item.
    pub item: WorkItemRef,
    /// What says so.
    pub by: LinkedBy,
}

/// What says that a pull request delivers a work item; the surest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LinkedBy {
    /// The tracker's own closing reference.
    ClosingReference,
    /// The name of its head branch, which is only a suggestion (LNK-3).
    Branch,
    /// A closing keyword in its text.
    Keyword,
}

impl LinkedBy {
    /// The word kept on records.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ClosingReference => "closing-reference",
            Self::Branch => "branch",
            Self::Keyword => "keyword",
        }
    }
}

/// Whether an item is still open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ItemState {
    /// Open.
    Open,
    /// Closed, merged or deleted.
    Closed,
}

impl ItemState {
    /// The word shown to people and agents.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Closed => "closed",
        }
    }
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Content {
    /// Someone wrote a comment or changed one.
    Comment {
        /// The comment as it is now.
        comment: Comment,
        /// What happened to it.
        change: CommentChange,
    },
    /// Something about the item itself changed.
    Item {
        /// What.
        change: ItemChange,
    },
    /// A machine reported on the item's code (ADM-3).
    Check {
        /// What it reported.
        check: Check,
    },
    /// A repository has another name now (LNK-5).
    Moved {
        /// Its name before, as `OWNER/REPO`; empty where the upstream does not say.
        #[serde(default)]
        from: String,
        /// Its name now.
        to: String,
    },
    /// A sign of life that asks for nothing.
    Ping,
}

/// A comment on an item.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Comment {
    /// The tracker's id of it, unique on that tracker.
    pub id: String,
    /// Where a person reads it.
    #[serde(default)]
    pub url: String,
    /// Who wrote it first.
    pub author: Actor,
    /// Its text. Untrusted.
    #[serde(default)]
    pub body: String,
    /// When this revision was made.
    #[serde(default)]
    pub updated_at: Option<Timestamp>,
    /// Where it stands.
    #[serde(default)]
    pub surface: CommentSurface,
}

/// Where a comment stands on its item (GHP-3).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "surface", rename_all = "kebab-case")]
pub enum CommentSurface {
    /// In the item's conversation.
    #[default]
    Conversation,
    /// It is the text of a review.
    Review {
        /// The upstream's word for what the review says, such as `changes_requested`.
        #[serde(default)]
        verdict: String,
    },
    /// At a line of a changed file.
    Inline {
        /// The file.
        path: String,
        /// The line; the one it was written at where the file moved on since. `None` for a comment on the whole file.
        #[serde(default)]
        line: Option<u64>,
    },
}

/// What a machine reported on a pull request or a branch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// Its name, or its context. Untrusted text.
    #[serde(default)]
    pub name: String,
    /// How far it is, in the upstream's words, such as `completed`. What still runs is not reported.
    #[serde(default)]
    pub status: String,
    /// How it ended, in the upstream's words, such as `failure`.
    #[serde(default)]
    pub conclusion: String,
    /// Where a person reads it.
    #[serde(default)]
    pub url: String,
    /// Where its details are, if elsewhere.
    #[serde(default)]
    pub details_url: String,
}

/// What happened to a comment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "change", rename_all = "kebab-case")]
pub enum CommentChange {
    /// It was written.
    Created,
    /// It was edited; the text before, where the upstream says it.
    Edited {
        /// The text before the edit.
        #[serde(default)]
        previous: Option<String>,
    },
    /// It was deleted.
    Deleted,
}

/// What changed about an item.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "change", rename_all = "kebab-case")]
pub enum ItemChange {
    /// It was opened.
    Opened,
    /// It was opened again.
    Reopened,
    /// A label was added.
    Labeled {
        /// The label, where the upstream names it.
        #[serde(default)]
        label: Option<String>,
    },
    /// A label was removed.
    Unlabeled {
        /// The label, where the upstream names it.
        #[serde(default)]
        label: Option<String>,
    },
    /// It was closed. A lifecycle signal without text (ADM-5).
    Closed,
    /// Anything else, by the upstream's word for it.
    Other {
        /// The upstream's word.
        action: String,
    },
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// What an earlier version journaled is decided by this one after an upgrade (REL-1).
    #[test]
    fn rel_1_events_of_an_earlier_version_read_back() {
        let written = json!({
            "ingress": "webhook",
            "upstream": {"event": "issue_comment"},
            "actor": {"kind": "human", "login": "octo-admin"},
            "item": {
                "reference": "github:octo/hello#7",
                "state": "open",
                "author": {"kind": "missing"}
            },
            "content": {
                "kind": "comment",
                "comment": {"id": "801", "author": {"kind": "missing"}},
                "change": {"change": "created"}
            }
        });
        let event: InboundEvent = serde_json::from_value(written).unwrap();
        assert_eq!(event.item.as_ref().map(|item| item.links.len()), Some(0));
        let Content::Comment { comment, .. } = &event.content else { panic!("{event:?}") };
        assert_eq!(comment.surface, CommentSurface::Conversation);
        let again = serde_json::from_value::<InboundEvent>(serde_json::to_value(&event).unwrap()).unwrap();
        assert_eq!(again, event);
    }

    #[test]
    fn rel_1_every_surface_and_report_reads_back() {
        for surface in [
            CommentSurface::Conversation,
            CommentSurface::Review { verdict: "approved".to_owned() },
            CommentSurface::Inline { path: "src/list.rs".to_owned(), line: Some(42) },
        ] {
            let comment = Comment {
                id: "1".to_owned(),
                url: String::new(),
                author: Actor::Missing,
                body: String::new(),
                updated_at: None,
                surface,
            };
            let content = Content::Comment { comment, change: CommentChange::Created };
            assert_eq!(serde_json::from_value::<Content>(serde_json::to_value(&content).unwrap()).unwrap(), content);
        }
        let content = Content::Check { check: Check { name: "build".to_owned(), ..Check::default() } };
        assert_eq!(serde_json::from_value::<Content>(serde_json::to_value(&content).unwrap()).unwrap(), content);
    }
}
