//! The suites for ingress sources and channels find each fault that they are there to find, and none in sources that keep
//! the contract: one that is pushed to over HTTP, one that looks by itself, and a channel.

#![expect(clippy::unwrap_used, reason = "a fake that cannot be set up fails its test")]

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use async_trait::async_trait;
use axum::{Router, http::StatusCode, routing::post};
use serde_json::{Value, json};
use the_loop_conformance::{
    Bench, Kit, Report, channel,
    ingress::{self, Answer, Outside},
};
use the_loop_plugin_api::{
    Channel, InboundEvent, IngressSource, PluginContext, SessionKey,
    channel::{ChannelError, Finding, Message, Thread},
    event::{Actor, Content, Ingress, Upstream},
    ingress::{IngressError, IngressHealth, ListenAddress, Listener, Misconfigured},
    register,
    registry::{ConfigFragment, PluginError},
};
use tower::ServiceExt as _;

register!(IngressKind, "pushed", "is pushed to", ConfigFragment::new("/test/pushed", schema), pushed);
register!(IngressKind, "looking", "looks by itself", ConfigFragment::new("/test/looking", schema), looking);
register!(ChannelKind, "wall", "posts on a wall", ConfigFragment::new("/test/wall", schema), wall);

fn schema() -> Value {
    json!({"type": "object", "properties": {"fault": {"type": "string"}, "tokenEnv": {"type": "string"}}})
}

/// A plugin with one fault.
#[derive(Clone)]
struct Faulty {
    context: PluginContext,
    fault: String,
}

impl Faulty {
    fn new(context: PluginContext) -> Result<Self, PluginError> {
        let config: BTreeMap<String, String> =
            context.config().map_err(|error| PluginError::new("the config of the fake", error))?;
        Ok(Self { context, fault: config.get("fault").cloned().unwrap_or_default() })
    }

    fn has(&self, fault: &str) -> bool {
        self.fault == fault
    }

    fn health(&self) -> IngressHealth {
        use secrecy::ExposeSecret as _;
        let token = self.context.secret("TOKEN").map(|token| token.expose_secret().to_owned());
        let detail = if self.has("shows its token") { token.unwrap_or_default() } else { "well".to_owned() };
        IngressHealth { detail, ..IngressHealth::default() }
    }

    async fn run(&self) {
        if !self.has("ends by itself") {
            self.context.stop().cancelled().await;
        }
        if self.has("never ends") {
            std::future::pending::<()>().await;
        }
    }
}

fn event(ingress: Ingress, id: &str) -> InboundEvent {
    InboundEvent {
        ingress,
        upstream: Upstream { event: "ping".to_owned(), delivery_id: Some(id.to_owned()), ..Upstream::default() },
        actor: Actor::Machine,
        item: None,
        content: Content::Ping,
    }
}

struct Pushed(Faulty);

fn pushed(context: PluginContext) -> Result<Arc<dyn IngressSource>, PluginError> {
    Ok(Arc::new(Pushed(Faulty::new(context)?)))
}

#[async_trait]
impl IngressSource for Pushed {
    fn enabled(&self) -> bool {
        !self.0.has("is disabled")
    }

    fn check(&self) -> Result<Vec<String>, Misconfigured> {
        Ok(Vec::new())
    }

    fn listener(&self) -> Option<Listener> {
        let plugin = self.0.clone();
        let take = move |id: String| async move {
            let id = if plugin.has("gives no ids") { "same".to_owned() } else { id };
            match plugin.context.sink().submit(event(Ingress::Webhook, &id)).await {
                Err(_) if !plugin.has("acknowledges all") => StatusCode::SERVICE_UNAVAILABLE,
                _ => StatusCode::ACCEPTED,
            }
        };
        let address = ListenAddress { host: "127.0.0.1".to_owned(), port: 0 };
        Some(Listener { address, router: Router::new().route("/", post(take)) })
    }

    async fn run(&self) -> Result<(), IngressError> {
        self.0.run().await;
        Ok(())
    }

    fn health(&self) -> IngressHealth {
        self.0.health()
    }
}

struct Pusher;

#[async_trait]
impl Outside for Pusher {
    async fn happen(&self, number: u32, routes: Option<Router>) -> Answer {
        let request = axum::http::Request::post("/").body(axum::body::Body::from(number.to_string())).unwrap();
        let status = routes.unwrap().oneshot(request).await.unwrap().status();
        if status.is_success() { Answer::Acknowledged } else { Answer::Refused }
    }
}

/// Watches a folder for files, and marks what was taken by removing it.
struct Looking(Faulty);

fn looking(context: PluginContext) -> Result<Arc<dyn IngressSource>, PluginError> {
    Ok(Arc::new(Looking(Faulty::new(context)?)))
}

impl Looking {
    async fn look(&self) {
        let mut found: Vec<PathBuf> =
            std::fs::read_dir(self.0.context.folder()).unwrap().flatten().map(|entry| entry.path()).collect();
        found.sort();
        for path in found {
            let id = path.file_name().unwrap().to_string_lossy().into_owned();
            let taken = self.0.context.sink().submit(event(Ingress::Local, &id)).await.is_ok();
            if taken || self.0.has("forgets what was refused") {
                std::fs::remove_file(path).unwrap();
            }
        }
    }
}

#[async_trait]
impl IngressSource for Looking {
    fn enabled(&self) -> bool {
        true
    }

    fn check(&self) -> Result<Vec<String>, Misconfigured> {
        Ok(Vec::new())
    }

    fn listener(&self) -> Option<Listener> {
        None
    }

