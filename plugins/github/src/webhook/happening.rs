//! What a payload says happened, for each event kind that is read (GHW-4, GHW-5).

use serde_json::{Map, Value};
use the_loop_plugin_api::event::{Actor, Comment, CommentChange, CommentSurface, Content, Item, ItemChange, ItemState};

use crate::payload::{Object, account, issue};

mod checks;
mod pulls;

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
        "pull_request" => pulls::pull_request(payload, action).map(Some),
        "pull_request_review" => pulls::review(payload, action),
        "pull_request_review_comment" => pulls::inline_comment(payload, action),
        "workflow_run" => checks::workflow_run(payload, action),
        "check_run" => checks::check_run(payload, action),
        "check_suite" => checks::check_suite(payload, action),
        "status" => checks::status(payload, action),
        "repository" => Ok(moved(payload, action)),
        "ping" => Ok(Some(Happening { action, actor: Actor::Machine, item: None, content: Content::Ping })),
        _ => Ok(None),
    }
}

fn issues(payload: Object<'_>, action: String) -> Result<Happening, PayloadError> {
    const EVENT: &str = "issues";
    let mut item = issue(payload).ok_or(PayloadError { event: EVENT, lacks: "numbered issue of a repository" })?;
    let change = item_change(payload, &action);
    if change == ItemChange::Closed {
        // A deleted issue still shows the state it had.
        item.state = ItemState::Closed;
    }
    Ok(Happening { action, actor: account(payload, "sender"), item: Some(item), content: Content::Item { change } })
}

/// What an action changed about an issue or a pull request.
fn item_change(payload: Object<'_>, action: &str) -> ItemChange {
    let label = || payload.object("label").and_then(|label| label.text("name")).map(str::to_owned);
    match action {
        "opened" => ItemChange::Opened,
        "reopened" => ItemChange::Reopened,
        "labeled" => ItemChange::Labeled { label: label() },
        "unlabeled" => ItemChange::Unlabeled { label: label() },
        "closed" | "deleted" => ItemChange::Closed,
        _ => ItemChange::Other { action: action.to_owned() },
    }
}

fn issue_comment(payload: Object<'_>, action: String) -> Result<Option<Happening>, PayloadError> {
    const EVENT: &str = "issue_comment";
    let Some(change) = comment_change(payload, &action) else { return Ok(None) };
    let item = issue(payload).ok_or(PayloadError { event: EVENT, lacks: "numbered issue of a repository" })?;
    let shown = payload.object("comment").ok_or(PayloadError { event: EVENT, lacks: "comment" })?;
    let id = shown.id("id").ok_or(PayloadError { event: EVENT, lacks: "id of its comment" })?;
    let comment = comment(shown, id, CommentSurface::Conversation);
    Ok(Some(said(payload, action, item, comment, change)))
}

/// What an action did to a comment; `None` for one that nothing is known about.
fn comment_change(payload: Object<'_>, action: &str) -> Option<CommentChange> {
    match action {
        "created" | "submitted" => Some(CommentChange::Created),
        "edited" => {
            let previous = payload.object("changes").and_then(|changes| changes.object("body")?.text("from"));
            Some(CommentChange::Edited { previous: previous.map(str::to_owned) })
        }
        "deleted" => Some(CommentChange::Deleted),
        _ => None,
    }
}

fn comment(shown: Object<'_>, id: String, surface: CommentSurface) -> Comment {
    let instant = |name| shown.instant(name);
    Comment {
        id,
        url: shown.text_or_empty("html_url"),
        author: account(shown, "user"),
        body: shown.text_or_empty("body"),
        updated_at: instant("updated_at").or_else(|| instant("submitted_at")).or_else(|| instant("created_at")),
        surface,
    }
}

/// Somebody said something. Whoever edits or deletes need not be who wrote (ADM-4).
fn said(payload: Object<'_>, action: String, item: Item, comment: Comment, change: CommentChange) -> Happening {
    let actor = if change == CommentChange::Created { comment.author.clone() } else { account(payload, "sender") };
    Happening { action, actor, item: Some(item), content: Content::Comment { comment, change } }
}

/// A repository that goes by another name now (LNK-5).
fn moved(payload: Object<'_>, action: String) -> Option<Happening> {
    let to = payload.object("repository")?.text("full_name")?.to_owned();
    let (owner, name) = to.split_once('/')?;
    let changes = payload.object("changes");
    let from = match action.as_str() {
        "renamed" => {
            let before = changes.and_then(|changes| changes.object("repository")?.object("name")?.text("from"));
            before.map(|before| format!("{owner}/{before}"))
        }
        "transferred" => {
            let from = changes.and_then(|changes| changes.object("owner")?.object("from"));
            let before = from.and_then(|from| {
                from.object("user").or_else(|| from.object("organization")).and_then(|owner| owner.text("login"))
            });
            before.map(|before| format!("{before}/{name}"))
        }
        _ => return None,
    };
    let content = Content::Moved { from: from.unwrap_or_default(), to };
    Some(Happening { action, actor: account(payload, "sender"), item: None, content })
}

#[cfg(test)]
mod tests;
