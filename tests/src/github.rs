//! A GitHub on loopback, faithful to the public REST API for the calls that the tracker makes, and able to misbehave.
//!
//! It logs every request that arrived, so that what was written is counted at the far end and not by the one who says so.

mod api;
mod app;

use std::{
    collections::VecDeque,
    net::SocketAddr,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use self::app::App;
use serde_json::{Value, json};
use tokio::{net::TcpListener, sync::oneshot};

/// The token that it takes; any other is answered 401.
pub const TOKEN: &str = "not-a-real-token";

/// A server with a thread of its own, which ends with this value.
pub struct FakeGithub {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

/// How one request goes wrong.
#[derive(Clone, Debug)]
pub enum Fault {
    /// This status, these headers and this message, and nothing is done.
    Status(u16, Vec<(&'static str, String)>, &'static str),
    /// What was asked is done, and the answer is this status.
    DoneBut(u16),
    /// What was asked is done, and the answer ends in the middle.
    CutOff,
    /// The answer comes after this long.
    Slow(Duration),
}

/// A request that arrived.
#[derive(Clone, Debug)]
pub struct Arrived {
    /// Its method.
    pub method: String,
    /// Its path and query.
    pub path: String,
    /// Its body; null for none.
    pub body: Value,
    /// How long after the server's start it came.
    pub at: Duration,
}

pub(crate) struct State {
    started: Instant,
    base: String,
    next_id: u64,
    items: Vec<Value>,
    comments: Vec<(u64, Value)>,
    reactions: Vec<(String, String)>,
    closing: Vec<(u64, Vec<u64>)>,
    arrived: Vec<Arrived>,
    faults: VecDeque<(String, Fault)>,
    down: Option<Fault>,
    app: Option<App>,
}

impl FakeGithub {
    /// A server for the repository octo/hello, with no items.
    ///
    /// # Panics
    /// When loopback has no free port.
    #[must_use]
    pub fn start() -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap_or_else(|error| panic!("loopback: {error}"));
        let address = listener.local_addr().unwrap_or_else(|error| panic!("loopback: {error}"));
        let state = Arc::new(Mutex::new(State {
            started: Instant::now(),
            base: format!("http://{address}"),
            next_id: 5000,
            items: Vec::new(),
            comments: Vec::new(),
            reactions: Vec::new(),
            closing: Vec::new(),
            arrived: Vec::new(),
            faults: VecDeque::new(),
            down: None,
            app: None,
        }));
        let (stop, stopped) = oneshot::channel();
        let routes = api::routes(Arc::clone(&state));
        let thread = std::thread::spawn(move || serve(listener, routes, stopped));
        Self { address, state, stop: Some(stop), thread: Some(thread) }
    }

    /// Where its API is.
    #[must_use]
    pub fn base(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Lets the App `id` in, whose key is the public half of the one in this file: for `installation`, it gets tokens that are
    /// good for so long. The token of everybody else is not taken any more.
    ///
    /// # Panics
    /// When the file holds no key.
    pub fn app(&self, id: &str, installation: u64, key: &Path, good_for: Duration) {
        self.state().app = Some(App::new(id, installation, key, good_for));
    }

    /// Adds an issue, or a pull request with this text.
    pub fn item(&self, number: u64, labels: &[&str], pull_request: Option<&str>) {
        let mut state = self.state();
        let labels: Vec<Value> = labels.iter().map(|name| json!({"name": name})).collect();
        let kind = if pull_request.is_some() { "pull" } else { "issues" };
        let mut item = json!({
            "id": 70_000 + number, "number": number, "title": "Sort the list", "state": "open", "labels": labels,
            "user": {"login": "octo-admin", "type": "User"}, "body": pull_request.unwrap_or("Please sort it."),
            "html_url": format!("https://github.test/octo/hello/{kind}/{number}"),
            "created_at": "2026-11-30T10:00:00Z"
        });
        if pull_request.is_some() {
            item["pull_request"] = json!({"html_url": item["html_url"]});
        }
        state.items.push(item);
    }

    /// Says which issues a pull request closes, as GitHub's own closing references do.
    pub fn closes(&self, pull_request: u64, issues: &[u64]) {
        self.state().closing.push((pull_request, issues.to_vec()));
    }

    /// Adds a comment as a person, and gives its id.
    pub fn comment(&self, item: u64, body: &str) -> u64 {
        self.state().add_comment(item, body)["id"].as_u64().unwrap_or_default()
    }

    /// Adds the comment that a webhook's payload speaks of.
    pub fn comment_of_id(&self, item: u64, id: u64, body: &str) {
        let mut state = self.state();
        state.add_comment(item, body);
        if let Some((_, comment)) = state.comments.last_mut() {
            comment["id"] = json!(id);
        }
    }

    /// The next request whose method and path contain `what` goes wrong like this.
    pub fn fault(&self, what: &str, fault: Fault) {
        self.state().faults.push_back((what.to_owned(), fault));
    }

    /// Every request goes wrong like this, until it is taken back with `None`.
    pub fn all(&self, fault: Option<Fault>) {
        self.state().down = fault;
    }

    /// Every request that arrived.
    #[must_use]
    pub fn arrived(&self) -> Vec<Arrived> {
        self.state().arrived.clone()
    }

    /// How many requests arrived whose method and path contain `what`.
    #[must_use]
    pub fn count(&self, what: &str) -> usize {
        self.arrived().iter().filter(|request| format!("{} {}", request.method, request.path).contains(what)).count()
    }

    /// The texts of an item's comments, oldest first.
    #[must_use]
    pub fn comments(&self, item: u64) -> Vec<String> {
        let state = self.state();
        let of = state.comments.iter().filter(|(on, _)| *on == item);
        of.map(|(_, comment)| comment["body"].as_str().unwrap_or_default().to_owned()).collect()
    }

    /// Every reaction: to what, and which.
    #[must_use]
    pub fn reactions(&self) -> Vec<(String, String)> {
        self.state().reactions.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

pub(crate) fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for FakeGithub {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            // A server that ended by itself hears nothing any more.
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn serve(listener: std::net::TcpListener, routes: axum::Router, stopped: oneshot::Receiver<()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.unwrap_or_else(|error| panic!("a runtime is needed: {error}"));
    runtime.block_on(async {
        let listener = listener.set_nonblocking(true).and_then(|()| TcpListener::from_std(listener));
        let listener = listener.unwrap_or_else(|error| panic!("loopback: {error}"));
        tokio::select! {
            served = axum::serve(listener, routes) => drop(served),
            _ = stopped => {}
        }
    });
}