    async fn run(&self) -> Result<(), IngressError> {
        let looking = async {
            loop {
                self.look().await;
                self.0.context.clock().sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::select! {
            () = looking => {}
            () = self.0.run() => {}
        }
        Ok(())
    }

    fn health(&self) -> IngressHealth {
        self.0.health()
    }
}

struct Dropper<'a>(&'a Path);

#[async_trait]
impl Outside for Dropper<'_> {
    async fn happen(&self, number: u32, _routes: Option<Router>) -> Answer {
        std::fs::write(self.0.join(number.to_string()), "").unwrap();
        Answer::Unasked
    }
}

type Posts = Arc<Mutex<Vec<(String, String)>>>;

/// What is posted and said on the wall of each plugin folder.
static WALLS: Mutex<BTreeMap<PathBuf, Posts>> = Mutex::new(BTreeMap::new());

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|held| held.into_inner())
}

fn posts_of(folder: &Path) -> Posts {
    Arc::clone(held(&WALLS).entry(folder.to_owned()).or_default())
}

struct Wall(Faulty, Posts);

fn wall(context: PluginContext) -> Result<Arc<dyn Channel>, PluginError> {
    let posts = posts_of(context.folder());
    Ok(Arc::new(Wall(Faulty::new(context)?, posts)))
}

#[async_trait]
impl Channel for Wall {
    fn enabled(&self) -> bool {
        true
    }

    fn subscribes(&self, event_type: &str) -> bool {
        event_type == "session.awaiting_input"
    }

    async fn open(&self, _session: &SessionKey, message: &Message) -> Result<Thread, ChannelError> {
        let opened = held(&self.1).len();
        let id = if self.0.has("opens twice") { opened.to_string() } else { "1".to_owned() };
        let thread = Thread { place: "wall".to_owned(), id };
        self.post(&thread, message).await.map(|()| thread)
    }

    async fn post(&self, _thread: &Thread, message: &Message) -> Result<(), ChannelError> {
        let mut posts = held(&self.1);
        if self.0.has("posts twice") || posts.iter().all(|(key, _)| key != message.key()) {
            posts.push((message.key().to_owned(), message.markdown().to_owned()));
        }
        Ok(())
    }

    async fn listen(&self) -> Result<(), ChannelError> {
        let reading = async {
            loop {
                let said = held(&self.1).iter().any(|(key, _)| key == "said");
                if said {
                    let kind = if self.0.has("claims to be a webhook") { Ingress::Webhook } else { Ingress::Channel };
                    let _full = self.0.context.sink().submit(event(kind, "said")).await;
                    held(&self.1).retain(|(key, _)| key != "said");
                }
                self.0.context.clock().sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::select! {
            () = reading => {}
            () = self.0.run() => {}
        }
        Ok(())
    }

    fn describe(&self) -> String {
        self.0.health().detail
    }

    async fn doctor(&self) -> Vec<Finding> {
        vec![Finding { ok: !self.0.has("is not well"), text: "the wall stands".to_owned() }]
    }
}

struct Passer(Posts);

#[async_trait]
impl channel::Surface for Passer {
    async fn posted(&self, _thread: &Thread) -> Vec<String> {
        held(&self.0).iter().map(|(_, text)| text.clone()).collect()
    }

    async fn say(&self, _thread: &Thread, text: &str) {
        held(&self.0).push(("said".to_owned(), text.to_owned()));
    }
}

fn bench(fault: &str) -> Bench {
    let bench = Bench::new(json!({"fault": fault, "tokenEnv": "TOKEN"})).with_secret("TOKEN", "conformance-canary");
    if fault.is_empty() { bench } else { bench.with_patience(Duration::from_millis(300)) }
}

async fn pushed_found(fault: &str) -> Report {
    ingress::check(Kit::get(), "pushed", &bench(fault), &Pusher).await
}

async fn looking_found(fault: &str) -> Report {
    let bench = bench(fault);
    ingress::check(Kit::get(), "looking", &bench, &Dropper(bench.folder())).await
}

async fn wall_found(fault: &str) -> Report {
    let bench = bench(fault);
    channel::check(Kit::get(), "wall", &bench, &Passer(posts_of(bench.folder()))).await
}

#[tokio::test]
async fn har_8_sources_and_channels_that_keep_the_contract_pass() {
    pushed_found("").await.assert();
    looking_found("").await.assert();
    wall_found("").await.assert();
}

#[tokio::test]
async fn har_8_each_fault_of_a_pushed_source_is_found_under_its_rule() {
    for (fault, rules) in [
        ("is disabled", ["ARC-4"]),
        ("acknowledges all", ["REL-1"]),
        ("gives no ids", ["REL-1"]),
        ("shows its token", ["SEC-4"]),
        ("ends by itself", ["ARC-8"]),
        ("never ends", ["ARC-8"]),
    ] {
        assert_eq!(pushed_found(fault).await.broken(), rules, "{fault}");
    }
}

#[tokio::test]
async fn har_8_each_fault_of_a_looking_source_is_found_under_its_rule() {
    for (fault, rules) in [("forgets what was refused", ["REL-1"]), ("never ends", ["ARC-8"])] {
        assert_eq!(looking_found(fault).await.broken(), rules, "{fault}");
    }
}

#[tokio::test]
async fn har_8_each_fault_of_a_channel_is_found_under_its_rule() {
    for (fault, rules) in [
        ("posts twice", ["REL-1"]),
        ("opens twice", ["ASK-6"]),
        ("claims to be a webhook", ["ARC-4"]),
        ("is not well", ["SEC-4"]),
        ("shows its token", ["SEC-4"]),
        ("never ends", ["ARC-8"]),
    ] {
        assert_eq!(wall_found(fault).await.broken(), rules, "{fault}");
    }
}
