//! What waits for a person.

use axum::{Json, extract::State};
use http::StatusCode;

use super::error::ApiError;
use crate::{TheLoop, attention::AttentionRow};

pub(super) async fn list(State(host): State<TheLoop>) -> Result<Json<Vec<AttentionRow>>, ApiError> {
    let rows = host.attention().await;
    rows.map(Json).map_err(|error| ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "log-unreadable", error))
}
