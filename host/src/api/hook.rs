//! What the host's socket alone takes: what harnesses' hooks hand over (HAR-2), and the questions of agents whose tracker only
//! the host can write to (ASK-4). The socket's file mode is the boundary.

use axum::{
    Json, Router,
    body::Bytes,
    extract::{DefaultBodyLimit, State},
    routing::post,
};
use http::StatusCode;
use the_loop_plugin_api::tracker::Posted;

use super::error::ApiError;
use crate::{TheLoop, ask, hooks::MAX_PAYLOAD, sessions::signals::HookPayload};

/// Routes that the host's socket has beside the API's, as method and path.
pub const SOCKET_ROUTES: [(&str, &str); 2] = [("POST", "/ask"), ("POST", "/hook")];

/// The API of a host with the routes that only its socket has. What harnesses say of themselves all day is no operation and
/// not in the event log.
pub fn inside(host: TheLoop) -> Router {
    let own =
        Router::new().route("/ask", post(ask)).route("/hook", post(take)).layer(DefaultBodyLimit::max(2 * MAX_PAYLOAD));
    super::router(host.clone()).merge(own.with_state(host))
}

async fn ask(State(host): State<TheLoop>, body: Bytes) -> Result<Json<Posted>, ApiError> {
    let wrong = |message: String| ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid-request", message);
    let value: serde_json::Value = serde_json::from_slice(&body).map_err(|error| wrong(error.to_string()))?;
    let question = ask::from_json(&value).map_err(wrong)?;
    let posted = host.post_question(question).await;
    posted.map(Json).map_err(|error| ApiError::new(StatusCode::BAD_GATEWAY, "not-posted", error))
}

async fn take(State(host): State<TheLoop>, body: Bytes) -> Result<StatusCode, ApiError> {
    let hook: HookPayload = serde_json::from_slice(&body)
        .map_err(|error| ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid-request", error.to_string()))?;
    // A hook of a spawn that is no more is late, and that is nobody's fault.
    host.hook(hook).await;
    Ok(StatusCode::NO_CONTENT)
}
