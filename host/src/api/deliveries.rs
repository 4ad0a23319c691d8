//! Routes about texts on their way into sessions.

use axum::{
    Json,
    extract::{Path, State},
};

use super::{document::Refused, error::ApiError, extract::Query};
use crate::{TheLoop, db::Receipt, sessions::deliveries::DeliveryView};

#[utoipa::path(
    get,  operation_id = "deliveries", path = "/api/v1/deliveries", tag = "people", summary = "The newest texts for sessions, newest first",
    params(
        ("target" = Option<String>, Query, description = "Only those for this session: a work item's ref"),
        ("receipt" = Option<Receipt>, Query, description = "Only those that are so far"),
        ("limit" = Option<u64>, Query, description = "The newest so many; 50 if left out"),
    ),
    responses((status = 200, description = "The newest texts for sessions, newest first", body = Vec<DeliveryView>), Refused)
)]
pub(super) async fn list(State(host): State<TheLoop>, query: Query) -> Result<Json<Vec<DeliveryView>>, ApiError> {
    let text = |name: &str| query.one(name).filter(|text| !text.is_empty());
    let limit = query.number("limit", 50)?;
    Ok(Json(host.deliveries(text("target"), text("receipt"), limit).await?))
}

#[utoipa::path(
    get,  operation_id = "deliveriesId", path = "/api/v1/deliveries/{id}", tag = "people", summary = "One text, with every receipt",
    params(("id" = String, Path, description = "The delivery's id")),
    responses((status = 200, description = "One text, with every receipt", body = DeliveryView), Refused)
)]
pub(super) async fn one(State(host): State<TheLoop>, Path(id): Path<String>) -> Result<Json<DeliveryView>, ApiError> {
    Ok(Json(host.delivery(&id).await?))
}
