//! The host as one value: opened once, run as a service or called in process.

mod alone;
mod http;
mod ingress;
mod run;
mod secrets;
mod sink;
pub mod status;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use the_loop_plugin_api::{Tracker, WorkItemRef, channel::Finding, runner::RunnerDescription};
use tokio::sync::{Semaphore, broadcast};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

pub use self::{
    run::{Ready, RunError},
    status::{ServiceRow, Status},
};
use crate::{
    admission::{Admission, Deciding},
    clock::SystemClock,
    config::{self, ConfigError, ConfigWatch, LoadOptions, Loaded, Reload},
    db::{Db, DbError},
    dispatch::Dispatch,
    eventlog::{Event, EventLog, EventLogError, EventType, Level, LogOptions},
    plugins::{Linked, Plugins, PluginsError, Surroundings},
    sessions::{core::Core, registry::Registry, signals::Signals, surroundings::check_start},
    state::{SessionRecord, SessionStatus, StateError, StateRoot, Store},
    workspace::Turns,
};

/// How many receipts whoever waits for one may be behind before the database is asked instead.
const SETTLED: usize = 256;

/// What an opening needs to be told, since the library reads neither home nor environment.
#[derive(Clone, Debug)]
pub struct OpenOptions {
    /// The config that was named explicitly.
    pub config: Option<PathBuf>,
    /// The folder that relative paths start from where there is no config file.
    pub cwd: PathBuf,
    /// The environment, read once.
    pub environment: Vec<(String, String)>,
    /// This program, for the launcher that runs inside a terminal.
    pub program: PathBuf,
    /// The `source` of this process's records in the event log.
    pub source: &'static str,
}

