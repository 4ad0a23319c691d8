//! The proof of admission, and what was refused instead.

use serde::Serialize;
use the_loop_plugin_api::{
    EventId, WorkItemRef,
    event::{Check, CommentSurface, Item},
};

use super::{
    control::Command,
    inbound::{Registration, Source},
};

/// Proof that admission let this act. Its fields are private to this module and it cannot be cloned, defaulted or read from
/// data: whatever has an effect takes one, so no path reaches an effect around the decision (ARC-4, ADM-1).
#[derive(Debug)]
#[must_use = "an admitted act does nothing until it is dispatched"]
pub struct Admitted<T> {
    act: T,
    provenance: Provenance,
}

impl<T> Admitted<T> {
    /// Only the pipeline of this module makes one.
    pub(super) fn new(act: T, provenance: Provenance) -> Self {
        Self { act, provenance }
    }

    /// What may be done.
    pub fn act(&self) -> &T {
        &self.act
    }

    /// Who asked for it, and through what.
    pub fn provenance(&self) -> &Provenance {
        &self.provenance
    }

    /// Spends the proof.
    pub fn into_parts(self) -> (T, Provenance) {
        (self.act, self.provenance)
    }
}

/// Who asked for an act, and through what. Kept beside it wherever it goes, so that who is asking is never lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Provenance {
    /// Where it came from.
    pub source: Source,
    /// The name to log: a person of the allow-list, a claimed actor, or nobody.
    pub actor: Option<String>,
    /// The word for a command's source: `comment`, `cli`, `api`, `channel`, `host`.
    pub via: &'static str,
    /// The inbox's id, for what came from outside.
    pub event: Option<EventId>,
    /// The upstream's own words, for the log.
    pub upstream: UpstreamNames,
}

/// The upstream's words for an event, as events carry them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UpstreamNames {
    /// Its kind.
    pub gh_event: Option<String>,
    /// Its action.
    pub action: Option<String>,
    /// Its delivery id.
    pub delivery_id: Option<String>,
    /// The comment it is about, to react to.
    pub comment: Option<String>,
    /// The item that the comment is on, which for a pull request is not the work item.
    pub comment_on: Option<WorkItemRef>,
}

/// What may be done.
#[derive(Debug)]
pub enum Act {
    /// One of the five commands.
    Command {
        /// Which.
        command: Command,
        /// On what.
        item: Item,
        /// Post the keyword to the ticket, marked (CTL-10).
        announce: bool,
        /// Remove a checkout although work in it would be lost.
        discard_work: bool,
    },
    /// Spawn because the item is armed and no start command is required.
    Spawn {
        /// For what.
        item: Item,
    },
    /// Put a text into the item's session.
    Deliver {
        /// Whose.
        item: Item,
        /// What the text is made of.
        excerpt: Excerpt,
        /// The pull request that it came by, where that is not the item itself.
        through: Option<Box<Through>>,
    },
    /// Keep in mind that a pull request delivers an item (LNK-2).
    Bind {
        /// The item.
        item: Item,
        /// The pull request.
        through: Box<Through>,
        /// Whether it is closed or merged: the item's session goes on (LNK-6).
        closed: bool,
    },
    /// End the item's own session: the item is closed (ADM-5).
    End {
        /// Whose.
        item: Item,
    },
    /// Take over a conversation that was started elsewhere.
    Register(Registration),
    /// End a session at the operator's word.
    Close {
        /// Whose.
        item: Item,
        /// Keep the terminal for reading.
        keep_terminal: Option<bool>,
    },
    /// Forget what this machine knows of an item.
    Reset {
        /// Which.
        item: Item,
        /// Remove a checkout although work in it would be lost.
        discard_work: bool,
    },
    /// Put an answer into the item's session, if it runs: nothing is started for it (RPL-2).
    Reply {
        /// Whose.
        item: Item,
        /// What was said.
        text: String,
        /// Tell the ticket of it.
        comment: bool,
    },
}

/// A pull request by which an event about a work item came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Through {
    /// The pull request.
    pub pull_request: Item,
    /// What says that it delivers the item, in the word kept on records.
    pub linked_by: &'static str,
}

/// Allow-listed fields of an event that a prompt may show (DEL-8).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Excerpt {
    /// A comment: who, where, what.
    Comment {
        /// Who wrote or edited it.
        author: String,
        /// Where a person reads it.
        url: String,
        /// The text. Untrusted.
        body: String,
        /// Whether it is an edit of an earlier comment.
        edited: bool,
        /// Where it stands: a file and a line come before the text.
        surface: CommentSurface,
    },
    /// What a machine reported.
    Check(Check),
    /// A change of the item: never its body.
    Change {
        /// Who did it.
        author: String,
        /// What, in words of the host's own and a label's name.
        what: String,
    },
}

/// Why something does not act. Each is one record in the event log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// A bound is reached.
    Overloaded,
    /// It is larger than an inbox row may be.
    TooLarge,
    /// It was handled before.
    DuplicateDelivery,
    /// Its text was handled before.
    AlreadyProcessed,
    /// The host's own words.
    SelfComment,
    /// A bot's words.
    SelfAuthored,
    /// The actor is not on the allow-list, or nobody.
    UnauthorizedActor,
    /// It is about no work item.
    NoWorkItem,
    /// The item may not spawn.
    SpawnPolicy,
    /// The item waits for a start command.
    AwaitingStart,
    /// The session is paused.
    SessionPaused,
    /// There is no session that runs.
    NoSession,
    /// There is nothing to resume.
    NothingToResume,
    /// Work would be lost that is nowhere else (SES-5).
    WouldLoseWork,
    /// Two different commands in one comment.
    Ambiguous,
    /// Routing is switched off.
    RoutingDisabled,
    /// Nothing to act on: a sign of life, a deletion, a change nobody needs to know.
    NothingToDo,
    /// Everything is only recorded as it would be (ADM-6).
    Shadow,
}

impl Reason {
    /// The word used in the event log.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Overloaded => "overloaded",
            Self::TooLarge => "too-large",
            Self::DuplicateDelivery => "duplicate-delivery",
            Self::AlreadyProcessed => "already-processed",
            Self::SelfComment => "self-comment",
            Self::SelfAuthored => "self-authored",
            Self::UnauthorizedActor => "unauthorized-actor",
            Self::NoWorkItem => "no-work-item",
            Self::SpawnPolicy => "spawn-policy",
            Self::AwaitingStart => "awaiting-start",
            Self::SessionPaused => "session-paused",
            Self::NoSession => "no-session",
            Self::NothingToResume => "nothing-to-resume",
            Self::WouldLoseWork => "would-lose-work",
            Self::Ambiguous => "ambiguous",
            Self::RoutingDisabled => "routing-disabled",
            Self::NothingToDo => "nothing-to-do",
            Self::Shadow => "shadow",
        }
    }
}

/// How the pipeline ended.
#[derive(Debug)]
pub enum Verdict {
    /// It may act.
    Admitted(Admitted<Act>),
    /// It does not act, and why; recorded already.
    Refused(Refusal),
}

/// A refusal, with what to tell the one who asked.
#[derive(Debug)]
pub struct Refusal {
    /// Why.
    pub reason: Reason,
    /// What the author should know, to be written on the ticket once (CTL-8).
    pub answer: Option<Admitted<Answer>>,
    /// The same in words, for a caller.
    pub text: Option<String>,
}

/// Something the host tells the author of a comment on the ticket.
#[derive(Debug)]
pub struct Answer {
    /// Where.
    pub item: Item,
    /// What.
    pub text: String,
}
