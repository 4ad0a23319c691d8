//! The narrow context a plugin is built with, and its one way into the host.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use async_trait::async_trait;
use secrecy::SecretString;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use tokio_util::sync::CancellationToken;

use crate::{clock::Clock, event::InboundEvent, ids::EventId, registry::HostKey};

/// The one way in (ARC-4). Whatever a plugin learns of the outside world goes through here, and nothing that it says acts
/// before the host's admission has judged it.
#[async_trait]
pub trait InboundSink: Send + Sync {
    /// Hands an event over. `Ok` means that it is durable, so the source may acknowledge it upstream (REL-1); it says
    /// nothing about whether it will act.
    ///
    /// # Errors
    /// [`Refused`] means that nothing was kept: the source must not acknowledge.
    async fn submit(&self, event: InboundEvent) -> Result<Accepted, Refused>;

    /// Records a fact about something that did not become an event.
    fn note(&self, note: IngressNote);
}

/// Proof that an event is durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// The inbox's id of it.
    pub event: EventId,
}

/// Why an event was not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// A bound is reached (REL-7); try again later.
    #[error("the inbox is full ({pending} events wait); try again later")]
    Overloaded {
        /// How many events wait.
        pending: u64,
    },
    /// The event is larger than an inbox row may be.
    #[error("the event has {size} bytes; the limit is {limit}")]
    TooLarge {
        /// Its size, in bytes.
        size: usize,
        /// The limit, in bytes.
        limit: usize,
    },
    /// It could not be written down.
    #[error("the event could not be recorded: {reason}")]
    NotRecorded {
        /// What went wrong.
        reason: String,
    },
    /// The host is stopping.
    #[error("the host is stopping")]
    Stopping,
}

/// A fact about input that did not become an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IngressNote {
    /// What became of it.
    pub outcome: NoteOutcome,
    /// The upstream's word for the event, where it could be read.
    pub event: Option<String>,
    /// The upstream's delivery id, where it could be read.
    pub delivery_id: Option<String>,
}

/// What became of input that is no event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NoteOutcome {
    /// Refused: the signature does not fit the bytes.
    InvalidSignature,
    /// Refused: there is no signature and one is required.
    Unsigned,
    /// Refused: the body cannot be read as what it says it is.
    InvalidPayload,
    /// Refused: the body is over the limit.
    TooLarge,
    /// Taken and ignored: an event kind that is not acted on.
    Ignored,
}

/// Reads the secrets that a plugin's own config names. Values are read at call time and never kept (SEC-4).
#[async_trait]
pub trait SecretSource: Send + Sync {
    /// The value of the environment variable `name`, if it is set and not empty.
    fn read(&self, name: &str) -> Option<SecretString>;

    /// What `program` prints when it is run with `arguments`; `None` where there is no such program.
    ///
    /// # Errors
    /// When it cannot be run, does not end soon, or fails: in words, without what it printed.
    async fn ask(&self, program: &str, arguments: &[&str]) -> Result<Option<SecretString>, String> {
        let _ = (program, arguments);
        Ok(None)
    }
}

/// What a plugin is built with, and all that it gets.
#[derive(Clone)]
pub struct PluginContext {
    name: &'static str,
    config: serde_json::Value,
    folder: PathBuf,
    sink: Arc<dyn InboundSink>,
    secrets: Arc<dyn SecretSource>,
    clock: Arc<dyn Clock>,
    stop: CancellationToken,
}

/// The parts of a [`PluginContext`], named so that the host cannot mix them up.
pub struct ContextParts {
    /// The plugin's registered name.
    pub name: &'static str,
    /// The part of the config that its fragment describes.
    pub config: serde_json::Value,
    /// A folder of its own.
    pub folder: PathBuf,
    /// Its way in.
    pub sink: Arc<dyn InboundSink>,
    /// Its secrets.
    pub secrets: Arc<dyn SecretSource>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Cancelled when the host stops.
    pub stop: CancellationToken,
}

/// A plugin's config that its own type does not accept.
#[derive(Debug, thiserror::Error)]
#[error("the config of plugin {plugin} cannot be read")]
pub struct ContextError {
    plugin: &'static str,
    source: serde_json::Error,
}

impl PluginContext {
    /// Only the host, which holds the key, makes contexts.
    #[must_use]
    pub fn new(_key: &HostKey, parts: ContextParts) -> Self {
        let ContextParts { name, config, folder, sink, secrets, clock, stop } = parts;
        Self { name, config, folder, sink, secrets, clock, stop }
    }

    /// The plugin's registered name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The plugin's own part of the config.
    ///
    /// # Errors
    /// When `T` does not accept what the plugin's schema let through.
    pub fn config<T: DeserializeOwned>(&self) -> Result<T, ContextError> {
        T::deserialize(&self.config).map_err(|source| ContextError { plugin: self.name, source })
    }

    /// A folder of the plugin's own, which exists and only its owner may read.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The plugin's one way in.
    #[must_use]
    pub fn sink(&self) -> Arc<dyn InboundSink> {
        Arc::clone(&self.sink)
    }

    /// The value of an environment variable that a `…Env` key of the plugin's own config names; any other is refused.
    #[must_use]
    pub fn secret(&self, variable: &str) -> Option<SecretString> {
        names(&self.config, "Env", variable).then(|| self.secrets.read(variable)).flatten()
    }

    /// What a program that a `binary` key of the plugin's own config names prints as its secret, such as a command-line tool
    /// that is logged in; any other program is refused. `None` where there is no such program. The host runs it.
    ///
    /// # Errors
    /// When it fails: in words, without what it printed.
    pub async fn secret_of_program(&self, program: &str, arguments: &[&str]) -> Result<Option<SecretString>, String> {
        if !names(&self.config, "binary", program) {
            return Ok(None);
        }
        self.secrets.ask(program, arguments).await
    }

    /// Time.
    #[must_use]
    pub fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.clock)
    }

    /// Cancelled when the host stops.
    #[must_use]
    pub fn stop(&self) -> CancellationToken {
        self.stop.clone()
    }
}

/// Whether a key anywhere in `config` that ends with `suffix` has `value`, alone or among several.
fn names(config: &serde_json::Value, suffix: &str, value: &str) -> bool {
    match config {
        serde_json::Value::Object(map) => map.iter().any(|(key, held)| {
            let named = key.ends_with(suffix)
                && match held {
                    serde_json::Value::String(name) => name == value,
                    serde_json::Value::Array(names) => names.iter().any(|name| name == value),
                    _ => false,
                };
            named || names(held, suffix, value)
        }),
        serde_json::Value::Array(items) => items.iter().any(|item| names(item, suffix, value)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::names;

    #[test]
    fn only_what_the_own_config_names_is_a_secret_of_the_plugin() {
        let config = json!({"secretEnv": "A", "api": {"tokenEnv": ["B", "C"]}, "note": "D", "cli": {"binary": "gh"}});
        for named in ["A", "B", "C"] {
            assert!(names(&config, "Env", named));
        }
        assert!(!names(&config, "Env", "D") && !names(&config, "Env", "HOME") && !names(&config, "Env", "gh"));
        assert!(names(&config, "binary", "gh") && !names(&config, "binary", "sh"));
    }
}
