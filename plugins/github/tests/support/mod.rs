//! A webhook source on a bench, deliveries for it, and a real server around it.

use std::{fs, net::SocketAddr, path::Path, sync::Arc, time::Duration};

use axum::{
    Router,
    body::{Body, to_bytes},
    http::{Request, Response},
};
use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use sha2::Sha256;
use the_loop_conformance::{Bench, Kit};
use the_loop_plugin_api::{IngressSource, context::NoteOutcome, event::InboundEvent};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
    time,
};
use tower::ServiceExt;

pub(crate) const SECRET: &str = "not-a-real-secret";
pub(crate) const SECRET_ENV: &str = "CASE_SECRET";

/// An input of a case.
pub(crate) fn case(file: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/cases").join(file);
    fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A config that enables the source, with these keys on top.
pub(crate) fn config(keys: Value) -> Value {
    let mut config = json!({"enabled": true, "port": 0, "secretEnv": SECRET_ENV});
    let (Value::Object(all), Value::Object(keys)) = (&mut config, keys) else { panic!("keys are an object") };
    all.extend(keys);
    config
}

pub(crate) struct Webhook {
    pub(crate) bench: Bench,
    pub(crate) source: Arc<dyn IngressSource>,
}

impl Webhook {
    /// A source with [`SECRET`].
    pub(crate) fn new(keys: Value) -> Self {
        Self::on(Bench::new(config(keys)).with_secret(SECRET_ENV, SECRET))
    }

    pub(crate) fn on(bench: Bench) -> Self {
        Self { source: Kit::get().ingress("gh-webhook", &bench), bench }
    }

    pub(crate) fn routes(&self) -> Router {
        self.source.listener().expect("it has routes").router
    }

    pub(crate) async fn post(&self, post: impl Into<Request<Body>>) -> (u16, Value) {
        send(self.routes(), post).await
    }

    pub(crate) fn events(&self) -> Vec<InboundEvent> {
        self.bench.sink().events()
    }

    pub(crate) fn notes(&self) -> Vec<NoteOutcome> {
        self.bench.sink().notes().into_iter().map(|note| note.outcome).collect()
    }

    pub(crate) async fn serve(&self) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let routes = self.routes();
        Server { address, task: tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() }) }
    }
}

pub(crate) async fn respond(routes: Router, request: impl Into<Request<Body>>) -> Response<Body> {
    routes.oneshot(request.into()).await.unwrap()
}

/// The status and the JSON of an answer.
pub(crate) async fn send(routes: Router, request: impl Into<Request<Body>>) -> (u16, Value) {
    let response = respond(routes, request).await;
    let code = response.status().as_u16();
    let body = to_bytes(response.into_body(), 1 << 20).await.unwrap();
    (code, serde_json::from_slice(&body).unwrap_or_else(|error| panic!("{code} {body:?}: {error}")))
}

/// A delivery to be posted.
pub(crate) struct Post {
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Post {
    pub(crate) fn new(event: &str, body: Vec<u8>) -> Self {
        Self { headers: vec![], body }.header("x-github-event", event)
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn id(self, id: &str) -> Self {
        self.header("x-github-delivery", id)
    }

    pub(crate) fn media(self, media: &str) -> Self {
        self.header("content-type", media)
    }

    pub(crate) fn signature(self, signature: &str) -> Self {
        self.header("x-hub-signature-256", signature)
    }

    pub(crate) fn signed_with(self, secret: &str) -> Self {
        let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).unwrap();
        mac.update(&self.body);
        let signature = format!("sha256={}", hex::encode(mac.finalize().into_bytes()));
        self.signature(&signature)
    }

    pub(crate) fn signed(self) -> Self {
        self.signed_with(SECRET)
    }

    /// The head as it is written on a connection that is not used again.
    fn head(&self) -> String {
        let headers: String = self.headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let length = self.body.len();
        format!(
            "POST /gh-webhook HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\ncontent-length: {length}\r\n{headers}\r\n"
        )
    }
}

impl From<Post> for Request<Body> {
    fn from(post: Post) -> Self {
        let request = post
            .headers
            .iter()
            .fold(Request::post("/gh-webhook"), |request, (name, value)| request.header(name, value));
        request.body(Body::from(post.body)).unwrap()
    }
}

/// A server on loopback, which ends with this value.
pub(crate) struct Server {
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl Server {
    /// Posts as an upstream does that writes all it has before it reads.
    pub(crate) async fn post(&self, post: Post) -> (u16, Value) {
        let post = post.signed();
        let mut connection = TcpStream::connect(self.address).await.unwrap();
        connection.write_all(post.head().as_bytes()).await.unwrap();
        connection.write_all(&post.body).await.unwrap();
        answer(connection).await
    }

    /// Says that it has nothing more to write in the middle of the body.
    pub(crate) async fn cut_off(&self, post: Post) -> (u16, Value) {
        let post = post.signed();
        let mut connection = TcpStream::connect(self.address).await.unwrap();
        connection.write_all(post.head().as_bytes()).await.unwrap();
        connection.write_all(&post.body[..post.body.len() / 2]).await.unwrap();
        connection.shutdown().await.unwrap();
        answer(connection).await
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The whole answer on a connection that closes after it.
async fn answer(mut connection: TcpStream) -> (u16, Value) {
    let mut text = String::new();
    let read = connection.read_to_string(&mut text);
    time::timeout(Duration::from_secs(60), read).await.expect("an answer, and an end").unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no whole head in {text:?}"));
    let code = head.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or_else(|| panic!("{head:?}"));
    (code, serde_json::from_str(body).unwrap_or_else(|error| panic!("{text:?}: {error}")))
}
