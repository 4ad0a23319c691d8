//! What is kept of a work item. Names are those of the REST rows (STA-6); times are RFC 3339 in UTC.
//!
//! Fields that this version does not know are kept in `other` and written back, so that an older host does not lose what a
//! newer one noted down under the same version.

use std::{collections::BTreeMap, path::PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use the_loop_plugin_api::{IncarnationId, RunnerHandle, WorkItemRef, channel::Thread};

use super::store::Record;
use crate::config::WorkspaceStrategy;

/// How many of the upstream's delivery ids a session record remembers.
pub const RECENT_DELIVERIES: usize = 20;

/// What this machine knows of a work item's session: `local/<slug>.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionRecord {
    /// The record's format.
    pub version: u32,
    /// The work item.
    #[serde(rename = "ref")]
    pub reference: WorkItemRef,
    /// Where a person reads it.
    #[serde(default)]
    pub url: String,
    /// Its title when it was last seen. Untrusted text.
    #[serde(default)]
    pub title: String,
    /// The agent program.
    pub harness: String,
    /// The conversation, where one is known.
    #[serde(default)]
    pub harness_session_id: Option<String>,
    /// The folder it works in.
    pub cwd: PathBuf,
    /// Its own checkout, where it has one (WSP-1).
    #[serde(default)]
    pub checkout: Option<CheckoutRecord>,
    /// How far it is (SES-3).
    pub status: SessionStatus,
    /// The name of its terminal session, as people type it.
    #[serde(default)]
    pub tmux_target: String,
    /// The whole address of its process (TMX-12).
    #[serde(default)]
    pub runner: Option<RunnerHandle>,
    /// The spawn that it is.
    #[serde(default)]
    pub incarnation: Option<IncarnationId>,
    /// The tracker's own id of the item, which a rename does not change (LNK-5).
    #[serde(default)]
    pub tracker_id: Option<String>,
    /// When the record was made.
    pub created_at: Timestamp,
    /// When something last reached the session.
    pub last_event_at: Timestamp,
    /// The upstream's ids of the last deliveries, oldest first; see [`SessionRecord::remember_delivery`].
    #[serde(default)]
    pub recent_deliveries: Vec<String>,
    /// Pull requests that deliver the item (LNK-2).
    #[serde(default)]
    pub pull_requests: Vec<PullRequestRecord>,
    /// Spawns in a row that failed (REL-8).
    #[serde(default)]
    pub spawn_failures: u32,
    /// Whether the first spawn was announced on the ticket (SES-6).
    #[serde(default)]
    pub announced: bool,
    /// Fields of another version.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// A work item's own checkout (WSP-1).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CheckoutRecord {
    /// How it was made.
    pub strategy: WorkspaceStrategy,
    /// Its folder.
    pub path: PathBuf,
    /// The branch that it was made with; empty where it was found on none.
    pub branch: String,
}

/// How far a session is (SES-3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SessionStatus {
    /// Being spawned.
    Starting,
    /// Takes what comes.
    Active,
    /// Nothing is delivered until it is resumed.
    Paused,
    /// Ended by a command; its conversation can be resumed.
    Stopped,
    /// Ended with its item; the next start is a fresh conversation.
    Closed,
}

impl SessionStatus {
    /// The word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Active => "active",
            Self::Paused => "paused",
            Self::Stopped => "stopped",
            Self::Closed => "closed",
        }
    }

    /// Whether the session is live, which is active or paused.
    #[must_use]
    pub fn is_live(self) -> bool {
        match self {
            Self::Active | Self::Paused => true,
            Self::Starting | Self::Stopped | Self::Closed => false,
        }
    }
}

/// A pull request that delivers a work item (LNK-2).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PullRequestRecord {
    /// The pull request.
    #[serde(rename = "ref")]
    pub reference: WorkItemRef,
    /// Where a person reads it.
    #[serde(default)]
    pub url: String,
    /// What bound it: a closing reference, a branch name, a keyword in its body, or a person by hand.
    #[serde(default)]
    pub linked_by: String,
    /// When it was bound.
    pub linked_at: Timestamp,
    /// Whether it was closed or merged since.
    #[serde(default)]
    pub closed: bool,
    /// Fields of another version.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

impl SessionRecord {
    /// Notes that an upstream delivery reached the session; the oldest beyond [`RECENT_DELIVERIES`] are dropped.
    pub fn remember_delivery(&mut self, upstream: impl Into<String>) {
        self.recent_deliveries.push(upstream.into());
        let excess = self.recent_deliveries.len().saturating_sub(RECENT_DELIVERIES);
        self.recent_deliveries.drain(..excess);
    }
}

impl Record for SessionRecord {
    const VERSION: u32 = 1;

    fn name(&self) -> String {
        self.reference.slug()
    }
}

/// What travels with a work item to another machine: `portable/<slug>.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PortableRecord {
    /// The record's format.
    pub version: u32,
    /// The work item.
    #[serde(rename = "ref")]
    pub reference: WorkItemRef,
    /// Where a person reads it.
    #[serde(default)]
    pub url: String,
    /// The last command (CTL-9).
    #[serde(default)]
    pub control: Option<ControlRecord>,
    /// What the poller remembers of it.
    #[serde(default)]
    pub poll: Option<Value>,
    /// Fields of another version.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

impl PortableRecord {
    /// A record of an item of which nothing is known yet.
    #[must_use]
    pub fn new(reference: WorkItemRef, url: String) -> Self {
        Self { version: Self::VERSION, reference, url, control: None, poll: None, other: Map::new() }
    }
}

impl Record for PortableRecord {
    const VERSION: u32 = 1;

    fn name(&self) -> String {
        self.reference.slug()
    }
}

/// What a channel was given: `channels/<name>.json`. Subjects are work items' refs, or `standing:<name>`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChannelRecord {
    /// The record's format.
    pub version: u32,
    /// The channel's name.
    pub channel: String,
    /// The conversation of each subject (SLK-2).
    #[serde(default)]
    pub threads: BTreeMap<String, Thread>,
    /// The question of each subject that was posted last (ASK-6).
    #[serde(default)]
    pub posted: BTreeMap<String, String>,
    /// Fields of a newer version.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

impl ChannelRecord {
    /// The record of a channel that was given nothing yet.
    #[must_use]
    pub fn new(channel: &str) -> Self {
        Self {
            version: Self::VERSION,
            channel: channel.to_owned(),
            threads: BTreeMap::new(),
            posted: BTreeMap::new(),
            other: Map::new(),
        }
    }
}

impl Record for ChannelRecord {
    const VERSION: u32 = 1;

    fn name(&self) -> String {
        self.channel.clone()
    }
}

/// The last command on a work item (CTL-9).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ControlRecord {
    /// The command's word, such as `start`.
    pub command: String,
    /// The surface it came from.
    pub source: String,
    /// Who gave it; empty where nobody was named.
    #[serde(default)]
    pub actor: String,
    /// When it was given.
    #[schema(value_type = String, format = DateTime)]
    pub requested_at: Timestamp,
    /// What became of it.
    #[serde(default)]
    pub note: String,
    /// The item that the command was given on.
    #[serde(rename = "ref")]
    #[schema(value_type = String)]
    pub reference: WorkItemRef,
    /// Fields of another version.
    #[serde(flatten)]
    #[schema(value_type = Object)]
    pub other: Map<String, Value>,
}
