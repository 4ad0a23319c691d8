//! Runs the event sources, each with its lock and its listener; one that cannot run never stops another (CLI-4, CLI-5).

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use the_loop_plugin_api::IngressSource;
use tokio::net::TcpListener;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{http, status::ServiceRow};
use crate::{
    eventlog::{Event, EventType},
    sessions::core::Core,
    state::InstanceLock,
};

/// How the sources are doing, by name.
#[derive(Default)]
pub(super) struct Board(Mutex<BTreeMap<&'static str, Standing>>);

#[derive(Clone, Default)]
struct Standing {
    bound: Option<SocketAddr>,
    problem: Option<String>,
    running: bool,
}

impl Board {
    fn set(&self, name: &'static str, change: impl FnOnce(&mut Standing)) {
        change(self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(name).or_default());
    }

    /// One row a source.
    pub(super) fn rows(&self, core: &Core) -> Vec<ServiceRow> {
        let standings = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        core.plugins
            .ingresses()
            .map(|(name, source)| {
                let standing = standings.get(name).cloned().unwrap_or_default();
                let health = source.health();
                let enabled = source.enabled();
                let problem = standing.problem.or(health.problem).filter(|_| enabled);
                ServiceRow {
                    name: name.to_owned(),
                    enabled,
                    running: standing.running && problem.is_none(),
                    pid: standing.running.then(std::process::id),
                    address: standing.bound.map(|address| address.to_string()),
                    detail: problem.unwrap_or(if enabled { health.detail } else { "not enabled".to_owned() }),
                }
            })
            .collect()
    }
}

/// Starts every enabled source. Its listener is bound when this returns, or its row says why not.
pub(super) async fn start(core: &Arc<Core>, board: &Arc<Board>, stop: &CancellationToken, tasks: &TaskTracker) {
    for (name, source) in core.plugins.ingresses().filter(|(_, source)| source.enabled()) {
        match prepare(core, name, &*source, board).await {
            Ok(prepared) => {
                board.set(name, |standing| standing.running = true);
                tasks.spawn(host(Arc::clone(core), Arc::clone(board), name, source, prepared, stop.clone()));
            }
            Err(problem) => {
                core.warn(name, &problem);
                board.set(name, |standing| standing.problem = Some(problem));
            }
        }
    }
}

struct Prepared {
    lock: InstanceLock,
    listener: Option<(TcpListener, axum::Router)>,
}

async fn prepare(
    core: &Core,
    name: &'static str,
    source: &dyn IngressSource,
    board: &Board,
) -> Result<Prepared, String> {
    for warning in source.check().map_err(|error| error.to_string())? {
        core.warn(name, warning);
    }
    let path = core.root.lock(name);
    let lock = tokio::task::spawn_blocking(move || InstanceLock::acquire(&path, std::process::id()))
        .await
        .map_err(|error| error.to_string())?;
    let lock = lock.map_err(|error| error.to_string())?;
    let listener = match source.listener() {
        None => None,
        Some(wanted) => {
            let (host, port) = (wanted.address.host, wanted.address.port);
            let bound = TcpListener::bind((host.as_str(), port)).await;
            let listener = bound.map_err(|error| {
                format!(
                    "{host}:{port} cannot be listened on: {error}; change the port in the config or end what holds it"
                )
            })?;
            let address = listener.local_addr().map_err(|error| error.to_string())?;
            board.set(name, |standing| standing.bound = Some(address));
            Some((listener, wanted.router))
        }
    };
    Ok(Prepared { lock, listener })
}

/// How long a source that failed waits before it is run again.
const AGAIN: Duration = Duration::from_secs(5);

async fn host(
    core: Arc<Core>,
    board: Arc<Board>,
    name: &'static str,
    source: Arc<dyn IngressSource>,
    prepared: Prepared,
    stop: CancellationToken,
) {
    let Prepared { lock, listener } = prepared;
    let serving = async {
        if let Some((listener, router)) = listener {
            let address = listener.local_addr().ok();
            core.log.emit(
                Event::new(EventType::ServerStarted)
                    .with("path", name)
                    .with_some("host", address.map(|address| address.ip().to_string()))
                    .with_some("port", address.map(|address| address.port())),
            );
            http::serve_tcp(listener, router, stop.clone()).await;
        }
    };
    let running = async {
        loop {
            match source.run().await {
                Ok(()) => return,
                Err(error) => {
                    core.warn(name, format!("{error}; it is run again in {} s", AGAIN.as_secs()));
                    board.set(name, |standing| standing.problem = Some(error.to_string()));
                }
            }
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(AGAIN) => board.set(name, |standing| standing.problem = None),
            }
        }
    };
    tokio::join!(serving, running);
    board.set(name, |standing| standing.running = false);
    drop(lock);
}
