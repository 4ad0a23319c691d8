//! The boundary of the TCP service (BND-2): no web page can drive or read it, by cross-site POST or by DNS rebinding. Checked
//! before routing, so on unknown paths too. The host's socket has no such check: its file mode is its boundary.

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    middleware::{self, Next},
    response::{IntoResponse, Response},
};
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};

use super::{error::ApiError, extract::SURFACE};
use crate::config::{CorsConfig, ServiceConfig};

/// What a caller over TCP must be, for the address that the service is bound to.
pub struct Boundary {
    /// The names that the service answers to, each with the port.
    hosts: Vec<String>,
    /// Every address of this machine is meant: any literal address with this port is a name of the service. A page that
    /// rebinds a name sends that name, so it never passes as a literal.
    any_literal: Option<u16>,
    origins: Vec<String>,
    cors: CorsConfig,
    token: Option<SecretString>,
}

impl Boundary {
    /// The boundary of a service that is bound to `address`.
    #[must_use]
    pub fn new(service: &ServiceConfig, address: SocketAddr) -> Self {
        let port = address.port();
        let mut names = vec!["127.0.0.1".to_owned(), "localhost".to_owned(), "[::1]".to_owned()];
        for name in [written(&service.host), written(&address.ip().to_string())] {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let mut hosts: Vec<String> = names.iter().map(|name| format!("{name}:{port}")).collect();
        if port == 80 {
            // The one port that clients leave out.
            hosts.extend(names);
        }
        let mut origins: Vec<String> = hosts.iter().map(|host| format!("http://{host}")).collect();
        // `*` is no exact origin: it would let every web page drive the agents, so it opens nothing.
        origins.extend(service.cors.allow_origins.iter().filter(|origin| *origin != "*").cloned());
        let any_literal = address.ip().is_unspecified().then_some(port);
        Self { hosts, any_literal, origins, cors: service.cors.clone(), token: None }
    }

    /// The same, for callers who present `token` only (BND-1).
    #[must_use]
    pub fn with_token(self, token: SecretString) -> Self {
        Self { token: Some(token), ..self }
    }

    fn answers_to(&self, host: &str) -> bool {
        let host = host.to_ascii_lowercase();
        let literal = || host.parse::<SocketAddr>().is_ok_and(|address| Some(address.port()) == self.any_literal);
        self.hosts.contains(&host) || literal()
    }

    fn judge(&self, request: &Request<Body>) -> Result<(), ApiError> {
        let forbidden = |code, message: &str| ApiError::new(StatusCode::FORBIDDEN, code, message);
        let headers = request.headers();
        let host = single(headers, header::HOST).and_then(|host| host.to_str().ok());
        // An absolute request target names a host too.
        let target = request.uri().authority().is_none_or(|authority| self.answers_to(authority.as_str()));
        if !host.is_some_and(|host| self.answers_to(host)) || !target {
            return Err(forbidden("foreign-host", "this service does not answer to that Host"));
        }
        if headers.contains_key(header::ORIGIN) && self.origin(headers).is_none() {
            return Err(forbidden("foreign-origin", "that origin may not call this service")
                .hint("if it is yours, add it to service.cors.allowOrigins as it is sent; `*` opens nothing"));
        }
        if is_preflight(request) {
            return Ok(());
        }
        if !self.token.as_ref().is_none_or(|token| presents(headers, token)) {
            return Err(ApiError::new(StatusCode::UNAUTHORIZED, "unauthorized", "this service wants its token")
                .hint("send `Authorization: Bearer …` with the value of the variable that service.tokenEnv names"));
        }
        let has_body = headers.contains_key(header::TRANSFER_ENCODING)
            || headers.get_all(header::CONTENT_LENGTH).iter().any(|length| length.as_bytes() != b"0");
        if (has_body || request.method() == Method::POST) && !is_json(headers) {
            let message = "a body must be application/json";
            return Err(ApiError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "not-json", message));
        }
        Ok(())
    }

    /// The origin of a request, if it is one that may call.
    fn origin(&self, headers: &HeaderMap) -> Option<HeaderValue> {
        let origin = single(headers, header::ORIGIN)?;
        let text = origin.to_str().ok()?;
        let own_literal =
            || self.any_literal.is_some() && text.strip_prefix("http://").is_some_and(|host| self.answers_to(host));
        (self.origins.iter().any(|allowed| allowed == text) || own_literal()).then(|| origin.clone())
    }

    fn allow(&self, headers: &mut HeaderMap, origin: HeaderValue, preflight: bool) {
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        let yes = HeaderValue::from_static("true");
        if self.cors.allow_credentials {
            headers.insert(header::ACCESS_CONTROL_ALLOW_CREDENTIALS, yes.clone());
        }
        if preflight {
            if self.cors.allow_private_network {
                headers.insert("access-control-allow-private-network", yes);
            }
            // A list that is no header value is left out and so allows nothing.
            if let Ok(methods) = HeaderValue::from_str(&self.cors.allow_methods.join(", ")) {
                headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, methods);
            }
            if let Ok(names) = HeaderValue::from_str(&self.cors.allow_headers.join(", ")) {
                headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, names);
            }
        }
    }
}

/// `router` behind a boundary.
pub fn boundary(router: Router, boundary: Boundary) -> Router {
    // Around the whole router, unknown paths included: a layer of the router itself would run after routing.
    Router::new().fallback_service(router).layer(middleware::from_fn_with_state(Arc::new(boundary), check))
}

async fn check(State(boundary): State<Arc<Boundary>>, mut request: Request, next: Next) -> Response {
    let origin = boundary.origin(request.headers());
    let preflight = is_preflight(&request);
    let mut response = match boundary.judge(&request) {
        Err(error) => error.into_response(),
        Ok(()) if preflight => StatusCode::NO_CONTENT.into_response(),
        Ok(()) => {
            // Which face a call came through is the host's own knowledge: over TCP it is never the command line.
            request.headers_mut().remove(SURFACE);
            next.run(request).await
        }
    };
    if response.status() == StatusCode::UNAUTHORIZED {
        response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    if let Some(origin) = origin {
        boundary.allow(response.headers_mut(), origin, preflight);
    }
    // The answer depends on the origin even where none was sent.
    response.headers_mut().append(header::VARY, HeaderValue::from_static("origin"));
    response
}

fn is_preflight(request: &Request<Body>) -> bool {
    request.method() == Method::OPTIONS && request.headers().contains_key(header::ACCESS_CONTROL_REQUEST_METHOD)
}

/// An address or a name as it is written before a port.
fn written(host: &str) -> String {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    match bare.parse::<IpAddr>() {
        Ok(IpAddr::V6(address)) => format!("[{address}]"),
        Ok(IpAddr::V4(address)) => address.to_string(),
        Err(_) => host.to_ascii_lowercase(),
    }
}

/// A header that was sent exactly once: of two that differ, each reader would believe another.
fn single(headers: &HeaderMap, name: header::HeaderName) -> Option<&HeaderValue> {
    let mut values = headers.get_all(name).iter();
    let first = values.next();
    first.filter(|_| values.next().is_none())
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = single(headers, header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
}

/// Compares digests, so that the time it takes tells nothing of the token.
fn presents(headers: &HeaderMap, token: &SecretString) -> bool {
    let shown = single(headers, header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let shown =
        shown.and_then(|value| value.split_once(' ')).filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
    shown.is_some_and(|(_, shown)| Sha256::digest(shown.trim()) == Sha256::digest(token.expose_secret()))
}
