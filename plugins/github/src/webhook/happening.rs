//! What a payload says happened, for each event kind that is read (GHW-4, GHW-5).

use serde_json::{Map, Value};
use the_loop_plugin_api::event::{Actor, Comment, CommentChange, Content, Item, ItemChange, ItemState};

use super::payload::{Object, account, issue};

/// What a payload says.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Happening {
    /// The payload's `action`.
    pub(super) action: String,
    pub(super) actor: Actor,
    pub(super) item: Option<Item>,
    pub(super) content: Content,
}

/// A payload of a kind that is read, without what that kind always has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the payload of {event} has no {lacks}")]
pub(super) struct PayloadError {
    event: &'static str,
    lacks: &'static str,
}

/// Reads a payload of the kind `event`; `None` for a kind or an action that nothing is known about.
pub(super) fn read(event: &str, payload: &Map<String, Value>) -> Result<Option<Happening>, PayloadError> {
    let payload = Object(payload);
    let action = payload.text_or_empty("action");
    match event {
        "issues" => issues(payload, action).map(Some),
        "issue_comment" => issue_comment(payload, action),
        "ping" => Ok(Some(Happening { action, actor: Actor::Machine, item: None, content: Content::Ping })),
        _ => Ok(None),
    }
}

fn issues(payload: Object<'_>, action: String) -> Result<Happening, PayloadError> {
    const EVENT: &str = "issues";
    let mut item = issue(payload).ok_or(PayloadError { event: EVENT, lacks: "numbered issue of a repository" })?;
    let label = || payload.object("label").and_then(|label| label.text("name")).map(str::to_owned);
    let change = match action.as_str() {
        "opened" => ItemChange::Opened,
        "reopened" => ItemChange::Reopened,
        "labeled" => ItemChange::Labeled { label: label() },
        "unlabeled" => ItemChange::Unlabeled { label: label() },
        "closed" | "deleted" => ItemChange::Closed,
        _ => ItemChange::Other { action: action.clone() },
    };
    if change == ItemChange::Closed {
        // A deleted issue still shows the state it had.
        item.state = ItemState::Closed;
    }
    Ok(Happening { action, actor: account(payload, "sender"), item: Some(item), content: Content::Item { change } })
}

fn issue_comment(payload: Object<'_>, action: String) -> Result<Option<Happening>, PayloadError> {
    const EVENT: &str = "issue_comment";
    let change = match action.as_str() {
        "created" => CommentChange::Created,
        "edited" => {
            let previous = payload.object("changes").and_then(|changes| changes.object("body")?.text("from"));
            CommentChange::Edited { previous: previous.map(str::to_owned) }
        }
        "deleted" => CommentChange::Deleted,
        _ => return Ok(None),
    };
    let item = issue(payload).ok_or(PayloadError { event: EVENT, lacks: "numbered issue of a repository" })?;
    let shown = payload.object("comment").ok_or(PayloadError { event: EVENT, lacks: "comment" })?;
    let comment = Comment {
        id: shown.id("id").ok_or(PayloadError { event: EVENT, lacks: "id of its comment" })?,
        url: shown.text_or_empty("html_url"),
        author: account(shown, "user"),
        body: shown.text_or_empty("body"),
        updated_at: shown.instant("updated_at").or_else(|| shown.instant("created_at")),
    };
    // Whoever edits or deletes need not be who wrote (ADM-4).
    let actor = if change == CommentChange::Created { comment.author.clone() } else { account(payload, "sender") };
    Ok(Some(Happening { action, actor, item: Some(item), content: Content::Comment { comment, change } }))
}

#[cfg(test)]
mod tests;
