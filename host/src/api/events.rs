//! Routes about the event log.

use axum::{Json, extract::State};
use http::StatusCode;
use jiff::Timestamp;
use serde_json::{Map, Value};

use super::{document::Refused, error::ApiError, extract::Query};
use crate::{
    TheLoop,
    eventlog::{self, EventType, TypeGlob, parse_time},
};

/// The newest N, oldest first.
#[utoipa::path(
    get,  operation_id = "events", path = "/api/v1/events", tag = "events", summary = "The newest records that match, oldest first",
    params(
        ("type" = Option<Vec<String>>, Query, description = "Only these types; `*` and `?` match, and it may be given again"),
        ("workItem" = Option<String>, Query, description = "Only this work item"),
        ("standing" = Option<String>, Query, description = "Only this standing session"),
        ("deliveryId" = Option<String>, Query, description = "Only this delivery, ours or the upstream's"),
        ("loop" = Option<String>, Query, description = "Only this loop"),
        ("source" = Option<String>, Query, description = "Only from this source"),
        ("level" = Option<String>, Query, description = "Only of this level: debug, info, warning, error"),
        ("since" = Option<String>, Query, description = "At or after: an instant, or 2h; without zone it is UTC"),
        ("until" = Option<String>, Query, description = "At or before"),
        ("limit" = Option<u64>, Query, description = "The newest so many; 50 if left out"),
    ),
    responses((status = 200, description = "The newest records that match, oldest first", body = Vec<Object>), Refused)
)]
pub(super) async fn list(State(host): State<TheLoop>, query: Query) -> Result<Json<Vec<Value>>, ApiError> {
    let text = |name: &str| query.one(name).filter(|text| !text.is_empty()).map(str::to_owned);
    let bad = |code, message: String| ApiError::new(StatusCode::BAD_REQUEST, code, message);
    let time = |name: &str| match text(name) {
        None => Ok(None),
        Some(text) => parse_time(&text, Timestamp::now())
            .map(|time| Some(time.instant))
            .map_err(|error| bad("malformed-time", error.to_string())),
    };
    let level = text("level")
        .map(|level| level.parse().map_err(|error: eventlog::LevelError| bad("unknown-level", error.to_string())))
        .transpose()?;
    let wanted = eventlog::Query {
        types: query.all("type").iter().map(TypeGlob::new).collect(),
        work_item: text("workItem"),
        standing: text("standing"),
        delivery: text("deliveryId").or(text("delivery")),
        loop_: text("loop"),
        source: text("source"),
        level,
        since: time("since")?,
        until: time("until")?,
        limit: Some(query.number("limit", 50)?),
    };
    // What was emitted before the request is in the answer.
    host.log().flush().await;
    let path = host.loaded().event_log_path();
    let found = tokio::task::spawn_blocking(move || eventlog::query(&path, &wanted)).await;
    match found {
        Ok(Ok(found)) => Ok(Json(found.records)),
        Ok(Err(error)) => Err(ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "log-unreadable", error.to_string())),
        Err(error) => Err(ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", error.to_string())),
    }
}

/// The catalog: each type and what it means (ATT-4).
#[utoipa::path(
    get,  operation_id = "eventsTypes", path = "/api/v1/events/types", tag = "events", summary = "Every type and what it means",
    responses((status = 200, description = "Every type and what it means", body = Object), Refused)
)]
pub(super) async fn types() -> Json<Value> {
    let types: Map<String, Value> =
        EventType::ALL.iter().map(|kind| (kind.name().to_owned(), kind.meaning().into())).collect();
    Json(Value::Object(types))
}
