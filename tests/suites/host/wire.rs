//! What GitHub would send: signed deliveries to the webhook listener of a test's host.

use std::{
    fs,
    io::{self, Read, Write},
    net::TcpStream,
    time::Duration,
};

use hmac::{Hmac, KeyInit, Mac};
use serde_json::Value;
use sha2::Sha256;

use crate::rig::Host;

pub(crate) const SECRET: &str = "not-a-real-secret";
pub(crate) const TOP: &str = "webhooks: {ghWebhook: {enabled: true, port: 0, secretEnv: CASE_SECRET}}";

/// A running host with a webhook listener; `more` is added to its `routing`.
pub(crate) fn host(more: &str) -> Host {
    let host = idle_host(more);
    host.ok(&["start"]);
    host
}

/// The same, not started yet.
pub(crate) fn idle_host(more: &str) -> Host {
    Host::new(more, TOP).with_env("CASE_SECRET", SECRET)
}

/// Where the listener is, when it listens.
pub(crate) fn try_listener(host: &Host) -> Option<String> {
    let status: Value = serde_json::from_slice(&host.run(&["status", "--format", "json"]).stdout).ok()?;
    let row = status["services"].as_array()?.iter().find(|row| row["name"] == "gh-webhook")?.clone();
    row["address"].as_str().map(str::to_owned)
}

pub(crate) fn listener(host: &Host) -> String {
    try_listener(host).unwrap_or_else(|| panic!("not listening: {}", host.ok(&["status"])))
}

/// Sends a signed delivery and gives the answer's status; an error when the host died meanwhile.
pub(crate) fn try_post(address: &str, event: &str, delivery: &str, secret: &str, body: &[u8]) -> io::Result<u16> {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).map_err(io::Error::other)?;
    mac.update(body);
    let signature = hex::encode(mac.finalize().into_bytes());
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(30)))?;
    let head = format!(
        "POST /gh-webhook HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nX-GitHub-Event: {event}\r\nX-GitHub-Delivery: {delivery}\r\n\
         X-Hub-Signature-256: sha256={signature}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body)?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let status = answer.split_whitespace().nth(1).and_then(|status| status.parse().ok());
    status.ok_or_else(|| io::Error::new(io::ErrorKind::UnexpectedEof, "no answer"))
}

pub(crate) fn post(address: &str, event: &str, delivery: &str, secret: &str, body: &[u8]) -> u16 {
    try_post(address, event, delivery, secret, body).unwrap()
}

/// An input of a case, from the committed copy.
pub(crate) fn fixture(path: &str) -> Value {
    let path = format!("{}/fixtures/cases/{path}", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_slice(&fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"))).unwrap()
}

/// The comment of WH-01 on another item, with another text; the comment's id follows from `number` and `comment`.
pub(crate) fn comment(number: u64, comment: u64, body: &str) -> Value {
    let mut payload = fixture("WH-01/payload.json");
    payload["issue"]["number"] = number.into();
    payload["issue"]["id"] = (70_000 + number).into();
    payload["issue"]["html_url"] = format!("https://github.test/octo/hello/issues/{number}").into();
    payload["comment"]["id"] = (number * 1_000_000 + comment).into();
    payload["comment"]["body"] = body.into();
    payload
}
