//! The one file that links plugins (ARC-1), and the host's claim on their registry (ARC-3). A crate that is listed in
//! Cargo.toml and never named registers nothing, silently: each is named here.

#[cfg(feature = "claude-code")]
use the_loop_plugin_claude_code as _;
#[cfg(feature = "github")]
use the_loop_plugin_github as _;
#[cfg(feature = "local")]
use the_loop_plugin_local as _;
#[cfg(feature = "shell")]
use the_loop_plugin_shell as _;
#[cfg(feature = "tmux")]
use the_loop_plugin_tmux as _;

use std::{
    collections::BTreeMap,
    path::Path,
    sync::{Arc, OnceLock},
};

use serde::Serialize;
use the_loop_plugin_api::{
    Channel, Clock, Harness, InboundSink, IngressSource, PluginContext, Runner, Tracker, WorkItemRef,
    context::{ContextParts, SecretSource},
    harness::Capabilities,
    registry::{self, Claim, ClaimError, HarnessKind, HostKey, Kind, PluginError, Registration},
};
use tokio_util::sync::CancellationToken;

use crate::{
    config::{Fragment, Loaded},
    state::{StateError, StateRoot},
};

/// The registry, claimed once a process and shared by every host in it.
fn claimed() -> Result<&'static Claim, ClaimError> {
    static CLAIM: OnceLock<Result<Claim, ClaimError>> = OnceLock::new();
    CLAIM.get_or_init(registry::claim).as_ref().map_err(|error| *error)
}

/// Why the plugins could not be built.
#[derive(Debug, thiserror::Error)]
pub enum PluginsError {
    /// The registry is not ours, or two plugins have one name.
    #[error(transparent)]
    Claim(#[from] ClaimError),
    /// A plugin said no.
    #[error("the {kind} plugin {name} could not be built")]
    Build {
        /// Its kind.
        kind: &'static str,
        /// Its name.
        name: &'static str,
        /// Why.
        source: PluginError,
    },
    /// Its folder could not be made.
    #[error("the folder of plugin {name} could not be made")]
    Folder {
        /// Its name.
        name: &'static str,
        /// Why.
        source: StateError,
    },
}

/// The host's authority over plugins, for a test of what only the host can make.
#[cfg(test)]
pub(crate) fn key() -> Result<&'static HostKey, ClaimError> {
    claimed().map(|claim| &claim.key)
}

/// The config fragments of the linked plugins, for the schema.
///
/// # Errors
/// When the registry cannot be claimed.
pub fn fragments() -> Result<Vec<Fragment>, ClaimError> {
    let claim = claimed()?;
    let mut all = Vec::new();
    fn collect<K: Kind>(all: &mut Vec<Fragment>, of: &[Registration<K>]) {
        all.extend(
            of.iter()
                .map(|plugin| plugin.config())
                .filter(|fragment| !fragment.pointer().is_empty())
                .map(|fragment| Fragment { pointer: fragment.pointer(), schema: fragment.schema() }),
        );
    }
    collect(&mut all, &claim.harnesses);
    collect(&mut all, &claim.runners);
    collect(&mut all, &claim.channels);
    collect(&mut all, &claim.ingresses);
    collect(&mut all, &claim.trackers);
    all.sort_by_key(|fragment| fragment.pointer);
    all.dedup_by_key(|fragment| fragment.pointer);
    Ok(all)
}

/// What `the-loop plugins` shows of one plugin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct Linked {
    /// Its kind.
    pub kind: &'static str,
    /// Its name.
    pub name: &'static str,
    /// Its crate's version.
    pub version: &'static str,
    /// What it is.
    pub description: &'static str,
    /// What a harness can do.
    #[schema(value_type = Option<Object>)]
    pub capabilities: Option<Capabilities>,
}

/// What the plugins are built with.
pub struct Surroundings<'a> {
    /// The operator's config.
    pub config: &'a Loaded,
    /// The state root, for the plugins' own folders.
    pub root: &'a StateRoot,
    /// Their one way in.
    pub sink: Arc<dyn InboundSink>,
    /// Their secrets.
    pub secrets: Arc<dyn SecretSource>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Cancelled when the host stops.
    pub stop: CancellationToken,
}

/// The linked plugins, built.
pub struct Plugins {
    claim: &'static Claim,
    harnesses: BTreeMap<&'static str, Arc<dyn Harness>>,
    runners: BTreeMap<&'static str, Arc<dyn Runner>>,
    channels: BTreeMap<&'static str, Arc<dyn Channel>>,
    ingresses: BTreeMap<&'static str, Arc<dyn IngressSource>>,
    trackers: BTreeMap<&'static str, Arc<dyn Tracker>>,
}

impl Plugins {
    /// Builds every linked plugin.
    ///
    /// # Errors
    /// When one says no.
    pub fn build(around: &Surroundings<'_>) -> Result<Self, PluginsError> {
        let claim = claimed()?;
        Ok(Self {
            harnesses: build(&claim.key, &claim.harnesses, around)?,
            runners: build(&claim.key, &claim.runners, around)?,
            channels: build(&claim.key, &claim.channels, around)?,
            ingresses: build(&claim.key, &claim.ingresses, around)?,
            trackers: build(&claim.key, &claim.trackers, around)?,
            claim,
        })
    }

