//! Registration of plugins: closed descriptors, claimed once a process (ARC-3).
//!
//! `inventory` alone is neither safe nor reliable. A descriptor that anyone can open would let one plugin drive another, so
//! its fields are private and its factory runs only with the [`HostKey`], which the first [`claim`] hands out and no later
//! one. Order of iteration is not defined and duplicates pass unnoticed, so the claim sorts and refuses duplicates.

use std::{
    fmt,
    sync::Arc,
    sync::atomic::{AtomicBool, Ordering},
};

use crate::{
    channel::Channel, context::PluginContext, harness::Harness, ingress::IngressSource, runner::Runner,
    tracker::Tracker,
};

mod sealed {
    pub trait Sealed {}
}

/// The kind of a descriptor: one a trait, and no others can be made.
pub trait Kind: sealed::Sealed + Send + Sync + 'static {
    /// What its factory makes.
    type Object: ?Sized + Send + Sync;
    /// The word for it.
    const NAME: &'static str;
}

macro_rules! kind {
    ($marker:ident, $trait:ident, $name:literal) => {
        #[doc = concat!("Marks descriptors of a [`", stringify!($trait), "`].")]
        #[derive(Debug)]
        pub enum $marker {}
        impl sealed::Sealed for $marker {}
        impl Kind for $marker {
            type Object = dyn $trait;
            const NAME: &'static str = $name;
        }
        inventory::collect!(Descriptor<$marker>);
    };
}

kind!(HarnessKind, Harness, "harness");
kind!(RunnerKind, Runner, "runner");
kind!(ChannelKind, Channel, "channel");
kind!(IngressKind, IngressSource, "ingress");
kind!(TrackerKind, Tracker, "tracker");

/// Makes a plugin's object.
pub type Factory<K> = fn(PluginContext) -> Result<Arc<<K as Kind>::Object>, PluginError>;

/// A plugin could not be made of its context.
#[derive(Debug, thiserror::Error)]
#[error("{what}")]
pub struct PluginError {
    /// What is wrong, and what to do.
    pub what: String,
    /// Why.
    #[source]
    pub source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl PluginError {
    /// An error around another one.
    pub fn new(what: impl Into<String>, source: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self { what: what.into(), source: Some(Box::new(source)) }
    }
}

/// The part of the config that a plugin owns.
#[derive(Clone, Copy)]
pub struct ConfigFragment {
    pointer: &'static str,
    schema: fn() -> serde_json::Value,
}

impl ConfigFragment {
    /// A fragment at a JSON pointer, such as `/webhooks/ghWebhook`, with the JSON Schema of its object.
    #[must_use]
    pub const fn new(pointer: &'static str, schema: fn() -> serde_json::Value) -> Self {
        Self { pointer, schema }
    }

    /// No config at all.
    #[must_use]
    pub const fn none() -> Self {
        Self { pointer: "", schema: || serde_json::Value::Null }
    }

    /// Where it stands in the config; empty for none.
    #[must_use]
    pub fn pointer(&self) -> &'static str {
        self.pointer
    }

    /// Its JSON Schema; null for none.
    #[must_use]
    pub fn schema(&self) -> serde_json::Value {
        (self.schema)()
    }
}

/// A plugin's description of itself. Its fields are private: what iterates descriptors without the key learns nothing and
/// can build nothing.
pub struct Descriptor<K: Kind> {
    name: &'static str,
    description: &'static str,
    version: &'static str,
    config: ConfigFragment,
    factory: Factory<K>,
}

impl<K: Kind> Descriptor<K> {
    /// Describes a plugin. Use the macros of this module rather than calling this.
    #[must_use]
    pub const fn new(
        name: &'static str,
        description: &'static str,
        version: &'static str,
        config: ConfigFragment,
        factory: Factory<K>,
    ) -> Self {
        Self { name, description, version, config, factory }
    }
}

/// The host's authority. Whatever makes a plugin act takes it; only the first [`claim`] of a process hands one out.
pub struct HostKey(());

impl fmt::Debug for HostKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HostKey")
    }
}

/// One registered plugin, in the hands of the host.
pub struct Registration<K: Kind>(&'static Descriptor<K>);

impl<K: Kind> Registration<K> {
    /// Its name, unique in its kind.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.0.name
    }

    /// What it is, in one line.
    #[must_use]
    pub fn description(&self) -> &'static str {
        self.0.description
    }

    /// Its crate's version.
    #[must_use]
    pub fn version(&self) -> &'static str {
        self.0.version
    }

    /// The part of the config that it owns.
    #[must_use]
    pub fn config(&self) -> ConfigFragment {
        self.0.config
    }

    /// Makes the plugin.
    ///
    /// # Errors
    /// When its factory says so.
    pub fn build(&self, _key: &HostKey, context: PluginContext) -> Result<Arc<K::Object>, PluginError> {
        (self.0.factory)(context)
    }
}

