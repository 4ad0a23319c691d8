//! The host's socket alone takes what harnesses' hooks hand over (HAR-2): its file mode is the boundary.

use axum::{
    Router,
    body::Bytes,
    extract::{DefaultBodyLimit, State},
    routing::post,
};
use http::StatusCode;

use super::error::ApiError;
use crate::{TheLoop, hooks::MAX_PAYLOAD, sessions::signals::HookPayload};

/// Routes that the host's socket has beside the API's, as method and path.
pub const SOCKET_ROUTES: [(&str, &str); 1] = [("POST", "/hook")];

/// The API of a host with the routes that only its socket has. What harnesses say of themselves all day is no operation and
/// not in the event log.
pub fn inside(host: TheLoop) -> Router {
    let hook = Router::new().route("/hook", post(take)).layer(DefaultBodyLimit::max(2 * MAX_PAYLOAD));
    super::router(host.clone()).merge(hook.with_state(host))
}

async fn take(State(host): State<TheLoop>, body: Bytes) -> Result<StatusCode, ApiError> {
    let hook: HookPayload = serde_json::from_slice(&body)
        .map_err(|error| ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid-request", error.to_string()))?;
    // A hook of a spawn that is no more is late, and that is nobody's fault.
    host.hook(hook).await;
    Ok(StatusCode::NO_CONTENT)
}