impl OpenOptions {
    /// A variable of the environment.
    #[must_use]
    pub fn variable(&self, name: &str) -> Option<&str> {
        self.environment.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

/// Why the host could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The config is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The state root is wrong.
    #[error(transparent)]
    State(#[from] StateError),
    /// The database is wrong.
    #[error(transparent)]
    Db(#[from] DbError),
    /// The event log is wrong.
    #[error(transparent)]
    Log(#[from] EventLogError),
    /// A plugin is wrong.
    #[error(transparent)]
    Plugins(#[from] PluginsError),
    /// A session of one host was given the config of another.
    #[error(
        "this is a session of the host with the state root {}, but {} names the state root {}; nothing was asked: leave --config out and THE_LOOP_CLI_CONFIG as the session has it",
        session.display(), path.as_deref().unwrap_or(Path::new("the config")).display(), root.display()
    )]
    OtherRoot {
        /// The state root of the session's host.
        session: PathBuf,
        /// The one that the config names.
        root: PathBuf,
        /// The config.
        path: Option<PathBuf>,
    },
    /// Their registry cannot be claimed.
    #[error(transparent)]
    Claim(#[from] the_loop_plugin_api::registry::ClaimError),
}

/// Where everything is, without touching it.
#[derive(Debug)]
pub struct Setup {
    /// The operator's config.
    pub loaded: Loaded,
    /// The state root.
    pub root: PathBuf,
    /// The event log.
    pub log_path: PathBuf,
    /// The config file, where there is one.
    pub path: Option<PathBuf>,
    /// How it is loaded.
    pub load: LoadOptions,
}

impl Setup {
    /// Finds and reads the config (CFG-1).
    ///
    /// # Errors
    /// When it does not validate.
    pub fn read(options: &OpenOptions) -> Result<Self, OpenError> {
        let named = options.variable("THE_LOOP_CLI_CONFIG").map(std::ffi::OsStr::new);
        let home = options.variable("HOME").map(Path::new);
        let session = options.variable("THE_LOOP_STATE_ROOT").map(Path::new);
        // A session of a host that has no config file runs on the defaults too: what its checkout holds, or its home, is
        // another config, of another state root.
        let path = match session {
            Some(_) if options.config.is_none() && named.is_none() => None,
            _ => config::discover(options.config.as_deref(), named, &options.cwd, home),
        };
        let load = LoadOptions {
            cwd: options.cwd.clone(),
            home: home.map(Path::to_owned),
            fragments: crate::plugins::fragments()?,
        };
        let mut loaded = config::load_with(path.as_deref(), &load)?;
        if let (Some(session), None) = (session, &path) {
            loaded.config.state.root = session.to_owned();
        }
        let root = loaded.state_root();
        Ok(Self { root, log_path: loaded.event_log_path(), loaded, path, load })
    }
}

impl Setup {
    /// Whether this is the config of the host whose session the caller runs in, if it runs in one: an agent that spoke to
    /// another host would wait for ever.
    ///
    /// # Errors
    /// When it is the config of another host.
    pub fn check_session(&self, options: &OpenOptions) -> Result<(), OpenError> {
        match options.variable("THE_LOOP_STATE_ROOT").map(Path::new).filter(|session| !is_same(session, &self.root)) {
            None => Ok(()),
            Some(session) => Err(OpenError::OtherRoot {
                session: session.to_owned(),
                root: self.root.clone(),
                path: self.path.clone(),
            }),
        }
    }

    /// The state root of a config that does not validate, as far as its text tells: `stop` must work with a broken file.
    #[must_use]
    pub fn salvage_root(options: &OpenOptions) -> Option<PathBuf> {
        let named = options.variable("THE_LOOP_CLI_CONFIG").map(std::ffi::OsStr::new);
        let home = options.variable("HOME").map(Path::new);
        let path = config::discover(options.config.as_deref(), named, &options.cwd, home)?;
        let text = std::fs::read_to_string(&path).ok()?;
        let base = config::load(None, path.parent()?, &[]).ok()?;
        let state = text.split_once("state:").filter(|(before, _)| before.is_empty() || before.ends_with('\n'));
        let root = state.and_then(|(_, after)| after.split_once("root:")).map(|(_, value)| {
            let value = value.lines().next().unwrap_or_default();
            value.split(['}', ',', '#']).next().unwrap_or_default().trim().trim_matches(['"', '\'']).to_owned()
        });
        let folder = path.parent()?;
        let beside = if folder.ends_with(".the-loop") { folder.parent()? } else { folder };
        let root = root
            .filter(|root| !root.is_empty())
            .map_or_else(|| beside.join(&base.config.state.root), |root| beside.join(root));
        root.join("local/service.pid").exists().then_some(root)
    }
}

/// Whether two paths name one folder, as far as both are there.
fn is_same(left: &Path, right: &Path) -> bool {
    match (left.canonicalize(), right.canonicalize()) {
        (Ok(left), Ok(right)) => left == right,
        _ => left == right,
    }
}

/// The host. Cheap to clone: every clone is the same host.
#[derive(Clone)]
pub struct TheLoop {
    pub(crate) core: Arc<Core>,
    pub(crate) admission: Arc<Admission>,
    pub(crate) dispatch: Arc<Dispatch>,
    deciding: Arc<std::sync::Mutex<Option<Deciding>>>,
    ingress: Arc<ingress::Board>,
    options: Arc<OpenOptions>,
}

impl TheLoop {
    /// Opens the host: config, state root, event log, database, records, plugins. Nothing runs and nothing is bound.
    ///
    /// # Errors
    /// When one of them is wrong; the error names it and the way out.
    pub async fn open(options: OpenOptions) -> Result<Self, OpenError> {
        let Setup { loaded, root, log_path, path, load } = Setup::read(&options)?;
        let opened = tokio::task::spawn_blocking(move || {
            let root = StateRoot::open(&root)?;
            let db = Db::open(&root.db())?;
            let registry = Registry::load(Store::new(root.local()), Store::new(root.portable()))?;
            Ok::<_, OpenError>((root, db, registry))
        });
        let (root, db, registry) = match opened.await {
            Ok(opened) => opened?,
            Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
        };
        let limits = &loaded.config.event_log;
        let log = EventLog::open(LogOptions {
            path: log_path,
            source: options.source.to_owned(),
            max_bytes: limits.max_bytes,
            keep: limits.keep,
            enabled: limits.enabled,
        })?;
        sink::record_set_aside(&log, registry.damaged());
        let (root, registry) = (Arc::new(root), Arc::new(registry));
        let stop = CancellationToken::new();
        let clock = Arc::new(SystemClock);
        let watch = ConfigWatch::start(path.as_deref(), &load)?;
        let (told, file) = (log.clone(), path.clone().unwrap_or_default());
        let config = Arc::new(watch.observed_by(move |reload| tell_reload(&told, &file, reload)));
        let (admission, deciding) =
            Admission::new(Arc::clone(&config), db.clone(), log.clone(), Arc::clone(&registry)).await?;
        let loaded = config.current();
        let plugins = Plugins::build(&Surroundings {
            config: &loaded,
            root: &root,
            sink: Arc::new(sink::HostSink::new(Arc::clone(&admission), log.clone(), stop.clone())),
            secrets: Arc::new(secrets::Secrets(options.environment.clone())),
            clock: clock.clone(),
            stop: stop.clone(),
        })?;
        let core = Arc::new(Core {
            permits: Semaphore::new(loaded.config.routing.max_concurrent_dispatches.max(1) as usize),
            config,
            db,
            log,
            registry,
            root,
            plugins: Arc::new(plugins),
            clock,
            program: options.program.clone(),
            environment: options.environment.clone(),
            tasks: TaskTracker::new(),
            stop,
            signals: Signals::default(),
            board: Arc::default(),
            settled: broadcast::channel(SETTLED).0,
            turns: Turns::default(),
            waiting: std::sync::Mutex::default(),
        });
        Ok(Self {
            dispatch: Dispatch::new(Arc::clone(&core)),
            ingress: Arc::new(ingress::Board::default()),
            core,
            admission,
            deciding: Arc::new(std::sync::Mutex::new(Some(deciding))),
            options: Arc::new(options),
        })
    }

    /// The operator's config, as it is now.
    #[must_use]
    pub fn loaded(&self) -> Arc<Loaded> {
        self.core.config.current()
    }

    /// The event log.
    #[must_use]
    pub fn log(&self) -> &EventLog {
        &self.core.log
    }

    /// What is linked.
    #[must_use]
    pub fn plugins(&self) -> Vec<Linked> {
        self.core.plugins.linked()
    }

    /// The tracker whose desk makes refs of `provider`, or the only one there is (GHT-4).
    #[must_use]
    pub fn desk(&self, provider: Option<&str>) -> Option<Arc<dyn Tracker>> {
        self.core.plugins.desks().find(|tracker| match (provider, tracker.desk()) {
            (Some(wanted), Some(desk)) => desk.provider() == wanted,
            (None, desk) => desk.is_some(),
            (Some(_), None) => false,
        })
    }

    /// The state root.
    #[must_use]
    pub fn root(&self) -> &StateRoot {
        &self.core.root
    }
}

/// Puts on record what became of a config file that changed (CFG-4): key paths, never values.
fn tell_reload(log: &EventLog, file: &Path, reload: &Reload) {
    let event = Event::new(EventType::ConfigReloaded).with("file", file.display().to_string());
    match reload {
        Reload::Unchanged => {}
        Reload::Reloaded(changes) => {
            let waits = match changes.restart.is_empty() {
                true => String::new(),
                false => format!("; in force after a restart: {}", changes.restart.join(", ")),
            };
            log.emit(event.with("changed", &changes.changed).with("detail", format!("it is in force{waits}")));
        }
        Reload::Broken(error) => {
            let detail = format!("it is not in force, the last good one is: {error}");
            log.emit(event.with("detail", detail).level(Level::Error));
        }
    }
}

/// Puts on record that the config was saved: key paths, never values. Works beside the service.
///
/// # Errors
/// When the log cannot be written.
pub fn record_update(setup: &Setup, file: &Path, changed: &[String], actor: &str) -> Result<(), EventLogError> {
    let limits = &setup.loaded.config.event_log;
    let log = EventLog::open(LogOptions {
        path: setup.log_path.clone(),
        source: "config".to_owned(),
        // Only the host rotates.
        max_bytes: 0,
        keep: limits.keep,
        enabled: limits.enabled,
    })?;
    let event = Event::new(EventType::ConfigUpdated).with("file", file.display().to_string());
    log.append_blocking(event.with("changed", changed).with("actor", actor)).map(drop)
}

/// The tracker with a desk, on its files alone: nothing else of the host is opened (GHT-4).
///
/// # Errors
/// When config, state root or a plugin is wrong.
pub fn desk(options: &OpenOptions) -> Result<Option<Arc<dyn Tracker>>, OpenError> {
    Ok(in_process(options)?.1.desks().next())
}

/// What is found when everything that a session needs checks itself. Works without the service, and starts nothing.
///
/// # Errors
/// When config, state root or a plugin is wrong.
pub async fn check(options: &OpenOptions) -> Result<Vec<Finding>, OpenError> {
    let (loaded, (_, plugins)) = (Setup::read(options)?.loaded, in_process(options)?);
    let mut findings = check_start(&loaded, &plugins, &options.environment);
    let checking = plugins.trackers().map(|tracker| async move { tracker.doctor().await });
    findings.extend(futures::future::join_all(checking).await.concat());
    Ok(findings)
}

/// What the runner says of itself; `None` where none is linked. Works without the service.
///
/// # Errors
/// When config, state root or a plugin is wrong.
pub async fn describe_runner(options: &OpenOptions) -> Result<Option<(&'static str, RunnerDescription)>, OpenError> {
    match in_process(options)?.1.runner() {
        Some((name, runner)) => Ok(Some((name, runner.describe().await))),
        None => Ok(None),
    }
}

/// The command with which a person attaches to the session of an item. Works without the service, and is read-only for a
/// session that is closed.
///
/// # Errors
/// When the ref is malformed, there is no session for it, or config, state root or a plugin is wrong.
pub fn attach_command(options: &OpenOptions, reference: &str, read_only: bool) -> Result<Vec<String>, AttachError> {
    let item: WorkItemRef = reference.parse()?;
    let (root, plugins) = in_process(options)?;
    let record = Store::<SessionRecord>::new(root.local()).load(&item.slug()).map_err(OpenError::State)?;
    let record = record.ok_or(AttachError::NoSession(item))?;
    let (_, runner) = plugins.runner().ok_or(AttachError::NoRunner)?;
    Ok(runner.attach(&record.tmux_target, read_only || record.status == SessionStatus::Closed))
}

/// Why a person cannot attach.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// The ref is malformed.
    #[error(transparent)]
    Ref(#[from] the_loop_plugin_api::work_item::RefError),
    /// Something of the host is wrong.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// There is no session.
    #[error("there is no session for {0}; `the-loop sessions list` lists those there are")]
    NoSession(WorkItemRef),
    /// Nothing hosts sessions.
    #[error("no runner is linked; `the-loop plugins` lists what is")]
    NoRunner,
}

/// What is linked, with what it can do (ARC-3). The plugins are built over a folder of their own, so that asking makes no
/// state root.
///
/// # Errors
/// When the config or a plugin is wrong.
pub fn linked(options: &OpenOptions) -> Result<Vec<Linked>, OpenError> {
    let setup = Setup::read(options)?;
    let folder = tempfile::tempdir().map_err(|error| StateError::io("make", &std::env::temp_dir(), error))?;
    let root = StateRoot::open(&folder.path().join("state"))?;
    Ok(built(options, &setup.loaded, &root)?.linked())
}

/// State root and plugins for a verb that needs no service. Whatever a plugin submits is refused: nothing is running.
pub(crate) fn in_process(options: &OpenOptions) -> Result<(StateRoot, Plugins), OpenError> {
    let setup = Setup::read(options)?;
    let root = StateRoot::open(&setup.root)?;
    let plugins = built(options, &setup.loaded, &root)?;
    Ok((root, plugins))
}

fn built(options: &OpenOptions, loaded: &Loaded, root: &StateRoot) -> Result<Plugins, PluginsError> {
    Plugins::build(&Surroundings {
        config: loaded,
        root,
        sink: Arc::new(sink::Closed),
        secrets: Arc::new(secrets::Secrets(options.environment.clone())),
        clock: Arc::new(SystemClock),
        stop: CancellationToken::new(),
    })
}
