//! Routes about the host itself.

use axum::{Json, extract::State};
use serde_json::{Value, json};

use crate::{TheLoop, plugins::Linked, service::Status};

pub(super) async fn health() -> Json<Value> {
    Json(json!({"status": "ok", "version": env!("CARGO_PKG_VERSION")}))
}

pub(super) async fn status(State(host): State<TheLoop>) -> Json<Status> {
    Json(host.status().await)
}

pub(super) async fn plugins(State(host): State<TheLoop>) -> Json<Vec<Linked>> {
    Json(host.plugins())
}

/// One row a service, in the shape that existing clients read.
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
