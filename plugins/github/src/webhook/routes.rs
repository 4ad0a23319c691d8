//! What the listener answers. Every answer is whole, and JSON with a `status`; an error says beside it what is wrong, in the
//! shape that the control plane's errors have.

use std::sync::Arc;

use axum::{
    Json, Router,
    extract::{Request, State},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, StatusCode,
    header::{ALLOW, HOST, ORIGIN, RETRY_AFTER},
};
use serde_json::json;
use sha2::{Digest, Sha256};
use the_loop_plugin_api::{
    InboundEvent,
    context::{NoteOutcome, Refused},
    event::{Ingress, Upstream},
};

use super::{
    body::{self, BodyError},
    config::{HEALTH, is_loopback},
    happening,
    signature::{self, SignatureError},
    source::Shared,
};

/// Longest event kind or delivery id that is kept. GitHub's are far shorter.
const MAX_WORD: usize = 128;

/// From this size on, a body is looked into on a thread of its own.
const LARGE: usize = 256 * 1024;

/// The listener's routes. The path comes from the config, so it is compared and never made a pattern of.
pub(super) fn router(shared: Arc<Shared>) -> Router {
    Router::new().fallback(answer).with_state(shared)
}

async fn answer(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let (method, path) = (request.method(), request.uri().path());
    let reads = *method == Method::GET || *method == Method::HEAD;
    if path == shared.config.path {
        match *method {
            Method::POST => deliver(&shared, request).await,
            _ if reads => status(StatusCode::NOT_FOUND, "not found"),
            _ => with(status(StatusCode::METHOD_NOT_ALLOWED, "method not allowed"), ALLOW, "POST"),
        }
    } else if reads && HEALTH.contains(&path) {
        status(StatusCode::OK, "ok")
    } else {
        status(StatusCode::NOT_FOUND, "not found")
    }
}

/// What a delivery says of itself before its body is looked at.
struct Head {
    headers: HeaderMap,
    event: Option<String>,
    delivery_id: Option<String>,
}

/// A delivery that does not become an event: what is noted of it, and how it is answered.
struct Rejected {
    outcome: NoteOutcome,
    code: StatusCode,
    text: String,
}

impl Rejected {
    fn new(outcome: NoteOutcome, code: StatusCode, why: impl ToString) -> Self {
        Self { outcome, code, text: why.to_string() }
    }
}

async fn deliver(shared: &Arc<Shared>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let headers = parts.headers;
    let event = word(&headers, "x-github-event");
    let delivery_id = word(&headers, "x-github-delivery");
    let head = Head { headers, event: event.clone(), delivery_id: delivery_id.clone() };
    let examined = match body::read(&head.headers, body, &*shared.context.clock()).await {
        Ok(bytes) => examine(Arc::clone(shared), head, bytes).await,
        Err(error) => Err(unread(error)),
    };
    match examined {
        Ok(inbound) => match shared.context.sink().submit(inbound).await {
            Ok(_) => {
                shared.accepted();
                status(StatusCode::ACCEPTED, "accepted")
            }
            Err(refusal) => {
                shared.refused();
                refused(&refusal)
            }
        },
        Err(Rejected { outcome, code, text }) => {
            shared.note(outcome, event, delivery_id);
            if outcome == NoteOutcome::Ignored {
                status(code, &text)
            } else {
                error(code, word_of(outcome, code), &text)
            }
        }
    }
}

fn unread(error: BodyError) -> Rejected {
    let (outcome, code) = match error {
        BodyError::TooLarge => (NoteOutcome::TooLarge, StatusCode::PAYLOAD_TOO_LARGE),
        BodyError::TimedOut => (NoteOutcome::InvalidPayload, StatusCode::REQUEST_TIMEOUT),
        BodyError::CutOff => (NoteOutcome::InvalidPayload, StatusCode::BAD_REQUEST),
    };
    Rejected::new(outcome, code, error)
}

/// Large bodies are hashed and decoded where they hold up no other request.
async fn examine(shared: Arc<Shared>, head: Head, bytes: Bytes) -> Result<InboundEvent, Rejected> {
    if bytes.len() < LARGE {
        return inbound(&shared, head, &bytes);
    }
    let examined = tokio::task::spawn_blocking(move || inbound(&shared, head, &bytes)).await;
    examined
        .unwrap_or_else(|lost| Err(Rejected::new(NoteOutcome::InvalidPayload, StatusCode::INTERNAL_SERVER_ERROR, lost)))
}

/// The event that a delivery is, once its origin is proven.
fn inbound(shared: &Shared, head: Head, bytes: &[u8]) -> Result<InboundEvent, Rejected> {
    let invalid = |why: String| Rejected::new(NoteOutcome::InvalidPayload, StatusCode::BAD_REQUEST, why);
    let verified = origin(shared, &head.headers, bytes)?;
    let payload = body::decode(&head.headers, bytes).map_err(|error| invalid(error.to_string()))?;
    let event = head.event.unwrap_or_default();
    let ignored = || Rejected::new(NoteOutcome::Ignored, StatusCode::ACCEPTED, "ignored");
    if !shared.config.takes(&event) {
        return Err(ignored());
    }
    let read = happening::read(&event, &payload).map_err(|error| invalid(error.to_string()))?;
    let happening = read.ok_or_else(ignored)?;
    let delivery_id = head.delivery_id.unwrap_or_else(|| derived_id(&event, bytes));
    Ok(InboundEvent {
        ingress: Ingress::Webhook,
        upstream: Upstream { event, action: happening.action, delivery_id: Some(delivery_id), verified },
        actor: happening.actor,
        item: happening.item,
        content: happening.content,
    })
}

