//! Routes about work items.

use axum::{Json, extract::State};

use super::{document::Refused, error::ApiError, extract::Query};
use crate::{TheLoop, sessions::operations::WorkItemRow};

#[utoipa::path(
    get,  operation_id = "workItems", path = "/api/v1/work-items", tag = "work items", summary = "Every work item that has a record",
    responses((status = 200, description = "Every work item that has a record", body = Vec<WorkItemRow>), Refused)
)]
pub(super) async fn list(State(host): State<TheLoop>) -> Json<Vec<WorkItemRow>> {
    Json(host.work_items())
}

#[utoipa::path(
    get,  operation_id = "workItemsOne", path = "/api/v1/work-items/one", tag = "work items", summary = "One work item",
    params(("ref" = String, Query, description = "The ref, such as github:octo/repo#15")),
    responses((status = 200, description = "One work item", body = WorkItemRow), Refused)
)]
pub(super) async fn one(State(host): State<TheLoop>, query: Query) -> Result<Json<WorkItemRow>, ApiError> {
    Ok(Json(host.work_item(query.required("ref")?)?))
}
