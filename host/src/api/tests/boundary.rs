//! What a caller over TCP must be (BND-1, BND-2, case API-01).

use axum::{Router, response::IntoResponse, routing::any};
use http::{HeaderMap, StatusCode, header};
use secrecy::SecretString;
use tower::ServiceExt;

use super::{Api, PORT, answer, request};
use crate::{
    api::{self, Boundary, ROUTES},
    config::ServiceConfig,
};

/// API-01: every route, and paths that are none, refuse a foreign page, and nothing happens.
#[tokio::test]
async fn bnd_2_api_01_no_foreign_page_reaches_any_route() {
    let api = Api::open().await;
    let host = format!("127.0.0.1:{PORT}");
    let others = [
        ("POST", "/api/v1/restart"),
        ("POST", "/mcp"),
        ("GET", "/api/v1/stream"),
        ("GET", "/"),
        ("POST", "/api/v1/sessions/reply"),
    ];
    for (method, path) in ROUTES.iter().chain(&others) {
        let json = ("content-type", "application/json");
        let body = r#"{"ref": "github:octo/hello#7", "verb": "start", "text": "forged"}"#;
        let refused: [(&str, Vec<(&str, &str)>); 6] = [
            ("foreign origin", vec![("host", &host), json, ("origin", "https://evil.example")]),
            ("null origin", vec![("host", &host), json, ("origin", "null")]),
            ("foreign host", vec![("host", "rebound.example:4114"), json]),
            ("host without the port", vec![("host", "127.0.0.1"), json]),
            ("another port", vec![("host", "127.0.0.1:4115"), json]),
            ("no host", vec![json]),
        ];
        for (why, headers) in refused {
            let (status, _) = answer(&api.outside, request(method, path, &headers, body)).await;
            assert_eq!(status, StatusCode::FORBIDDEN, "{why}: {method} {path}");
        }
        if *method == "POST" {
            for kind in ["text/plain", "application/x-www-form-urlencoded", ""] {
                let (status, _) =
                    answer(&api.outside, request(method, path, &[("host", &host), ("content-type", kind)], body)).await;
                assert_eq!(status, StatusCode::UNSUPPORTED_MEDIA_TYPE, "{kind}: {method} {path}");
            }
            let (status, _) = answer(&api.outside, request(method, path, &[("host", &host)], "")).await;
            assert_eq!(status, StatusCode::UNSUPPORTED_MEDIA_TYPE, "no body: {method} {path}");
        }
    }
    assert!(api.host.work_items().is_empty(), "nothing happened");
}

#[tokio::test]
async fn bnd_2_own_names_and_listed_origins_are_answered() {
    let api = Api::open().await;
    for host in ["127.0.0.1:4114", "localhost:4114", "LOCALHOST:4114", "[::1]:4114"] {
        for origin in [None, Some("http://127.0.0.1:4114"), Some("http://localhost:4114"), Some("https://dash.example")]
        {
            let mut headers = vec![("host", host)];
            headers.extend(origin.map(|origin| ("origin", origin)));
            let (status, body) = answer(&api.outside, request("GET", "/api/v1/health", &headers, "")).await;
            assert_eq!((status, body["status"].as_str()), (StatusCode::OK, Some("ok")), "{headers:?}");
        }
    }
}

/// A service of nothing but its boundary, which answers with the headers that reach it.
fn guarded(service: &ServiceConfig, address: &str, token: Option<&str>) -> Router {
    let inner = Router::new().fallback(any(|headers: HeaderMap| async move { format!("{headers:?}").into_response() }));
    let boundary = Boundary::new(service, address.parse().unwrap());
    let boundary = match token {
        Some(token) => boundary.with_token(SecretString::from(token)),
        None => boundary,
    };
    api::boundary(inner, boundary)
}

async fn status(router: &Router, headers: &[(&str, &str)]) -> u16 {
    answer(router, request("GET", "/api/v1/health", headers, "")).await.0.as_u16()
}

#[tokio::test]
async fn bnd_2_names_are_those_of_the_address_that_is_bound() {
    let six = ServiceConfig { host: "::1".to_owned(), ..ServiceConfig::default() };
    let any = ServiceConfig { host: "0.0.0.0".to_owned(), ..ServiceConfig::default() };
    let loopback = ServiceConfig::default();
    for (service, address, host, expected) in [
        (&six, "[::1]:4114", "[::1]:4114", 200),
        (&six, "[::1]:4114", "::1:4114", 403),
        (&loopback, "127.0.0.1:80", "localhost", 200),
        (&loopback, "127.0.0.1:4114", "localhost", 403),
        (&loopback, "127.0.0.1:4114", "192.0.2.7:4114", 403),
        (&any, "0.0.0.0:4114", "192.0.2.7:4114", 200),
        (&any, "0.0.0.0:4114", "192.0.2.7:4115", 403),
        (&any, "0.0.0.0:4114", "[2001:db8::7]:4114", 200),
        (&any, "0.0.0.0:4114", "rebound.example:4114", 403),
    ] {
        assert_eq!(status(&guarded(service, address, None), &[("host", host)]).await, expected, "{address}: {host}");
    }
    let exposed = guarded(&any, "0.0.0.0:4114", None);
    for (origin, expected) in [("http://192.0.2.7:4114", 200), ("http://192.0.2.7", 403), ("https://evil.example", 403)]
    {
        assert_eq!(status(&exposed, &[("host", "192.0.2.7:4114"), ("origin", origin)]).await, expected, "{origin}");
    }
}

