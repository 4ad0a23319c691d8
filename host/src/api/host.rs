//! Routes about the host itself.

use axum::{Json, extract::State};
use serde_json::{Value, json};

use super::document::Refused;
use crate::{TheLoop, plugins::Linked, service::Status};

#[utoipa::path(
    get,  operation_id = "health", path = "/api/v1/health", tag = "host", summary = "Whether the service answers",
    responses((status = 200, description = "Whether the service answers", body = Object), Refused)
)]
pub(super) async fn health() -> Json<Value> {
    Json(json!({"status": "ok", "version": env!("CARGO_PKG_VERSION")}))
}

#[utoipa::path(
    get,  operation_id = "status", path = "/api/v1/status", tag = "host", summary = "How the host is doing",
    responses((status = 200, description = "How the host is doing", body = Status), Refused)
)]
pub(super) async fn status(State(host): State<TheLoop>) -> Json<Status> {
    Json(host.status().await)
}

#[utoipa::path(
    get,  operation_id = "plugins", path = "/api/v1/plugins", tag = "host", summary = "What is linked",
    responses((status = 200, description = "What is linked", body = Vec<Linked>), Refused)
)]
pub(super) async fn plugins(State(host): State<TheLoop>) -> Json<Vec<Linked>> {
    Json(host.plugins())
}

/// One row a service, in the shape that existing clients read.
#[utoipa::path(
    get,  operation_id = "daemons", path = "/api/v1/daemons", tag = "host", summary = "One row a service",
    responses((status = 200, description = "One row a service", body = Vec<Object>), Refused)
)]
pub(super) async fn daemons(State(host): State<TheLoop>) -> Json<Vec<Value>> {
    let status = host.status().await;
    let started = host.started_at().map(|at| at.to_string()).unwrap_or_default();
    let rows = status.services.into_iter().map(|row| {
        let pidfile = host.root().lock(&row.name);
        json!({
            "daemon": row.name,
            "running": row.running,
            "pid": row.pid,
            "pidfile": pidfile,
            "logfile": host.root().logs().join("service.out"),
            "startedAt": if row.running { started.as_str() } else { "" },
            "lastCycleAt": "",
            "detail": row.detail,
        })
    });
    Json(rows.collect())
}
