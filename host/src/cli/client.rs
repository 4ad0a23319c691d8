//! The client of the host's socket, for verbs that run against the service (CLI-3).

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::UnixStream;

use super::{CliError, Context, output::note};
use crate::{
    service::Setup,
    state::{self, InstanceLock, LockState},
};

/// How long an answer may take: a graceful stop waits for its harness.
const ANSWER: Duration = Duration::from_secs(120);
/// How long a connection may take.
const CONNECT: Duration = Duration::from_secs(5);

/// Talks to the service of a state root.
pub(super) struct Client {
    root: PathBuf,
    actor: String,
    /// What starts the service where none runs, if the config lets verbs do that (`service.autoStart`).
    starter: Option<Context>,
}

/// What the service answered.
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) body: Value,
}

impl Client {
    /// The service of this context's config; it need not run yet.
    pub(super) fn new(context: &Context) -> Result<Self, CliError> {
        let setup = Setup::read(&context.options)?;
        let starter = setup.loaded.config.service.auto_start.then(|| context.clone());
        Ok(Self { root: setup.root, actor: context.actor(), starter })
    }

    /// The same, for verbs to recover with: where the config does not validate, the service that its text leads to is asked,
    /// which runs with the last good one (CFG-4).
    pub(super) fn to_recover(context: &Context) -> Result<Self, CliError> {
        match Setup::read(&context.options) {
            Ok(_) => Self::new(context),
            Err(error) => {
                let root = Setup::salvage_root(&context.options).ok_or(error)?;
                note(format_args!(
                    "the config does not validate (`the-loop config check`); looking in {}",
                    root.display()
                ));
                Ok(Self { root, actor: context.actor(), starter: None })
            }
        }
    }

    /// The same, for verbs that are about whether the service runs and never start it.
    pub(super) fn without_start(self) -> Self {
        Self { starter: None, ..self }
    }

    /// The state root.
    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// Who the caller says to be.
    pub(super) fn actor(&self) -> &str {
        &self.actor
    }

    pub(super) async fn get(&self, path: &str) -> Result<Value, CliError> {
        accepted(self.request(Method::GET, path, None).await?)
    }

    pub(super) async fn post(&self, path: &str, body: &Value) -> Result<Value, CliError> {
        accepted(self.request(Method::POST, path, Some(body)).await?)
    }

    /// One request on one connection, to a service that is started first where the config says so.
    pub(super) async fn request(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Answer, CliError> {
        if let Some(context) = &self.starter
            && InstanceLock::state(&self.root.join("local/service.pid")) == LockState::Free
        {
            super::daemon::bring_up(context).await?;
            note("the service did not run and was started (service.autoStart)");
        }
        let away = || {
            CliError::unreachable(
                "the service does not run or does not answer; `the-loop start` starts it, `the-loop status` says more",
            )
        };
        let socket = state::find_socket(&self.root).unwrap_or_else(|| self.root.join("local/host.sock"));
        let answered = tokio::time::timeout(ANSWER, send(&socket, method, path, body, &self.actor)).await;
        match answered {
            Err(_) => Err(CliError::unreachable(format!(
                "the service did not answer within {} s; `the-loop status` says more",
                ANSWER.as_secs()
            ))),
            Ok(Err(cause @ SendError::Away(_))) => Err(away().because(cause)),
            Ok(Err(cause @ SendError::Malformed(_))) => {
                Err(CliError::usage("that cannot be asked of the service").because(cause))
            }
            Ok(Ok(answer)) => Ok(answer),
        }
    }
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum SendError {
    /// Nobody listens, or the connection broke.
    #[error("{0}")]
    Away(String),
    /// The request cannot be written.
    #[error(transparent)]
    Malformed(#[from] http::Error),
}

impl From<hyper::Error> for SendError {
    fn from(error: hyper::Error) -> Self {
        Self::Away(error.to_string())
    }
}

/// One request on one connection to the host's socket.
pub(super) async fn send(
    socket: &Path,
    method: Method,
    path: &str,
    body: Option<&Value>,
    actor: &str,
) -> Result<Answer, SendError> {
    let connected = tokio::time::timeout(CONNECT, UnixStream::connect(socket)).await;
    let stream = connected
        .unwrap_or_else(|late| Err(std::io::Error::other(late)))
        .map_err(|error| SendError::Away(error.to_string()))?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    // The connection ends with the request.
    let driving = tokio::spawn(connection);
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("host", "localhost")
        .header("content-type", "application/json")
        .header("x-the-loop-actor", actor)
        .header("x-the-loop-surface", "cli")
        .body(Full::new(Bytes::from(body.map(Value::to_string).unwrap_or_default())))?;
    let response = sender.send_request(request).await?;
    let status = response.status();
    let bytes = response.into_body().collect().await?.to_bytes();
    driving.abort();
    let text = || Value::from(String::from_utf8_lossy(&bytes).into_owned());
    Ok(Answer { status, body: serde_json::from_slice(&bytes).unwrap_or_else(|_| text()) })
}

/// The body of a good answer; the service's own words for any other.
fn accepted(answer: Answer) -> Result<Value, CliError> {
    if answer.status.is_success() {
        return Ok(answer.body);
    }
    let said = answer.body["error"]["message"]
        .as_str()
        .or(answer.body["detail"].as_str())
        .unwrap_or("the service refused")
        .to_owned();
    let asked_wrongly = answer.status == StatusCode::UNPROCESSABLE_ENTITY
        || matches!(answer.body["error"]["code"].as_str(), Some("malformed-ref" | "invalid-text"));
    Err(if asked_wrongly { CliError::usage(said) } else { CliError::failed(said) })
}

/// Percent-encodes a query value.
pub(super) fn encoded(text: &str) -> String {
    use std::fmt::Write;
    text.bytes().fold(String::new(), |mut out, byte| {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.') {
            out.push(char::from(byte));
        } else {
            // Writing to a text cannot fail.
            let _ = write!(out, "%{byte:02X}");
        }
        out
    })
}
