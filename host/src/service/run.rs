//! Running the host: one process, one cancellation tree (ARC-8, CLI-5).

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use jiff::Timestamp;
use secrecy::SecretString;
use serde_json::json;
use tokio::{
    net::{TcpListener, UnixListener},
    signal::unix::{SignalKind, signal},
};
use tokio_util::task::TaskTracker;

use super::{TheLoop, http, ingress, status::ServiceRow};
use crate::{
    admission::policy::Policy,
    api,
    eventlog::{Event, EventType, Level},
    fanout, hooks,
    sessions::reconcile,
    state::{InstanceLock, LockError, SocketFolders, StateError, durable},
};

/// How often the config file is looked at while nothing else asks for it.
const CONFIG: Duration = Duration::from_secs(1);
/// How long sessions' tasks may take to finish what is in flight when the host stops.
const FINISH: Duration = Duration::from_secs(10);

/// How often a copy of the database is kept.
const SNAPSHOT: Duration = Duration::from_secs(3600);

/// The host runs.
#[derive(Debug)]
pub struct Ready {
    /// Where the API listens.
    pub api: Option<SocketAddr>,
    /// The host's socket.
    pub socket: PathBuf,
    /// One row a service.
    pub services: Vec<ServiceRow>,
}

/// Why the host does not run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// Another process runs on this state root.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// An address is taken.
    #[error("{address} cannot be listened on; change {key} in the config or end what holds it")]
    Bind {
        /// Which.
        address: String,
        /// The config key.
        key: &'static str,
        /// Why not.
        source: std::io::Error,
    },
    /// The config cannot be run.
    #[error("{0}")]
    Refused(String),
    /// A file could not be written.
    #[error(transparent)]
    State(#[from] StateError),
    /// Something the operating system refused.
    #[error("{what}")]
    System {
        /// What was tried.
        what: &'static str,
        /// Why not.
        source: std::io::Error,
    },
    /// It runs already, in this process.
    #[error("this host runs already")]
    AlreadyRunning,
}

/// The API's listener and what it asks of those who come.
struct Bound {
    listener: TcpListener,
    address: SocketAddr,
    boundary: api::Boundary,
}

