//! The API, tried over its router.

mod boundary;

use std::time::Duration;

use axum::{Router, body::Body};
use http::{Request, StatusCode, header};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tempfile::TempDir;
use tower::ServiceExt;

use super::{Boundary, ROUTES, SOCKET_ROUTES, router};
use crate::{
    OpenOptions, TheLoop,
    eventlog::{self, Query, TypeGlob},
};

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
        let outside = behind(&host, &inside, &format!("127.0.0.1:{PORT}"));
        Self { inside, outside, host, _folder: folder }
    }
}

fn behind(host: &TheLoop, router: &Router, address: &str) -> Router {
    let boundary_of = Boundary::new(&host.loaded().config.service, address.parse().unwrap());
    super::boundary(router.clone(), boundary_of)
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
        if status == 422 {
            let field = &body["detail"][0];
            assert!(field["loc"].is_array() && field["msg"].is_string() && field["type"].is_string(), "{path}: {body}");
            assert_eq!(field["ctx"]["ge"] == 0, path.contains("-1"), "{path}: {body}");
        }
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
    let (status, cut) = answer(&api.inside, request("POST", "/api/v1/sessions/close", &json, "{")).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{cut}");
    assert!(cut["detail"][0]["ctx"]["error"].is_string(), "{cut}");
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
    // Those that are documented are compared with the list where the document is made; these two are not.
    let source = include_str!("mod.rs");
    assert_eq!(source.matches(".route(\"").count(), 2, "each route is documented, but for the document's own");
    let committed = include_str!("../admission/policy.txt");
    for (method, path) in ROUTES {
        assert!(
            committed.contains(&format!("route | {method} {path} |")),
            "{method} {path} is not in admission/policy.txt"
        );
    }
    for (method, path) in SOCKET_ROUTES {
        assert!(committed.contains(&format!("socket | {method} {path} |")), "{method} {path}");
        let (status, _) = answer(&api.inside, request(method, path, &[], "{}")).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{path} is the socket's alone");
    }
}

/// Reads are in the log as well, and so is what was refused; only health is not.
#[tokio::test]
async fn api_4_every_operation_but_health_is_in_the_log() {
    let api = Api::open().await;
    let headers = [("content-type", "application/json"), ("x-the-loop-actor", "ada")];
    let mut expected = Vec::new();
    for (method, path) in ROUTES {
        let (status, _) = answer(&api.inside, request(method, path, &headers, "{}")).await;
        if path != "/api/v1/health" {
            expected.push((format!("{method} {path}"), u64::from(status.as_u16())));
        }
    }
    api.host.log().flush().await;
    let wanted = Query { types: vec![TypeGlob::new("api.request")], limit: None, ..Query::default() };
    let found = eventlog::query(&api.host.loaded().event_log_path(), &wanted).unwrap().records;
    assert!(found.iter().all(|record| record["actor"] == "ada"), "{found:?}");
    let recorded: Vec<(String, u64)> = found
        .iter()
        .map(|record| (record["operation"].as_str().unwrap().to_owned(), record["status"].as_u64().unwrap()))
        .collect();
    assert_eq!(recorded, expected);
}

/// A client that goes away does not take its operation out of the log.
#[tokio::test]
async fn api_4_an_operation_whose_client_left_is_in_the_log() {
    let api = Api::open().await;
    // Nothing decides in a host that does not run, so this command is never answered.
    let command = r#"{"ref": "github:octo/hello#7", "verb": "pause"}"#;
    let asked = request("POST", "/api/v1/sessions/control", &[("content-type", "application/json")], command);
    let waiting = tokio::time::timeout(Duration::from_millis(50), api.inside.clone().oneshot(asked)).await;
    assert!(waiting.is_err(), "{waiting:?}");
    api.host.log().flush().await;
    let wanted = Query { types: vec![TypeGlob::new("api.request")], limit: None, ..Query::default() };
    let found = eventlog::query(&api.host.loaded().event_log_path(), &wanted).unwrap().records;
    assert_eq!(found[0]["status"], 499, "{found:?}");
}

/// A body that trickles in holds a connection for a bounded time only.
#[tokio::test(start_paused = true)]
async fn bnd_3_a_body_that_never_ends_is_not_waited_for() {
    let never = Body::from_stream(futures::stream::pending::<Result<bytes::Bytes, std::io::Error>>());
    let asked = Request::post("/").body(never).unwrap();
    let router: Router = Router::new().route("/", axum::routing::post(|_: super::extract::Body| async { "whole" }));
    let (status, body) = answer(&router, asked).await;
    assert_eq!((status, &body["error"]["code"]), (StatusCode::REQUEST_TIMEOUT, &json!("slow-body")), "{body}");
}
