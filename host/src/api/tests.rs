//! The API, tried over its router.

use axum::{Router, body::Body};
use http::{Request, StatusCode, header};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tempfile::TempDir;
use tower::ServiceExt;

use super::{ROUTES, boundary, router};
use crate::{OpenOptions, TheLoop};

struct Api {
    inside: Router,
    outside: Router,
    host: TheLoop,
    _folder: TempDir,
}

const PORT: u16 = 4114;

impl Api {
    async fn open() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("config.yaml");
        std::fs::write(&config, "state: {root: ./state}\nservice: {cors: {allowOrigins: ['https://dash.example']}}\n")
            .unwrap();
        let options = OpenOptions {
            config: Some(config),
            cwd: folder.path().to_owned(),
            environment: Vec::new(),
            program: "/bin/false".into(),
            source: "test",
        };
        let host = TheLoop::open(options).await.unwrap();
        let inside = router(host.clone());
        let outside = boundary(inside.clone(), &host.loaded().config.service, None, None);
        Self { inside, outside, host, _folder: folder }
    }
}

async fn answer(router: &Router, request: Request<Body>) -> (StatusCode, Value) {
    let response = router.clone().oneshot(request).await.unwrap();
    let star = response.headers().get(header::ACCESS_CONTROL_ALLOW_ORIGIN).is_some_and(|origin| origin == "*");
    assert!(!star, "no answer is for every origin");
    let status = response.status();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    (status, serde_json::from_slice(&bytes).unwrap_or(Value::Null))
}

fn request(method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Request<Body> {
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(Body::from(body.to_owned())).unwrap()
}

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

#[tokio::test]
async fn the_answers_that_existing_clients_rely_on() {
    let api = Api::open().await;
    let json = [("content-type", "application/json")];
    let get = |path: &'static str| answer(&api.inside, request("GET", path, &[], ""));
    let post = |path: &'static str, body: Value| {
        let request = request("POST", path, &json, &body.to_string());
        answer(&api.inside, request)
    };
    for (path, status) in [
        ("/api/v1/work-items", 200),
        ("/api/v1/work-items/one?ref=github:octo/lab%2399", 404),
        ("/api/v1/work-items/one?ref=bad", 400),
        ("/api/v1/work-items/one", 422),
        ("/api/v1/sessions", 200),
        ("/api/v1/sessions?status=active", 200),
        ("/api/v1/sessions?status=nonsense", 400),
        ("/api/v1/sessions/one?ref=github:octo/lab%2399", 404),
        ("/api/v1/events?limit=0&type=nope", 200),
        ("/api/v1/events?limit=-1", 422),
        ("/api/v1/events?limit=x", 422),
        ("/api/v1/events?level=nonsense", 400),
        ("/api/v1/events/types", 200),
        ("/api/v1/daemons", 200),
        ("/api/v1/plugins", 200),
        ("/api/v1/nope", 404),
        ("/api/v1/graph/x", 404),
    ] {
        let (found, body) = get(path).await;
        assert_eq!(found.as_u16(), status, "{path}: {body}");
        if status >= 400 {
            assert!(body["error"]["code"].is_string() && body["error"]["message"].is_string(), "{path}: {body}");
            assert_eq!(body["detail"].is_array(), status == 422, "{path}: {body}");
        }
    }
    for (path, body, status) in [
        ("/api/v1/sessions/control", json!({"ref": "github:octo/lab#1", "verb": "nonsense"}), 400),
        ("/api/v1/sessions/control", json!({"ref": "bad", "verb": "pause"}), 400),
        ("/api/v1/sessions/control", json!({"verb": "pause"}), 422),
        ("/api/v1/sessions/control", json!([]), 422),
        ("/api/v1/sessions/register", json!({"ref": "github:octo/lab#2"}), 422),
        ("/api/v1/sessions/close", json!({"ref": 5}), 422),
    ] {
        let (found, answer) = post(path, body.clone()).await;
        assert_eq!(found.as_u16(), status, "{path} {body}: {answer}");
    }
    let (status, _) = answer(&api.inside, request("DELETE", "/api/v1/sessions", &[], "")).await;
    assert_eq!(status, StatusCode::METHOD_NOT_ALLOWED);
    let (status, _) = answer(&api.inside, request("POST", "/api/v1/sessions/close", &json, &"x".repeat(3 << 20))).await;
    assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE, "BND-3");
}

/// A route that is served and not in the list, or the other way round, would escape the policy table.
#[tokio::test]
async fn sec_1_the_list_of_routes_is_what_is_served() {
    let api = Api::open().await;
    for (method, path) in ROUTES {
        let (status, body) =
            answer(&api.inside, request(method, path, &[("content-type", "application/json")], "{}")).await;
        assert!(
            status != StatusCode::METHOD_NOT_ALLOWED && body["error"]["code"] != "no-such-route",
            "{method} {path}: {status}"
        );
    }
    let source = include_str!("mod.rs");
    let routed = source.matches(".route(\"").count();
    assert_eq!(routed, ROUTES.len(), "each route is in the list once");
    let committed = include_str!("../admission/policy.txt");
    for (method, path) in ROUTES {
        assert!(
            committed.contains(&format!("route | {method} {path} |")),
            "{method} {path} is not in admission/policy.txt"
        );
    }
}

#[tokio::test]
async fn bnd_1_a_service_with_a_token_answers_only_who_presents_it() {
    let api = Api::open().await;
    let guarded = boundary(api.inside.clone(), &api.host.loaded().config.service, None, Some("a-token".into()));
    for (bearer, expected) in
        [(None, 401), (Some("Bearer wrong"), 401), (Some("a-token"), 401), (Some("Bearer a-token"), 200)]
    {
        let mut headers = vec![("host", "127.0.0.1:4114")];
        headers.extend(bearer.map(|bearer| ("authorization", bearer)));
        let (status, _) = answer(&guarded, request("GET", "/api/v1/sessions", &headers, "")).await;
        assert_eq!(status.as_u16(), expected, "{bearer:?}");
    }
}
