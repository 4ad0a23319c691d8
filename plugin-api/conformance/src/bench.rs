//! What one plugin is built with: a folder, a config, secrets, a sink and a stop signal of its own.

use std::{
    collections::BTreeMap,
    path::Path,
    sync::{Arc, LazyLock},
    time::{Duration, Instant},
};

use async_trait::async_trait;
use jiff::Timestamp;
use secrecy::SecretString;
use tempfile::TempDir;
use the_loop_plugin_api::{Clock, InboundSink, context::SecretSource};
use tokio_util::sync::CancellationToken;

use crate::sink::RecordingSink;

/// The surroundings of a plugin under test. Two plugins built on one bench share its folder, as a tracker and an ingress
/// source of one name do in the host.
pub struct Bench {
    pub(crate) config: serde_json::Value,
    folder: Arc<TempDir>,
    secrets: BTreeMap<String, String>,
    programs: BTreeMap<String, String>,
    sink: Arc<RecordingSink>,
    stop: CancellationToken,
    patience: Duration,
}

impl Bench {
    /// A bench with this config for the plugin's own fragment, in a folder that goes away with it.
    ///
    /// # Panics
    /// When no temporary folder can be made.
    #[must_use]
    pub fn new(config: serde_json::Value) -> Self {
        let folder = tempfile::tempdir().unwrap_or_else(|error| panic!("a temporary folder is needed: {error}"));
        Self {
            config,
            folder: Arc::new(folder),
            secrets: BTreeMap::new(),
            programs: BTreeMap::new(),
            sink: Arc::new(RecordingSink::default()),
            stop: CancellationToken::new(),
            patience: Duration::from_secs(20),
        }
    }

    /// Gives the environment variable `name` a value, for a config whose `…Env` keys name it.
    #[must_use]
    pub fn with_secret(mut self, name: &str, value: &str) -> Self {
        self.secrets.insert(name.to_owned(), value.to_owned());
        self
    }

    /// Makes a program print a secret, for a config whose `binary` keys name it. `command` is the program with its arguments.
    #[must_use]
    pub fn with_program(mut self, command: &str, secret: &str) -> Self {
        self.programs.insert(command.to_owned(), secret.to_owned());
        self
    }

    /// How long the suites wait for one fact before they call it missing.
    #[must_use]
    pub fn with_patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// The same folder, config and secrets with a new sink and a new stop signal: the plugin after a restart of the host.
    #[must_use]
    pub fn restarted(&self) -> Self {
        Self {
            config: self.config.clone(),
            folder: Arc::clone(&self.folder),
            secrets: self.secrets.clone(),
            programs: self.programs.clone(),
            sink: Arc::new(RecordingSink::default()),
            stop: CancellationToken::new(),
            patience: self.patience,
        }
    }

    /// The plugin's folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// What the plugin submits to.
    #[must_use]
    pub fn sink(&self) -> &RecordingSink {
        &self.sink
    }

    /// Cancelled by [`Bench::stop`].
    #[must_use]
    pub fn stop_signal(&self) -> CancellationToken {
        self.stop.clone()
    }

    /// Stops the plugin, as a host that ends does.
    pub fn stop(&self) {
        self.stop.cancel();
    }

    pub(crate) fn patience(&self) -> Duration {
        self.patience
    }

    pub(crate) fn shared_sink(&self) -> Arc<dyn InboundSink> {
        Arc::clone(&self.sink) as Arc<dyn InboundSink>
    }

    pub(crate) fn secrets(&self) -> Arc<dyn SecretSource> {
        Arc::new(Secrets { variables: self.secrets.clone(), programs: self.programs.clone() })
    }

    pub(crate) fn secret_values(&self) -> impl Iterator<Item = &str> {
        self.secrets.values().map(String::as_str)
    }
}

struct Secrets {
    variables: BTreeMap<String, String>,
    programs: BTreeMap<String, String>,
}

#[async_trait]
impl SecretSource for Secrets {
    fn read(&self, name: &str) -> Option<SecretString> {
        self.variables.get(name).cloned().map(SecretString::from)
    }

    async fn ask(&self, program: &str, arguments: &[&str]) -> Result<Option<SecretString>, String> {
        let asked = std::iter::once(program).chain(arguments.iter().copied()).collect::<Vec<_>>().join(" ");
        Ok(self.programs.get(&asked).cloned().map(SecretString::from))
    }
}

/// Real time, on the runtime's timer, so that a test that pauses the runtime's clock owns it.
pub(crate) struct RuntimeClock;

#[async_trait]
impl Clock for RuntimeClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    fn since_boot(&self) -> Duration {
        static START: LazyLock<Instant> = LazyLock::new(Instant::now);
        START.elapsed()
    }

    fn boot_id(&self) -> String {
        format!("kit-{}", std::process::id())
    }

    async fn sleep(&self, span: Duration) {
        tokio::time::sleep(span).await;
    }
}