/// Whether the signature proves where the bytes are from; an error when they must not be looked into.
fn origin(shared: &Shared, headers: &HeaderMap, bytes: &[u8]) -> Result<bool, Rejected> {
    match shared.secret() {
        Some(secret) => signature::verify(headers, &secret, bytes).map(|()| true).map_err(|error| {
            let outcome = match error {
                SignatureError::Unsigned => NoteOutcome::Unsigned,
                SignatureError::Invalid => NoteOutcome::InvalidSignature,
            };
            Rejected::new(outcome, StatusCode::UNAUTHORIZED, error)
        }),
        None if !shared.config.allow_unsigned => Err(Rejected::new(
            // It was there at start, or the source would not run; the upstream may try again once it is back.
            NoteOutcome::Unsigned,
            StatusCode::SERVICE_UNAVAILABLE,
            "no secret is set to check the signature with",
        )),
        None if is_from_a_web_page(headers) => Err(Rejected::new(
            NoteOutcome::Unsigned,
            StatusCode::FORBIDDEN,
            "unsigned deliveries are not taken from web pages",
        )),
        None => Ok(false),
    }
}

/// The answer to what the host did not take (GHW-3): GitHub shows it as failed, and it can be sent again.
fn refused(refusal: &Refused) -> Response {
    let text = refusal.to_string();
    let later =
        |word, text: &str, seconds| with(error(StatusCode::SERVICE_UNAVAILABLE, word, text), RETRY_AFTER, seconds);
    match refusal {
        Refused::TooLarge { .. } => error(StatusCode::PAYLOAD_TOO_LARGE, "too-large", &text),
        Refused::Overloaded { .. } => later("overloaded", &text, "5"),
        Refused::Stopping => later("stopping", &text, "5"),
        // Its reason speaks of this machine; it is for the log, not for the upstream.
        Refused::NotRecorded { .. } => later("not-recorded", "the event could not be recorded", "30"),
    }
}

/// Whether a browser sent this on behalf of a page. While nothing is signed, a page that calls itself this machine's name
/// could otherwise pose as GitHub.
fn is_from_a_web_page(headers: &HeaderMap) -> bool {
    let foreign = |host: &HeaderValue| {
        let host = host.to_str().unwrap_or_default();
        let name = match host.rsplit_once(':') {
            Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => name,
            _ => host,
        };
        !is_loopback(name)
    };
    headers.contains_key(ORIGIN) || headers.get(HOST).is_some_and(foreign)
}

/// An id for a delivery that came without one: the same bytes are the same delivery.
fn derived_id(event: &str, body: &[u8]) -> String {
    let digest = Sha256::new().chain_update(event).chain_update(b"\n").chain_update(body).finalize();
    format!("sha256:{}", hex::encode(digest))
}

/// A short header value; one that is empty, not text or too long counts as absent.
fn word(headers: &HeaderMap, name: &str) -> Option<String> {
    let value = headers.get(name)?.to_str().ok()?.trim();
    (!value.is_empty() && value.len() <= MAX_WORD).then(|| value.to_owned())
}

fn status(code: StatusCode, status: &str) -> Response {
    (code, Json(json!({ "status": status }))).into_response()
}

/// An error by its code, which programs may rely on, and in words.
fn error(code: StatusCode, word: &str, text: &str) -> Response {
    let mut error = json!({ "code": word, "message": text });
    if code == StatusCode::UNAUTHORIZED {
        error["hint"] =
            json!("the secret on GitHub's webhook page must be the one that webhooks.ghWebhook.secretEnv names");
    }
    (code, Json(json!({ "status": text, "detail": text, "error": error }))).into_response()
}

/// The code of an error.
fn word_of(outcome: NoteOutcome, code: StatusCode) -> &'static str {
    match (outcome, code) {
        (_, StatusCode::REQUEST_TIMEOUT) => "timeout",
        (_, StatusCode::FORBIDDEN) => "forbidden",
        (_, StatusCode::SERVICE_UNAVAILABLE) => "no-secret",
        (_, StatusCode::INTERNAL_SERVER_ERROR) => "internal",
        (NoteOutcome::Unsigned, _) => "unsigned",
        (NoteOutcome::InvalidSignature, _) => "invalid-signature",
        (NoteOutcome::TooLarge, _) => "too-large",
        (NoteOutcome::InvalidPayload | NoteOutcome::Ignored, _) => "invalid-payload",
    }
}

fn with(mut response: Response, name: HeaderName, value: &'static str) -> Response {
    response.headers_mut().insert(name, HeaderValue::from_static(value));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ghw_3_what_the_host_refuses_is_never_acknowledged() {
        let answer = |refusal| {
            let response = refused(&refusal);
            (response.status().as_u16(), response.headers().contains_key(RETRY_AFTER))
        };
        assert_eq!(answer(Refused::Overloaded { pending: 9 }), (503, true));
        assert_eq!(answer(Refused::NotRecorded { reason: "disk full".to_owned() }), (503, true));
        assert_eq!(answer(Refused::Stopping), (503, true));
        assert_eq!(answer(Refused::TooLarge { size: 2, limit: 1 }), (413, false));
    }

    #[test]
    fn a_delivery_without_an_id_has_one_of_its_bytes() {
        assert_eq!(derived_id("issues", b"{}"), derived_id("issues", b"{}"));
        assert_ne!(derived_id("issues", b"{}"), derived_id("issues", b"{ }"));
        assert_ne!(derived_id("issues", b"{}"), derived_id("ping", b"{}"));
    }
}
