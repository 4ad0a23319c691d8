//! The boundary of the TCP service (BND-2): no web page can drive or read it, by cross-site POST or by DNS rebinding. Checked
//! before routing, so on unknown paths too. The host's socket has no such check: its file mode is its boundary.

use std::{net::SocketAddr, sync::Arc};

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

use super::error::ApiError;
use crate::config::{CorsConfig, ServiceConfig};

struct Boundary {
    hosts: Vec<String>,
    origins: Vec<String>,
    cors: CorsConfig,
    /// The token that callers must present, on a bind beyond loopback without a gateway (BND-1).
    token: Option<SecretString>,
}

/// `router` behind the boundary of the address that it is served on.
pub fn boundary(
    router: Router,
    service: &ServiceConfig,
    address: Option<SocketAddr>,
    token: Option<SecretString>,
) -> Router {
    let port = address.map_or(service.port, |address| address.port());
    let mut names =
        vec!["127.0.0.1".to_owned(), "localhost".to_owned(), "[::1]".to_owned(), service.host.to_ascii_lowercase()];
    names.dedup();
    let hosts: Vec<String> = names.iter().map(|name| format!("{name}:{port}")).collect();
    let mut origins: Vec<String> = hosts.iter().map(|host| format!("http://{host}")).collect();
    origins.extend(service.cors.allow_origins.iter().cloned());
    let boundary = Arc::new(Boundary { hosts, origins, cors: service.cors.clone(), token });
    // Around the whole router, unknown paths included: a layer of the router itself would run after routing.
    Router::new().fallback_service(router).layer(middleware::from_fn_with_state(boundary, check))
}

async fn check(State(boundary): State<Arc<Boundary>>, request: Request, next: Next) -> Response {
    let origin = request.headers().get(header::ORIGIN).cloned();
    let allowed = origin.as_ref().and_then(|origin| boundary.allowed_origin(origin));
    if let Err(error) = boundary.judge(&request, origin.as_ref(), allowed.is_some()) {
        return error.into_response();
    }
    let preflight =
        request.method() == Method::OPTIONS && request.headers().contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
    let mut response = if preflight { StatusCode::NO_CONTENT.into_response() } else { next.run(request).await };
    if let Some(origin) = allowed {
        boundary.allow(response.headers_mut(), origin, preflight);
    }
    response
}

impl Boundary {
    fn judge(
        &self,
        request: &Request<Body>,
        origin: Option<&HeaderValue>,
        origin_allowed: bool,
    ) -> Result<(), ApiError> {
        let mut hosts = request.headers().get_all(header::HOST).iter();
        let host = hosts.next().and_then(|host| host.to_str().ok()).map(str::to_ascii_lowercase);
        let known = host.is_some_and(|host| self.hosts.contains(&host)) && hosts.next().is_none();
        // An absolute request target names a host too.
        let target = request.uri().authority().map(|authority| authority.as_str().to_ascii_lowercase());
        if !known || target.is_some_and(|target| !self.hosts.contains(&target)) {
            return Err(ApiError::new(
                StatusCode::FORBIDDEN,
                "foreign-host",
                "this service does not answer to that Host",
            ));
        }
        if origin.is_some() && !origin_allowed {
            let hint = "add the exact origin to service.cors.allowOrigins if it is yours";
            return Err(ApiError::new(
                StatusCode::FORBIDDEN,
                "foreign-origin",
                "that origin may not call this service",
            )
            .hint(hint));
        }
        let headers = request.headers();
        if let Some(token) = &self.token
            && !presents(headers, token)
            && request.method() != Method::OPTIONS
        {
            return Err(ApiError::new(
                StatusCode::UNAUTHORIZED,
                "unauthorized",
                "present the service's token as a bearer",
            ));
        }
        let has_body = headers.contains_key(header::TRANSFER_ENCODING)
            || headers.get(header::CONTENT_LENGTH).is_some_and(|length| length.as_bytes() != b"0");
        if (has_body || request.method() == Method::POST) && !is_json(headers) && request.method() != Method::OPTIONS {
            return Err(ApiError::new(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "not-json",
                "a body must be application/json",
            ));
        }
        Ok(())
    }

    fn allowed_origin(&self, origin: &HeaderValue) -> Option<HeaderValue> {
        let text = origin.to_str().ok()?;
        self.origins.iter().any(|allowed| allowed == text).then(|| origin.clone())
    }

    fn allow(&self, headers: &mut HeaderMap, origin: HeaderValue, preflight: bool) {
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.append(header::VARY, HeaderValue::from_static("origin"));
        let yes = HeaderValue::from_static("true");
        if self.cors.allow_credentials {
            headers.insert(header::ACCESS_CONTROL_ALLOW_CREDENTIALS, yes.clone());
        }
        if preflight {
            if self.cors.allow_private_network {
                headers.insert("access-control-allow-private-network", yes);
            }
            // Both lists were validated with the config; one that is no header value is left out and so allows nothing.
            if let Ok(methods) = HeaderValue::from_str(&self.cors.allow_methods.join(", ")) {
                headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, methods);
            }
            if let Ok(names) = HeaderValue::from_str(&self.cors.allow_headers.join(", ")) {
                headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, names);
            }
        }
    }
}

/// Whether the bearer is the token. Digests are compared, so that the time taken says nothing of where they differ.
fn presents(headers: &HeaderMap, token: &SecretString) -> bool {
    let said = headers
        .get(header::AUTHORIZATION)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.strip_prefix("Bearer "));
    said.is_some_and(|said| Sha256::digest(said.as_bytes()) == Sha256::digest(token.expose_secret().as_bytes()))
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
}
