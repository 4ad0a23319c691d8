//! Pull requests, reviews of them, and comments at their lines (GHP-3).

use the_loop_plugin_api::event::{CommentChange, CommentSurface, Content, ItemChange, ItemState};

use super::{Happening, PayloadError, comment, comment_change, item_change, said};
use crate::payload::{Object, account, pull_request as shown_pull_request};

const NUMBERED: &str = "numbered pull request of a repository";

pub(super) fn pull_request(payload: Object<'_>, action: String) -> Result<Happening, PayloadError> {
    let mut item = shown_pull_request(payload).ok_or(PayloadError { event: "pull_request", lacks: NUMBERED })?;
    let change = item_change(payload, &action);
    if change == ItemChange::Closed {
        item.state = ItemState::Closed;
    }
    Ok(Happening { action, actor: account(payload, "sender"), item: Some(item), content: Content::Item { change } })
}

/// A review says something only in its own words. One without any stands for its inline comments, which come by themselves,
/// and a pending one is not said yet.
pub(super) fn review(payload: Object<'_>, action: String) -> Result<Option<Happening>, PayloadError> {
    const EVENT: &str = "pull_request_review";
    let Some(change) = comment_change(payload, &action) else { return Ok(None) };
    let item = shown_pull_request(payload).ok_or(PayloadError { event: EVENT, lacks: NUMBERED })?;
    let shown = payload.object("review").ok_or(PayloadError { event: EVENT, lacks: "review" })?;
    let id = shown.id("id").ok_or(PayloadError { event: EVENT, lacks: "id of its review" })?;
    let verdict = shown.text_or_empty("state").to_ascii_lowercase();
    if verdict == "pending" || shown.text("body").is_none_or(|body| body.trim().is_empty()) {
        return Ok(None);
    }
    let review = comment(shown, format!("review-{id}"), CommentSurface::Review { verdict });
    Ok(Some(said(payload, action, item, review, change)))
}

pub(super) fn inline_comment(payload: Object<'_>, action: String) -> Result<Option<Happening>, PayloadError> {
    const EVENT: &str = "pull_request_review_comment";
    let Some(change) = comment_change(payload, &action) else { return Ok(None) };
    let item = shown_pull_request(payload).ok_or(PayloadError { event: EVENT, lacks: NUMBERED })?;
    let shown = payload.object("comment").ok_or(PayloadError { event: EVENT, lacks: "comment" })?;
    let id = shown.id("id").ok_or(PayloadError { event: EVENT, lacks: "id of its comment" })?;
    let surface = CommentSurface::Inline {
        path: shown.text_or_empty("path"),
        line: shown.number("line").or_else(|| shown.number("original_line")),
    };
    let comment = comment(shown, format!("inline-{id}"), surface);
    if comment.body.trim().is_empty() && change != CommentChange::Deleted {
        return Ok(None);
    }
    Ok(Some(said(payload, action, item, comment, change)))
}
