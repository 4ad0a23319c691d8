//! REST over the host's socket and over TCP: every handler translates, none decides. Answers keep the predecessor's shapes,
//! status codes and field names, so that its clients work against this service.

mod attention;
mod boundary;
mod deliveries;
mod document;
mod error;
mod events;
mod extract;
mod hook;
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
    routing::get,
};
use http::StatusCode;
use utoipa::OpenApi as _;
use utoipa_axum::{router::OpenApiRouter, routes};

use self::error::ApiError;
pub use self::{
    boundary::{Boundary, boundary},
    document::{document, yaml},
    hook::{SOCKET_ROUTES, inside},
};
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
pub const ROUTES: [(&str, &str); 21] = [
    ("GET", "/api/docs"),
    ("GET", "/api/openapi.json"),
    ("GET", "/api/v1/attention"),
    ("GET", "/api/v1/daemons"),
    ("GET", "/api/v1/deliveries"),
    ("GET", "/api/v1/deliveries/{id}"),
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
    ("POST", "/api/v1/sessions/control"),
    ("POST", "/api/v1/sessions/link-pr"),
    ("POST", "/api/v1/sessions/register"),
    ("POST", "/api/v1/sessions/reply"),
    ("POST", "/api/v1/sessions/reset"),
];

/// The API of a host.
pub fn router(loop_: TheLoop) -> Router {
    documented()
        .split_for_parts()
        .0
        .route("/api/openapi.json", get(document::json))
        .route("/api/docs", get(document::page))
        .route_layer(middleware::from_fn(in_time))
        .route_layer(middleware::from_fn_with_state(loop_.clone(), recorded))
        .fallback(error::not_found)
        .method_not_allowed_fallback(error::method_not_allowed)
        .layer(axum::extract::DefaultBodyLimit::max(MAX_BODY))
        .with_state(loop_)
}

/// Every operation with its documentation: what is not here is neither served nor documented (API-1).
fn documented() -> OpenApiRouter<TheLoop> {
    OpenApiRouter::with_openapi(document::Document::openapi())
        .routes(routes!(host::health))
        .routes(routes!(host::status))
        .routes(routes!(host::daemons))
        .routes(routes!(host::plugins))
        .routes(routes!(work_items::list))
        .routes(routes!(work_items::one))
        .routes(routes!(sessions::list))
        .routes(routes!(sessions::one))
        .routes(routes!(sessions::control))
        .routes(routes!(sessions::reply))
        .routes(routes!(sessions::register))
        .routes(routes!(sessions::close))
        .routes(routes!(sessions::link_pr))
        .routes(routes!(sessions::reset))
        .routes(routes!(attention::list))
        .routes(routes!(deliveries::list))
        .routes(routes!(deliveries::one))
        .routes(routes!(events::list))
        .routes(routes!(events::types))
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
