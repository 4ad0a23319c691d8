//! The kit in the host's place: the one claim of the process, and plugins built from it.

use std::sync::{Arc, OnceLock};

use the_loop_plugin_api::{
    Channel, Harness, IngressSource, PluginContext, Runner, Tracker,
    context::ContextParts,
    registry::{self, Claim, HostKey, Kind, PluginError, Registration},
};

use crate::bench::{Bench, RuntimeClock};

/// The host's authority in a test. There is one a process.
pub struct Kit {
    claim: Claim,
}

impl Kit {
    /// The kit of this process; the first call claims the registry.
    ///
    /// # Panics
    /// When something else has claimed it, or when two plugins of a kind have one name: then nothing can be tested.
    #[must_use]
    pub fn get() -> &'static Self {
        static KIT: OnceLock<Kit> = OnceLock::new();
        KIT.get_or_init(|| match registry::claim() {
            Ok(claim) => Kit { claim },
            Err(error) => panic!("the kit cannot stand in the host's place: {error}"),
        })
    }

    /// The host's key, with which a test makes what only the host can make.
    #[must_use]
    pub fn key(&self) -> &HostKey {
        &self.claim.key
    }

    /// Builds the registered harness `name`.
    ///
    /// # Panics
    /// When there is none, or it cannot be built on `bench`.
    #[must_use]
    pub fn harness(&self, name: &str, bench: &Bench) -> Arc<dyn Harness> {
        self.built(&self.claim.harnesses, name, bench)
    }

    /// Builds the registered runner `name`.
    ///
    /// # Panics
    /// When there is none, or it cannot be built on `bench`.
    #[must_use]
    pub fn runner(&self, name: &str, bench: &Bench) -> Arc<dyn Runner> {
        self.built(&self.claim.runners, name, bench)
    }

    /// Builds the registered channel `name`.
    ///
    /// # Panics
    /// When there is none, or it cannot be built on `bench`.
    #[must_use]
    pub fn channel(&self, name: &str, bench: &Bench) -> Arc<dyn Channel> {
        self.built(&self.claim.channels, name, bench)
    }

    /// Builds the registered ingress source `name`.
    ///
    /// # Panics
    /// When there is none, or it cannot be built on `bench`.
    #[must_use]
    pub fn ingress(&self, name: &str, bench: &Bench) -> Arc<dyn IngressSource> {
        self.built(&self.claim.ingresses, name, bench)
    }

    /// Builds the registered tracker `name`.
    ///
    /// # Panics
    /// When there is none, or it cannot be built on `bench`.
    #[must_use]
    pub fn tracker(&self, name: &str, bench: &Bench) -> Arc<dyn Tracker> {
        self.built(&self.claim.trackers, name, bench)
    }

    pub(crate) fn claim(&self) -> &Claim {
        &self.claim
    }

    /// Builds a registration on a bench.
    pub(crate) fn build<K: Kind>(
        &self,
        registration: &Registration<K>,
        bench: &Bench,
    ) -> Result<Arc<K::Object>, PluginError> {
        let context = PluginContext::new(
            &self.claim.key,
            ContextParts {
                name: registration.name(),
                config: bench.config.clone(),
                folder: bench.folder().to_owned(),
                sink: bench.shared_sink(),
                secrets: bench.secrets(),
                clock: Arc::new(RuntimeClock),
                stop: bench.stop_signal(),
            },
        );
        registration.build(&self.claim.key, context)
    }

    fn built<K: Kind>(&self, all: &[Registration<K>], name: &str, bench: &Bench) -> Arc<K::Object> {
        let registration = find(all, name).unwrap_or_else(|problem| panic!("{problem}"));
        self.build(registration, bench)
            .unwrap_or_else(|error| panic!("the {} {name} cannot be built: {error}", K::NAME))
    }
}

/// The registration of a name; the problem says what is registered instead.
pub(crate) fn find<'a, K: Kind>(all: &'a [Registration<K>], name: &str) -> Result<&'a Registration<K>, String> {
    all.iter().find(|registration| registration.name() == name).ok_or_else(|| {
        let names: Vec<_> = all.iter().map(Registration::name).collect();
        format!(
            "no {} named {name} is registered (found: {names:?}); name its crate in the test with `use the_crate as _;`",
            K::NAME
        )
    })
}