impl TheLoop {
    /// Runs the host until SIGTERM or SIGINT, or until [`TheLoop::stop`]. `ready` is called when it is up.
    ///
    /// # Errors
    /// When the lock is held, an address is taken, or the config cannot be run.
    pub async fn run(self, ready: impl FnOnce(&Ready) + Send) -> Result<(), RunError> {
        let deciding = self
            .deciding
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .take()
            .ok_or(RunError::AlreadyRunning)?;
        let core = Arc::clone(&self.core);
        let loaded = core.config.current();
        let service = &loaded.config.service;
        let lock_path = core.root.lock("service");
        let lock =
            tokio::task::spawn_blocking(move || InstanceLock::acquire(&lock_path, std::process::id())).await.map_err(
                |error| RunError::System { what: "the lock could not be taken", source: std::io::Error::other(error) },
            )??;
        // SIGHUP ends a process that does not handle it; one that was started from a terminal outlives it.
        let mut hangup = handler(SignalKind::hangup())?;
        let mut terminate = handler(SignalKind::terminate())?;
        let mut interrupt = handler(SignalKind::interrupt())?;

        let bound = if service.enabled { Some(self.bind_api().await?) } else { None };
        let api_address = bound.as_ref().map(|bound| bound.address);
        let runtime = self.options.variable("XDG_RUNTIME_DIR").map(Path::new);
        let temporary = std::env::temp_dir();
        let socket = core.root.place_socket(SocketFolders { runtime, temporary: &temporary })?;
        let unix = bind_socket(&socket)?;
        self.write_service_file(api_address)?;

        let serving = TaskTracker::new();
        // First of all what harnesses said while nobody listened: it may name a dialog that is open.
        self.take_spooled().await;
        reconcile::take_up(&core, &self.admission, &self.dispatch).await;
        serving.spawn(deciding.run(Arc::clone(&self.dispatch), core.stop.clone()));
        for tracker in core.plugins.trackers() {
            serving.spawn(async move { tracker.run().await });
        }
        ingress::start(&core, &self.ingress, &core.stop, &serving).await;
        serving.spawn(fanout::run(Arc::clone(&core), core.stop.clone()));
        self.announce(api_address);
        // Answered only from here on, so that whoever gets an answer sees a host that is up; callers before wait.
        if let Some(Bound { listener, boundary, .. }) = bound {
            let bounded = api::boundary(api::router(self.clone()), boundary);
            serving.spawn(http::serve_tcp(listener, bounded, core.stop.clone()));
        }
        serving.spawn(http::serve_unix(unix, api::inside(self.clone()), core.stop.clone()));
        ready(&Ready { api: api_address, socket: socket.clone(), services: self.status().await.services });

        let mut snapshot = tokio::time::interval(SNAPSHOT);
        let mut spool = tokio::time::interval(hooks::LOOK);
        let mut config = tokio::time::interval(CONFIG);
        loop {
            tokio::select! {
                _ = snapshot.tick() => self.snapshot().await,
                _ = spool.tick() => self.take_spooled().await,
                // A change is told of although nothing comes in that would ask for the config; it costs one `stat`.
                _ = config.tick() => drop(core.config.current()),
                _ = hangup.recv() => {}
                _ = terminate.recv() => break,
                _ = interrupt.recv() => break,
                () = core.stop.cancelled() => break,
            }
        }
        // Stop taking work in, finish what is in flight, flush, leave: what is durable and unfinished goes on at the next
        // start.
        core.stop.cancel();
        serving.close();
        core.tasks.close();
        let finished = tokio::time::timeout(FINISH, async {
            serving.wait().await;
            core.tasks.wait().await;
        });
        if finished.await.is_err() {
            core.warn(
                "host",
                format!("work in flight did not end within {} s and goes on at the next start", FINISH.as_secs()),
            );
        }
        self.snapshot().await;
        core.log.emit(Event::new(EventType::ServerStopped));
        core.log.flush().await;
        // A socket that nobody serves would only make a client wait; the next start replaces it anyway.
        let _ = std::fs::remove_file(&socket);
        drop(lock);
        Ok(())
    }

    /// Keeps a good copy of the database, for the day that it is damaged (STA-5).
    async fn snapshot(&self) {
        if let Err(error) = self.core.db.snapshot().await {
            self.core.warn("host.db", format!("no snapshot could be made: {error}"));
        }
    }

    /// Makes [`TheLoop::run`] return.
    pub fn stop(&self) {
        self.core.stop.cancel();
    }

    /// When the service was started, where one runs.
    #[must_use]
    pub fn started_at(&self) -> Option<Timestamp> {
        let file = self.core.root.local().join("service.json");
        let written: serde_json::Value = serde_json::from_slice(&std::fs::read(file).ok()?).ok()?;
        written["startedAt"].as_str()?.parse().ok()
    }

    pub(super) fn service_row(&self) -> ServiceRow {
        let service = &self.core.config.current().config.service;
        let file = self.core.root.local().join("service.json");
        let written: Option<serde_json::Value> =
            std::fs::read(&file).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let text = |key: &str| written.as_ref().and_then(|value| value[key].as_str().map(str::to_owned));
        let holder = InstanceLock::holder(&self.core.root.lock("service"));
        ServiceRow {
            name: "service".to_owned(),
            enabled: true,
            running: holder.is_some(),
            pid: holder,
            address: holder.and_then(|_| text("address")),
            detail: match (holder, service.enabled) {
                (Some(_), true) => format!("since {}", text("startedAt").unwrap_or_default()),
                (Some(_), false) => "over its socket only (service.enabled: false)".to_owned(),
                (None, _) => "not running; `the-loop start` starts it".to_owned(),
            },
        }
    }

