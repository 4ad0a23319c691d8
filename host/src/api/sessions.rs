//! Routes about sessions.

use axum::{Json, extract::State};
use http::StatusCode;
use serde_json::{Value, json};

use super::{
    error::ApiError,
    extract::{Body, Caller, Query},
};
use crate::{
    TheLoop,
    sessions::operations::{ControlAnswer, RegisterRequest, SessionRow, reset_text},
    state::SessionStatus,
};

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

pub(super) async fn one(State(host): State<TheLoop>, query: Query) -> Result<Json<SessionRow>, ApiError> {
    Ok(Json(host.session(query.required("ref")?).await?))
}

pub(super) async fn control(
    State(host): State<TheLoop>,
    caller: Caller,
    body: Body,
) -> Result<Json<ControlAnswer>, ApiError> {
    let comment = body.flag("comment")?.unwrap_or(true);
    Ok(Json(host.control(caller.surface, &caller.actor, body.text("ref")?, body.text("verb")?, comment).await?))
}

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

pub(super) async fn reset(State(host): State<TheLoop>, caller: Caller, body: Body) -> Result<Json<Value>, ApiError> {
    let reference = body.text("ref")?;
    let dry = body.flag("dryRun")?.unwrap_or(false);
    let removed =
        if dry { host.reset_preview(reference)? } else { host.reset(caller.surface, &caller.actor, reference).await? };
    let text = reset_text(reference, &removed, dry);
    Ok(Json(
        json!({"workItem": reference, "removed": removed, "exitCode": 0, "messages": [{"stream": "stdout", "text": text}]}),
    ))
}