    /// The host's authority over them.
    pub(crate) fn key(&self) -> &'static HostKey {
        &self.claim.key
    }

    /// The harness of that name.
    #[must_use]
    pub fn harness(&self, name: &str) -> Option<Arc<dyn Harness>> {
        self.harnesses.get(name).cloned()
    }

    /// What hosts harness processes: the first runner by name.
    #[must_use]
    pub fn runner(&self) -> Option<(&'static str, Arc<dyn Runner>)> {
        self.runners.iter().next().map(|(name, runner)| (*name, Arc::clone(runner)))
    }

    /// The tracker behind an item.
    #[must_use]
    pub fn tracker(&self, item: &WorkItemRef) -> Option<Arc<dyn Tracker>> {
        self.trackers.values().find(|tracker| tracker.owns(item)).cloned()
    }

    /// The trackers, by name.
    pub fn trackers(&self) -> impl Iterator<Item = Arc<dyn Tracker>> {
        self.trackers.values().cloned()
    }

    /// The trackers that have a desk of their own (GHT-4).
    pub fn desks(&self) -> impl Iterator<Item = Arc<dyn Tracker>> {
        self.trackers.values().filter(|tracker| tracker.desk().is_some()).cloned()
    }

    /// The event sources, by name.
    pub fn ingresses(&self) -> impl Iterator<Item = (&'static str, Arc<dyn IngressSource>)> {
        self.ingresses.iter().map(|(name, source)| (*name, Arc::clone(source)))
    }

    /// Everything that is linked, by kind and name (ARC-3).
    #[must_use]
    pub fn linked(&self) -> Vec<Linked> {
        let mut all = list(self.claim);
        for linked in all.iter_mut().filter(|linked| linked.kind == HarnessKind::NAME) {
            linked.capabilities = self.harnesses.get(linked.name).map(|harness| harness.capabilities());
        }
        all
    }

    /// The channels, by name.
    pub fn channels(&self) -> impl Iterator<Item = (&'static str, Arc<dyn Channel>)> {
        self.channels.iter().map(|(name, channel)| (*name, Arc::clone(channel)))
    }
}

/// Everything that is linked, without building any of it.
///
/// # Errors
/// When the registry cannot be claimed.
pub fn linked() -> Result<Vec<Linked>, ClaimError> {
    claimed().map(list)
}

fn list(claim: &Claim) -> Vec<Linked> {
    fn of_kind<K: Kind>(of: &[Registration<K>]) -> impl Iterator<Item = Linked> {
        of.iter().map(|plugin| Linked {
            kind: K::NAME,
            name: plugin.name(),
            version: plugin.version(),
            description: plugin.description(),
            capabilities: None,
        })
    }
    let mut all: Vec<Linked> = of_kind(&claim.harnesses).collect();
    all.extend(of_kind(&claim.runners));
    all.extend(of_kind(&claim.channels));
    all.extend(of_kind(&claim.ingresses));
    all.extend(of_kind(&claim.trackers));
    all.sort_by_key(|linked| (linked.kind, linked.name));
    all
}

fn build<K: Kind>(
    key: &HostKey,
    registered: &'static [Registration<K>],
    around: &Surroundings<'_>,
) -> Result<BTreeMap<&'static str, Arc<K::Object>>, PluginsError> {
    let mut built = BTreeMap::new();
    for plugin in registered {
        let name = plugin.name();
        let pointer = plugin.config().pointer();
        let parts = ContextParts {
            name,
            config: if pointer.is_empty() { serde_json::Value::Null } else { around.config.fragment(pointer) },
            folder: folder(around.root, name)?,
            sink: Arc::clone(&around.sink),
            secrets: Arc::clone(&around.secrets),
            clock: Arc::clone(&around.clock),
            stop: around.stop.child_token(),
        };
        let object = plugin.build(key, PluginContext::new(key, parts)).map_err(|source| PluginsError::Build {
            kind: K::NAME,
            name,
            source,
        })?;
        built.insert(name, object);
    }
    Ok(built)
}

fn folder(root: &StateRoot, name: &'static str) -> Result<std::path::PathBuf, PluginsError> {
    root.plugin_folder(name)
        .map(|path: std::path::PathBuf| AsRef::<Path>::as_ref(&path).to_owned())
        .map_err(|source| PluginsError::Folder { name, source })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A crate that is listed and never named registers nothing, silently: the list is committed.
    #[test]
    fn arc_3_what_is_linked_is_the_committed_list() {
        let linked: Vec<String> =
            linked().unwrap().iter().map(|plugin| format!("{} {}", plugin.kind, plugin.name)).collect();
        let committed: Vec<&str> = include_str!("plugins.txt").lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(linked, committed, "change host/src/plugins.txt together with what is linked");
        let policy = include_str!("admission/policy.txt");
        for source in linked.iter().filter_map(|plugin| plugin.strip_prefix("ingress ")) {
            assert!(
                policy.contains(&format!("ingress | {source} | ")),
                "SEC-1: {source} is not in admission/policy.txt"
            );
        }
    }
}
