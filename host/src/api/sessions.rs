//! Routes about sessions.

use axum::{Json, extract::State};
use http::StatusCode;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::{
    document::Refused,
    error::ApiError,
    extract::{Body, Caller, Query, claimed},
};
use crate::{
    TheLoop,
    admission::Command,
    sessions::{
        operations::{ControlAnswer, RegisterRequest, SessionRow, reset_text},
        reply::{ReplyAnswer, ReplyRequest},
    },
    state::SessionStatus,
};

#[utoipa::path(
    get,  operation_id = "sessions", path = "/api/v1/sessions", tag = "sessions", summary = "Every session",
    params(("status" = Option<SessionStatus>, Query, description = "Only those of this status")),
    responses((status = 200, description = "Every session", body = Vec<SessionRow>), Refused)
)]
pub(super) async fn list(State(host): State<TheLoop>, query: Query) -> Result<Json<Vec<SessionRow>>, ApiError> {
    let status = match query.one("status").filter(|text| !text.is_empty()) {
        None => None,
        Some(text) => Some(serde_json::from_value::<SessionStatus>(text.into()).map_err(|_| {
            let message = format!("{text:?} is no status; it is one of starting, active, paused, stopped, closed");
            ApiError::new(StatusCode::BAD_REQUEST, "unknown-status", message)
        })?),
    };
    Ok(Json(host.sessions(status).await))
}

#[utoipa::path(
    get,  operation_id = "sessionsOne", path = "/api/v1/sessions/one", tag = "sessions", summary = "One session",
    params(("ref" = String, Query, description = "The ref, such as github:octo/repo#15")),
    responses((status = 200, description = "One session", body = SessionRow), Refused)
)]
pub(super) async fn one(State(host): State<TheLoop>, query: Query) -> Result<Json<SessionRow>, ApiError> {
    Ok(Json(host.session(query.required("ref")?).await?))
}

#[utoipa::path(
    post,  operation_id = "sessionsControl", path = "/api/v1/sessions/control", tag = "sessions", summary = "Carry out one of the five commands", request_body = ControlBody,
    responses((status = 200, description = "Carry out one of the five commands", body = ControlAnswer), Refused)
)]
pub(super) async fn control(
    State(host): State<TheLoop>,
    caller: Caller,
    body: Body,
) -> Result<Json<ControlAnswer>, ApiError> {
    let comment = body.flag("comment")?.unwrap_or(true);
    let discard_work = body.flag("discardWork")?.unwrap_or(false);
    let (reference, verb) = (body.text("ref")?, body.text("verb")?);
    Ok(Json(host.control(caller.surface, &caller.actor, reference, verb, comment, discard_work).await?))
}

#[utoipa::path(
    post,  operation_id = "sessionsReply", path = "/api/v1/sessions/reply", tag = "sessions", summary = "Answer a session that runs; nothing is started for it", request_body = ReplyBody,
    responses((status = 200, description = "Answer a session that runs; nothing is started for it", body = ReplyAnswer), Refused)
)]
pub(super) async fn reply(
    State(host): State<TheLoop>,
    caller: Caller,
    body: Body,
) -> Result<Json<ReplyAnswer>, ApiError> {
    let actor = body.text_or("actor", "")?;
    let request = ReplyRequest {
        reference: body.text("ref")?.to_owned(),
        text: body.text("text")?.to_owned(),
        actor: if actor.trim().is_empty() { caller.actor } else { claimed(actor) },
        comment: body.flag("comment")?.unwrap_or(true),
    };
    Ok(Json(host.reply(caller.surface, request).await?))
}

#[utoipa::path(
    post,  operation_id = "sessionsRegister", path = "/api/v1/sessions/register", tag = "sessions", summary = "Take over a conversation that was started elsewhere", request_body = RegisterBody,
    responses((status = 200, description = "Take over a conversation that was started elsewhere", body = Object), Refused)
)]
pub(super) async fn register(State(host): State<TheLoop>, caller: Caller, body: Body) -> Result<Json<Value>, ApiError> {
    let request = RegisterRequest {
        reference: body.text("ref")?.to_owned(),
        harness: body.text("harness")?.to_owned(),
        conversation: body.text("harnessSessionId")?.to_owned(),
        cwd: host.loaded().resolve(body.text_or("cwd", ".")?.as_ref()),
        force: body.flag("force")?.unwrap_or(false),
    };
    let record = host.register(caller.surface, &caller.actor, request).await?;
    let text = format!("{}: registered; the next text for it brings it up in {}", record.reference, record.tmux_target);
    Ok(Json(json!({
        "workItem": record.reference,
        "harness": record.harness,
        "harnessSessionId": record.harness_session_id,
        "exitCode": 0,
        "messages": [{"stream": "stdout", "text": text}],
    })))
}

