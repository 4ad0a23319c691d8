//! What waits for a person.

use axum::{Json, extract::State};
use http::StatusCode;

use super::{document::Refused, error::ApiError};
use crate::{TheLoop, attention::AttentionRow};

#[utoipa::path(
    get,  operation_id = "attention", path = "/api/v1/attention", tag = "people", summary = "What waits for a person, newest first",
    responses((status = 200, description = "What waits for a person, newest first", body = Vec<AttentionRow>), Refused)
)]
pub(super) async fn list(State(host): State<TheLoop>) -> Result<Json<Vec<AttentionRow>>, ApiError> {
    let rows = host.attention().await;
    rows.map(Json).map_err(|error| ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "log-unreadable", error))
}
