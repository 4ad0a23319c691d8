//! Routes about texts on their way into sessions.

use axum::{
    Json,
    extract::{Path, State},
};

use super::{error::ApiError, extract::Query};
use crate::{TheLoop, sessions::deliveries::DeliveryView};

pub(super) async fn list(State(host): State<TheLoop>, query: Query) -> Result<Json<Vec<DeliveryView>>, ApiError> {
    let text = |name: &str| query.one(name).filter(|text| !text.is_empty());
    let limit = query.number("limit", 50)?;
    Ok(Json(host.deliveries(text("target"), text("receipt"), limit).await?))
}

pub(super) async fn one(State(host): State<TheLoop>, Path(id): Path<String>) -> Result<Json<DeliveryView>, ApiError> {
    Ok(Json(host.delivery(&id).await?))
}