#[utoipa::path(
    post,  operation_id = "sessionsClose", path = "/api/v1/sessions/close", tag = "sessions", summary = "End a session; the next start is a fresh conversation", request_body = CloseBody,
    responses((status = 200, description = "End a session; the next start is a fresh conversation", body = Object), Refused)
)]
pub(super) async fn close(State(host): State<TheLoop>, caller: Caller, body: Body) -> Result<Json<Value>, ApiError> {
    let reference = body.text("ref")?;
    let closed = host.close(caller.surface, &caller.actor, reference, body.flag("keepTmux")?).await?;
    let text = if closed {
        format!("{reference}: closed; the next start is a fresh conversation")
    } else {
        format!("{reference}: there is no session to close")
    };
    Ok(Json(json!({
        "workItem": reference,
        "closed": closed,
        "exitCode": u8::from(!closed),
        "messages": [{"stream": if closed { "stdout" } else { "stderr" }, "text": text}],
    })))
}

#[utoipa::path(
    post, operation_id = "sessionsLinkPr", path = "/api/v1/sessions/link-pr", tag = "sessions", summary = "Link a pull request to an item's session", request_body = LinkBody,
    responses((status = 200, description = "Link a pull request to an item's session", body = Object), Refused)
)]
pub(super) async fn link_pr(State(host): State<TheLoop>, caller: Caller, body: Body) -> Result<Json<Value>, ApiError> {
    let (reference, pull_request) = (body.text("ref")?, body.text("pullRequest")?);
    let (pull_request, new) = host.link_pull_request(caller.surface, &caller.actor, reference, pull_request).await?;
    let text = if new {
        format!("{reference}: {pull_request} is linked; its events go to the session of {reference}")
    } else {
        format!("{reference}: {pull_request} was linked already")
    };
    Ok(Json(json!({
        "workItem": reference,
        "pullRequest": pull_request,
        "linked": true,
        "exitCode": 0,
        "messages": [{"stream": "stdout", "text": text}],
    })))
}

#[utoipa::path(
    post,  operation_id = "sessionsReset", path = "/api/v1/sessions/reset", tag = "sessions", summary = "Forget what this machine knows of an item", request_body = ResetBody,
    responses((status = 200, description = "Forget what this machine knows of an item", body = Object), Refused)
)]
pub(super) async fn reset(State(host): State<TheLoop>, caller: Caller, body: Body) -> Result<Json<Value>, ApiError> {
    let reference = body.text("ref")?;
    let dry = body.flag("dryRun")?.unwrap_or(false);
    let discard_work = body.flag("discardWork")?.unwrap_or(false);
    let removed = if dry {
        host.reset_preview(reference).await?
    } else {
        host.reset(caller.surface, &caller.actor, reference, discard_work).await?
    };
    let text = reset_text(reference, &removed, dry);
    Ok(Json(
        json!({"workItem": reference, "removed": removed, "exitCode": 0, "messages": [{"stream": "stdout", "text": text}]}),
    ))
}

/// A command.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "read by the document alone")]
struct ControlBody {
    /// The item's ref.
    #[schema(rename = "ref")]
    reference: String,
    /// Which of the five.
    verb: Command,
    /// Post the keyword to the ticket.
    #[schema(default = true)]
    comment: Option<bool>,
    /// Let a cleanup remove a checkout that holds work which is nowhere else.
    #[schema(default = false)]
    discard_work: Option<bool>,
}

/// An answer.
#[derive(ToSchema)]
#[expect(dead_code, reason = "read by the document alone")]
struct ReplyBody {
    /// The ref of the item, or of a pull request that delivers it.
    #[schema(rename = "ref")]
    reference: String,
    /// What is said.
    text: String,
    /// Who says it; the caller, if empty.
    #[schema(default = "")]
    actor: Option<String>,
    /// Tell the ticket of it.
    #[schema(default = true)]
    comment: Option<bool>,
}

/// A conversation to take over.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "read by the document alone")]
struct RegisterBody {
    /// The item's ref.
    #[schema(rename = "ref")]
    reference: String,
    /// The harness.
    harness: String,
    /// The harness's conversation id.
    harness_session_id: String,
    /// The folder it works in.
    #[schema(default = ".")]
    cwd: Option<String>,
    /// Replace a registered conversation.
    #[schema(default = false)]
    force: Option<bool>,
}

/// A session to end.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "read by the document alone")]
struct CloseBody {
    /// The item's ref.
    #[schema(rename = "ref")]
    reference: String,
    /// Keep the terminal for reading; as the config says, if left out.
    keep_tmux: Option<bool>,
}

/// A pull request to link.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "read by the document alone")]
struct LinkBody {
    /// The item's ref.
    #[schema(rename = "ref")]
    reference: String,
    /// The pull request: its ref, or its number in the item's repository.
    pull_request: String,
}

/// An item to forget.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "read by the document alone")]
struct ResetBody {
    /// The item's ref.
    #[schema(rename = "ref")]
    reference: String,
    /// Say what would be removed, and remove nothing.
    #[schema(default = false)]
    dry_run: Option<bool>,
    /// Remove a checkout although it holds work that is nowhere else.
    #[schema(default = false)]
    discard_work: Option<bool>,
}
