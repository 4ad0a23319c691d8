//! What names a session: [`SessionKey`], used wherever one session is told from another.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::work_item::WorkItemRef;

/// The one identity of a session, whatever hosts it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum SessionKey {
    /// The session of a work item (SES-1).
    WorkItem {
        /// The item that it works on.
        item: WorkItemRef,
    },
    /// The session of a pull request that delivers a work item (LNK-7).
    PullRequest {
        /// The work item that is delivered.
        item: WorkItemRef,
        /// The pull request.
        pull: WorkItemRef,
    },
    /// A session that belongs to no work item.
    Standing {
        /// Its name.
        name: StandingName,
    },
    /// A session inside a harness's own server, which the host did not spawn itself.
    Server {
        /// The harness whose server it is.
        harness: String,
        /// The server's id of it.
        id: String,
    },
}

impl SessionKey {
    /// The key of a work item's own session.
    #[must_use]
    pub fn work_item(item: WorkItemRef) -> Self {
        Self::WorkItem { item }
    }

    /// The work item that this session works on, if it works on one.
    #[must_use]
    pub fn item(&self) -> Option<&WorkItemRef> {
        match self {
            Self::WorkItem { item } | Self::PullRequest { item, .. } => Some(item),
            Self::Standing { .. } | Self::Server { .. } => None,
        }
    }

    /// The terminal session's name (TMX-1), legal on every version of tmux.
    #[must_use]
    pub fn terminal_name(&self) -> String {
        match self {
            Self::WorkItem { item } => format!("loop-{}", item.slug()),
            Self::PullRequest { pull, .. } => format!("loop-pr-{}", pull.slug()),
            Self::Standing { name } => format!("loop-standing-{name}"),
            Self::Server { harness, id } => {
                let id: String = id.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
                format!("loop-server-{harness}-{id}")
            }
        }
    }
}

impl fmt::Display for SessionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WorkItem { item } => item.fmt(f),
            Self::PullRequest { item, pull } => write!(f, "{item}!{pull}"),
            Self::Standing { name } => write!(f, "standing:{name}"),
            Self::Server { harness, id } => write!(f, "server:{harness}:{id}"),
        }
    }
}

/// The name of a standing session: `^[a-z0-9][a-z0-9-]{0,39}$` (STD-4).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct StandingName(String);

/// A text that is no standing-session name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a standing-session name: 1 to 40 characters of a-z, 0-9 and '-', not starting with '-'")]
pub struct StandingNameError(String);

impl FromStr for StandingName {
    type Err = StandingNameError;

    fn from_str(text: &str) -> Result<Self, StandingNameError> {
        let legal = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        if (1..=40).contains(&text.len()) && !text.starts_with('-') && text.bytes().all(legal) {
            Ok(Self(text.to_owned()))
        } else {
            Err(StandingNameError(text.chars().take(80).collect()))
        }
    }
}

impl TryFrom<String> for StandingName {
    type Error = StandingNameError;

    fn try_from(text: String) -> Result<Self, StandingNameError> {
        text.parse()
    }
}

impl From<StandingName> for String {
    fn from(name: StandingName) -> Self {
        name.0
    }
}

impl fmt::Display for StandingName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
