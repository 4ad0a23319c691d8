//! Routes about work items.

use axum::{Json, extract::State};

use super::{error::ApiError, extract::Query};
use crate::{TheLoop, sessions::operations::WorkItemRow};

pub(super) async fn list(State(host): State<TheLoop>) -> Json<Vec<WorkItemRow>> {
    Json(host.work_items())
}

pub(super) async fn one(State(host): State<TheLoop>, query: Query) -> Result<Json<WorkItemRow>, ApiError> {
    Ok(Json(host.work_item(query.required("ref")?)?))
}
