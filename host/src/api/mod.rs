//! REST over the host's socket and over TCP: every handler translates, none decides. Answers keep the predecessor's shapes,
//! status codes and field names, so that its clients work against this service.

mod boundary;
mod error;
mod events;
mod extract;
mod host;
mod sessions;
#[cfg(test)]
mod tests;
mod work_items;

use std::time::Duration;

use axum::{
    Router,
    extract::{MatchedPath, Request, State},
    middleware::{self, Next},
    response::Response,
    routing::{get, post},
};

use http::StatusCode;

pub use self::boundary::{Boundary, boundary};
use self::error::ApiError;
use crate::{
    TheLoop,
    eventlog::{Event, EventType},
};

/// The largest request body, in bytes (BND-3).
const MAX_BODY: usize = 2 << 20;
/// How long a request may take (BND-3): a graceful stop waits for its harness.
const LONGEST: Duration = Duration::from_secs(120);
/// The status on record of a request whose client left before its answer, as proxies write it.
const CLIENT_LEFT: u16 = 499;

/// Every route under `/api/v1`, as method and path, for the parity and policy tests: a route that is missing here is not
/// served.
pub const ROUTES: [(&str, &str); 15] = [
    ("GET", "/api/v1/daemons"),
    ("GET", "/api/v1/events"),
    ("GET", "/api/v1/events/types"),
    ("GET", "/api/v1/health"),
    ("GET", "/api/v1/plugins"),
    ("GET", "/api/v1/sessions"),
    ("GET", "/api/v1/sessions/one"),
    ("GET", "/api/v1/status"),
    ("GET", "/api/v1/work-items"),
    ("GET", "/api/v1/work-items/one"),
    ("POST", "/api/v1/sessions/close"),
    ("POST", "/api/v1/sessions/link-pr"),
    ("POST", "/api/v1/sessions/control"),
    ("POST", "/api/v1/sessions/register"),
    ("POST", "/api/v1/sessions/reset"),
];

/// The API of a host.
pub fn router(loop_: TheLoop) -> Router {
    Router::new()
        .route("/api/v1/health", get(host::health))
        .route("/api/v1/status", get(host::status))
        .route("/api/v1/daemons", get(host::daemons))
        .route("/api/v1/plugins", get(host::plugins))
        .route("/api/v1/work-items", get(work_items::list))
        .route("/api/v1/work-items/one", get(work_items::one))
        .route("/api/v1/sessions", get(sessions::list))
        .route("/api/v1/sessions/one", get(sessions::one))
        .route("/api/v1/sessions/control", post(sessions::control))
        .route("/api/v1/sessions/register", post(sessions::register))
        .route("/api/v1/sessions/close", post(sessions::close))
        .route("/api/v1/sessions/link-pr", post(sessions::link_pr))
        .route("/api/v1/sessions/reset", post(sessions::reset))
        .route("/api/v1/events", get(events::list))
        .route("/api/v1/events/types", get(events::types))
        .route_layer(middleware::from_fn(in_time))
        .route_layer(middleware::from_fn_with_state(loop_.clone(), recorded))
        .fallback(error::not_found)
        .method_not_allowed_fallback(error::method_not_allowed)
        .layer(axum::extract::DefaultBodyLimit::max(MAX_BODY))
        .with_state(loop_)
}

/// Bounds how long a request may take (BND-3). What was admitted by then is carried out all the same.
async fn in_time(request: Request, next: Next) -> Result<Response, ApiError> {
    tokio::time::timeout(LONGEST, next.run(request)).await.map_err(|_| {
        let message = format!("this took longer than {} s and goes on without you", LONGEST.as_secs());
        ApiError::new(StatusCode::GATEWAY_TIMEOUT, "timeout", message).hint("`the-loop events` says what becomes of it")
    })
}

/// Puts every operation in the event log, health excepted (API-4).
async fn recorded(State(host): State<TheLoop>, path: MatchedPath, request: Request, next: Next) -> Response {
    if path.as_str() == "/api/v1/health" {
        return next.run(request).await;
    }
    let operation = format!("{} {}", request.method(), path.as_str());
    let mut record = Record { host, operation, actor: extract::actor(request.headers()), status: CLIENT_LEFT };
    let response = next.run(request).await;
    record.status = response.status().as_u16();
    response
}

/// The record of an operation, written when it ends in any way: a client that does not wait for its answer is in the log too.
struct Record {
    host: TheLoop,
    operation: String,
    actor: String,
    status: u16,
}

impl Drop for Record {
    fn drop(&mut self) {
        let event = Event::new(EventType::ApiRequest).with("operation", &self.operation).with("status", self.status);
        self.host.log().emit(event.with("actor", &self.actor));
    }
}