#[tokio::test]
async fn bnd_2_a_header_that_is_sent_twice_is_none() {
    let service = guarded(&ServiceConfig::default(), "127.0.0.1:4114", None);
    let good = ("host", "127.0.0.1:4114");
    assert_eq!(status(&service, &[good, ("host", "rebound.example:4114")]).await, 403);
    assert_eq!(
        status(&service, &[good, ("origin", "http://localhost:4114"), ("origin", "https://evil.example")]).await,
        403
    );
    let twice = [good, ("content-type", "application/json"), ("content-type", "text/plain")];
    assert_eq!(answer(&service, request("POST", "/", &twice, "{}")).await.0, StatusCode::UNSUPPORTED_MEDIA_TYPE);
    assert_eq!(status(&service, &[good, ("content-length", "0"), ("content-length", "9")]).await, 415);
}

/// `*` in the list is no origin: it would hand the agents to every web page.
#[tokio::test]
async fn bnd_2_a_star_opens_nothing() {
    let mut service = ServiceConfig::default();
    service.cors.allow_origins = vec!["*".to_owned()];
    let service = guarded(&service, "127.0.0.1:4114", None);
    for origin in ["*", "null", "https://evil.example"] {
        assert_eq!(status(&service, &[("host", "127.0.0.1:4114"), ("origin", origin)]).await, 403, "{origin}");
    }
}

#[tokio::test]
async fn bnd_2_preflights_are_answered_for_listed_origins_only() {
    let mut service = ServiceConfig::default();
    service.cors.allow_origins = vec!["https://dash.example".to_owned()];
    // A browser sends no credentials with a preflight, so a token is not asked of it.
    let service = guarded(&service, "127.0.0.1:4114", Some("s3cret"));
    let ask = |origin: &'static str| {
        let headers = [("host", "127.0.0.1:4114"), ("origin", origin), ("access-control-request-method", "POST")];
        service.clone().oneshot(request("OPTIONS", "/api/v1/sessions/control", &headers, ""))
    };
    let yes = ask("https://dash.example").await.unwrap();
    assert_eq!(yes.status(), StatusCode::NO_CONTENT);
    assert_eq!(yes.headers()[header::ACCESS_CONTROL_ALLOW_ORIGIN], "https://dash.example");
    assert_eq!(yes.headers()[header::ACCESS_CONTROL_ALLOW_METHODS], "GET, POST, OPTIONS");
    assert_eq!(yes.headers()[header::ACCESS_CONTROL_ALLOW_HEADERS], "Accept, Content-Type");
    assert_eq!(yes.headers()[header::VARY], "origin");
    assert!(!yes.headers().contains_key(header::ACCESS_CONTROL_ALLOW_CREDENTIALS));
    let no = ask("https://evil.example").await.unwrap();
    assert_eq!(no.status(), StatusCode::FORBIDDEN);
    assert!(!no.headers().contains_key(header::ACCESS_CONTROL_ALLOW_ORIGIN));
}

#[tokio::test]
async fn bnd_1_a_service_with_a_token_answers_only_who_presents_it() {
    let service = guarded(&ServiceConfig::default(), "127.0.0.1:4114", Some("s3cret"));
    let host = ("host", "127.0.0.1:4114");
    assert_eq!(status(&service, &[host, ("authorization", "Bearer s3cret")]).await, 200);
    for shown in ["Bearer s3cre", "Bearer s3cret2", "Bearer", "Basic s3cret", "s3cret", ""] {
        assert_eq!(status(&service, &[host, ("authorization", shown)]).await, 401, "{shown:?}");
    }
    let refused = service.oneshot(request("GET", "/", &[host], "")).await.unwrap();
    assert_eq!(
        (refused.status().as_u16(), &refused.headers()[header::WWW_AUTHENTICATE]),
        (401, &"Bearer".parse().unwrap())
    );
}

#[tokio::test]
async fn bnd_2_nobody_over_tcp_passes_for_the_command_line() {
    let service = guarded(&ServiceConfig::default(), "127.0.0.1:4114", None);
    let headers = [("host", "127.0.0.1:4114"), ("x-the-loop-surface", "cli"), ("x-the-loop-actor", "eve")];
    let reached = service.oneshot(request("GET", "/", &headers, "")).await.unwrap();
    let reached = axum::body::to_bytes(reached.into_body(), 10_000).await.unwrap();
    let reached = String::from_utf8_lossy(&reached);
    assert!(reached.contains("eve") && !reached.contains("surface"), "{reached}");
}