/// The whole registry, and the authority over it.
pub struct Claim {
    /// The authority.
    pub key: HostKey,
    /// Agent programs, by name.
    pub harnesses: Vec<Registration<HarnessKind>>,
    /// What hosts them, by name.
    pub runners: Vec<Registration<RunnerKind>>,
    /// Conversation surfaces, by name.
    pub channels: Vec<Registration<ChannelKind>>,
    /// Event sources, by name.
    pub ingresses: Vec<Registration<IngressKind>>,
    /// Systems of record, by name.
    pub trackers: Vec<Registration<TrackerKind>>,
}

/// Why the registry was not handed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClaimError {
    /// Someone has it.
    #[error("the plugin registry was already claimed in this process")]
    AlreadyClaimed,
    /// Two plugins of a kind have one name.
    #[error("two {kind} plugins are named {name}; leave one of them out of the build")]
    Duplicate {
        /// The kind.
        kind: &'static str,
        /// The name.
        name: &'static str,
    },
}

/// Hands out the registry and the authority over it, once a process.
///
/// # Errors
/// On every call but the first, and when two plugins of a kind have one name.
pub fn claim() -> Result<Claim, ClaimError> {
    static CLAIMED: AtomicBool = AtomicBool::new(false);
    if CLAIMED.swap(true, Ordering::SeqCst) {
        return Err(ClaimError::AlreadyClaimed);
    }
    Ok(Claim {
        key: HostKey(()),
        harnesses: sorted(inventory::iter::<Descriptor<HarnessKind>>())?,
        runners: sorted(inventory::iter::<Descriptor<RunnerKind>>())?,
        channels: sorted(inventory::iter::<Descriptor<ChannelKind>>())?,
        ingresses: sorted(inventory::iter::<Descriptor<IngressKind>>())?,
        trackers: sorted(inventory::iter::<Descriptor<TrackerKind>>())?,
    })
}

fn sorted<K: Kind>(
    found: impl IntoIterator<Item = &'static Descriptor<K>>,
) -> Result<Vec<Registration<K>>, ClaimError> {
    let mut all: Vec<Registration<K>> = found.into_iter().map(Registration).collect();
    all.sort_by_key(Registration::name);
    match all.windows(2).find(|pair| pair[0].name() == pair[1].name()) {
        Some(pair) => Err(ClaimError::Duplicate { kind: K::NAME, name: pair[0].name() }),
        None => Ok(all),
    }
}

/// Registers a plugin: `register!(HarnessKind, "shell", "what it is", ConfigFragment::none(), factory)`.
///
/// The crate must be named by the host (`use the_crate as _;`), or the linker drops it and nothing is registered.
#[macro_export]
macro_rules! register {
    ($kind:ident, $name:literal, $description:literal, $config:expr, $factory:expr) => {
        $crate::inventory::submit! {
            $crate::registry::Descriptor::<$crate::registry::$kind>::new(
                $name,
                $description,
                env!("CARGO_PKG_VERSION"),
                $config,
                $factory,
            )
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn never(_: PluginContext) -> Result<Arc<dyn Harness>, PluginError> {
        Err(PluginError { what: "never".to_owned(), source: None })
    }

    static ONE: Descriptor<HarnessKind> = Descriptor::new("one", "", "0", ConfigFragment::none(), never);
    static TWO: Descriptor<HarnessKind> = Descriptor::new("two", "", "0", ConfigFragment::none(), never);

    #[test]
    fn arc_3_duplicates_are_refused_and_the_rest_is_sorted() {
        let names = |found: Vec<Registration<HarnessKind>>| found.iter().map(Registration::name).collect::<Vec<_>>();
        assert_eq!(sorted([&TWO, &ONE]).map(names), Ok(vec!["one", "two"]));
        let twice = sorted([&ONE, &TWO, &ONE]).map(names);
        assert_eq!(twice, Err(ClaimError::Duplicate { kind: "harness", name: "one" }));
    }

    #[test]
    fn arc_3_a_second_claim_gets_nothing() {
        assert!(claim().is_ok());
        assert_eq!(claim().err(), Some(ClaimError::AlreadyClaimed));
    }
}
