//! A plugin that tries to act without the host (ARC-4): it claims the registry after the host did, looks through the
//! descriptors that `inventory` shows it, and asks for what only the host can make. It gets nothing.
//!
//! What a plugin cannot even write down is proved by the compile-fail tests of `plugin-api`.

use std::{
    any::type_name_of_val,
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use jiff::Timestamp;
use the_loop_plugin_api::{
    Channel, Clock, InboundEvent, InboundSink, PluginContext, Runner, SessionKey,
    channel::{ChannelError, Finding, Message, Thread},
    context::{Accepted, ContextParts, IngressNote, Refused, SecretSource},
    inventory, register,
    registry::{self, ClaimError, ConfigFragment, Descriptor, PluginError, RunnerKind},
};
use tokio_util::sync::CancellationToken;

register!(RunnerKind, "victim", "a runner that must not be reached", ConfigFragment::none(), victim);
register!(ChannelKind, "rogue", "a channel that tries", ConfigFragment::none(), rogue);

/// How often the runner's factory ran.
static BUILT: Mutex<u32> = Mutex::new(0);

fn victim(_context: PluginContext) -> Result<Arc<dyn Runner>, PluginError> {
    *BUILT.lock().unwrap_or_else(|held| held.into_inner()) += 1;
    Err(PluginError { what: "the runner was reached".to_owned(), source: None })
}

/// What the rogue plugin got hold of, written down by its factory.
static LOOT: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Everything that safe code of a plugin can try with what it is given.
fn rogue(context: PluginContext) -> Result<Arc<dyn Channel>, PluginError> {
    let mut loot = Vec::new();
    match registry::claim() {
        Ok(_) => loot.push("the registry and its key".to_owned()),
        Err(ClaimError::AlreadyClaimed) => {}
        Err(other) => loot.push(other.to_string()),
    }
    // It sees that descriptors exist. Their fields are private and they have no method, so this is all there is to do.
    let descriptors: Vec<&Descriptor<RunnerKind>> = inventory::iter::<Descriptor<RunnerKind>>().collect();
    assert_eq!(descriptors.len(), 1, "the runner is registered");
    assert!(type_name_of_val(descriptors[0]).contains("Descriptor"));
    // A secret that its own config does not name is refused.
    if context.secret("HOME").is_some() || context.secret("THE_LOOP_CANARY").is_some() {
        loot.push("a secret".to_owned());
    }
    *LOOT.lock().unwrap_or_else(|held| held.into_inner()) = loot;
    Ok(Arc::new(Rogue))
}

struct Rogue;

#[async_trait]
impl Channel for Rogue {
    fn enabled(&self) -> bool {
        true
    }
    fn subscribes(&self, _event_type: &str) -> bool {
        true
    }
    async fn open(&self, _session: &SessionKey, _message: &Message) -> Result<Thread, ChannelError> {
        Err(ChannelError { action: "open", problem: "never".to_owned() })
    }
    async fn post(&self, _thread: &Thread, _message: &Message) -> Result<(), ChannelError> {
        Ok(())
    }
    async fn listen(&self) -> Result<(), ChannelError> {
        Ok(())
    }
    fn describe(&self) -> String {
        "rogue".to_owned()
    }
    async fn doctor(&self) -> Vec<Finding> {
        Vec::new()
    }
}

struct Host;

#[async_trait]
impl InboundSink for Host {
    async fn submit(&self, _event: InboundEvent) -> Result<Accepted, Refused> {
        Err(Refused::Stopping)
    }
    fn note(&self, _note: IngressNote) {}
}

#[async_trait]
impl Clock for Host {
    fn now(&self) -> Timestamp {
        Timestamp::UNIX_EPOCH
    }
    fn since_boot(&self) -> Duration {
        Duration::ZERO
    }
    fn boot_id(&self) -> String {
        "boot".to_owned()
    }
    async fn sleep(&self, _span: Duration) {
        std::future::pending().await
    }
}

impl SecretSource for Host {
    fn read(&self, _name: &str) -> Option<secrecy::SecretString> {
        Some("every secret of the host".into())
    }
}

#[test]
fn arc_4_a_plugin_that_tries_to_act_without_the_host_gets_nothing() {
    let host = registry::claim().unwrap_or_else(|error| panic!("the host claims first: {error}"));
    let names: Vec<_> = host.runners.iter().map(registry::Registration::name).collect();
    assert!(names.contains(&"victim"), "{names:?}");
    let channel = host.channels.iter().find(|one| one.name() == "rogue").unwrap_or_else(|| panic!("it is registered"));
    let context = PluginContext::new(
        &host.key,
        ContextParts {
            name: "rogue",
            config: serde_json::json!({"note": "HOME"}),
            folder: "/nonexistent".into(),
            sink: Arc::new(Host),
            secrets: Arc::new(Host),
            clock: Arc::new(Host),
            stop: CancellationToken::new(),
        },
    );
    LOOT.lock().unwrap_or_else(|held| held.into_inner()).push("the factory did not run".to_owned());
    channel.build(&host.key, context).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(*LOOT.lock().unwrap_or_else(|held| held.into_inner()), Vec::<String>::new());
    assert_eq!(*BUILT.lock().unwrap_or_else(|held| held.into_inner()), 0, "the runner's factory ran");
}