    async fn bind_api(&self) -> Result<Bound, RunError> {
        let loaded = self.core.config.current();
        let service = &loaded.config.service;
        let address = format!("{}:{}", service.host, service.port);
        let bind_error = |source| RunError::Bind { address: address.clone(), key: "service.port", source };
        let listener = TcpListener::bind((service.host.as_str(), service.port)).await.map_err(bind_error)?;
        let bound_to = listener.local_addr().map_err(bind_error)?;
        let boundary = api::Boundary::new(service, bound_to);
        if bound_to.ip().is_loopback() {
            return Ok(Bound { listener, address: bound_to, boundary });
        }
        if !service.exposed {
            return Err(RunError::Refused(format!(
                "{address} is not a loopback address; set service.exposed: true, and service.tokenEnv or service.behindGateway, or bind 127.0.0.1"
            )));
        }
        if service.token_env.is_empty() && !service.behind_gateway {
            return Err(RunError::Refused(format!(
                "{address} would be open to everyone who reaches it; set service.tokenEnv, or state service.behindGateway: true"
            )));
        }
        let boundary = match self.token(&service.token_env)? {
            Some(token) => boundary.with_token(token),
            None => boundary,
        };
        Ok(Bound { listener, address: bound_to, boundary })
    }

    /// The token that callers beyond loopback must present; where none is named, a gateway in front answers for them.
    fn token(&self, names: &[String]) -> Result<Option<SecretString>, RunError> {
        let set = |name: &String| self.options.variable(name).filter(|value| !value.is_empty());
        match names.iter().find_map(set) {
            Some(token) => Ok(Some(SecretString::from(token))),
            None if names.is_empty() => Ok(None),
            None => Err(RunError::Refused(format!(
                "service.tokenEnv names {}, which is not set; set it to the token that callers must present",
                names.join(", ")
            ))),
        }
    }

    fn write_service_file(&self, api: Option<SocketAddr>) -> Result<(), RunError> {
        let body = json!({
            "version": 1,
            "pid": std::process::id(),
            "port": api.map(|address| address.port()),
            "address": api.map(|address| address.to_string()),
            "startedAt": Timestamp::now(),
        });
        let path = self.core.root.local().join("service.json");
        durable::write(&path, body.to_string().as_bytes())
            .map_err(|source| RunError::System { what: "local/service.json could not be written", source })
    }

    fn announce(&self, api: Option<SocketAddr>) {
        let loaded = self.core.config.current();
        let policy = Policy::new(&loaded.config);
        let log = &self.core.log;
        log.emit(
            Event::new(EventType::ServerStarted)
                .with_some("host", api.map(|address| address.ip().to_string()))
                .with_some("port", api.map(|address| address.port()))
                .with("routing", policy.routing_enabled()),
        );
        let warn = |detail: &str| {
            log.emit(
                Event::new(EventType::HostWarning)
                    .with("subject", "config")
                    .with("detail", detail)
                    .level(Level::Warning),
            )
        };
        // ARM-1: those who come from label-alone must be able to see which of the two is in force.
        if policy.requires_start() {
            log.emit(Event::new(EventType::HostWarning).with("subject", "arming").with("detail", "a labelled item waits for an authorized start command (routing.control.requireStartCommand: true)").level(Level::Info));
        } else {
            warn("a label alone starts work (routing.control.requireStartCommand: false)");
        }
        for warning in &loaded.warnings {
            warn(&warning.to_string());
        }
    }
}

fn handler(kind: SignalKind) -> Result<tokio::signal::unix::Signal, RunError> {
    signal(kind).map_err(|source| RunError::System { what: "signals cannot be handled", source })
}

/// Binds the host's socket for its owner only. A file that an earlier process left is replaced: the lock says that nobody
/// serves it.
fn bind_socket(path: &std::path::Path) -> Result<UnixListener, RunError> {
    use std::os::unix::fs::PermissionsExt;
    let failed = |source| RunError::Bind { address: path.display().to_string(), key: "state.root", source };
    match std::fs::remove_file(path) {
        Ok(()) => {}
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(failed(error)),
    }
    let listener = UnixListener::bind(path).map_err(failed)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).map_err(failed)?;
    Ok(listener)
}
