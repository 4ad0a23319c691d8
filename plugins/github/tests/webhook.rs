//! The ingress source `gh-webhook` from outside: what GitHub, and whoever is not GitHub, gets for what it posts.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests fail the test that calls them")]

mod support;

use axum::{body::Body, http::Request};
use futures::stream;
use serde_json::{Value, json};
use the_loop_conformance::{
    Bench, Kit,
    ingress::{self, Answer, Outside},
};
use the_loop_plugin_api::{
    context::NoteOutcome,
    event::{
        Actor, Comment, CommentChange, CommentSurface, Content, InboundEvent, Ingress, Item, ItemChange, ItemState,
        Upstream,
    },
};
// A crate that is never named registers nothing.
use the_loop_plugin_github as _;

use support::{Post, SECRET, SECRET_ENV, Webhook, case, config};

fn human(login: &str) -> Actor {
    Actor::Human { login: login.to_owned() }
}

struct GitHub;

#[async_trait::async_trait]
impl Outside for GitHub {
    async fn happen(&self, number: u32, routes: Option<axum::Router>) -> Answer {
        let post = Post::new("issue_comment", case("WH-01/payload.json")).id(&format!("delivery-{number}"));
        match support::send(routes.expect("it has routes"), post.signed()).await.0 {
            200..=299 => Answer::Acknowledged,
            _ => Answer::Refused,
        }
    }
}

#[tokio::test]
async fn har_8_gh_webhook_keeps_the_contract() {
    let bench = Bench::new(config(json!({}))).with_secret(SECRET_ENV, SECRET);
    ingress::check(Kit::get(), "gh-webhook", &bench, &GitHub).await.assert();
}

#[tokio::test]
async fn ghw_1_unsigned_and_wrongly_signed_is_refused_before_it_is_decoded() {
    let webhook = Webhook::new(json!({}));
    let post = || Post::new("issue_comment", b"not json".to_vec()).id("d1");
    for (post, code, text) in
        [(post(), "unsigned", "unsigned"), (post().signature("sha256=00"), "invalid-signature", "invalid signature")]
    {
        let (status, mut answer) = webhook.post(post).await;
        assert!(answer["error"]["hint"].take().as_str().is_some_and(|hint| hint.contains("secretEnv")));
        let error = json!({"code": code, "message": text, "hint": null});
        assert_eq!((status, answer), (401, json!({"status": text, "detail": text, "error": error})));
    }
    assert_eq!(webhook.post(post().signed_with("another secret")).await.0, 401);
    assert_eq!(webhook.post(post().signed()).await.0, 400);
    assert_eq!(
        webhook.notes(),
        [
            NoteOutcome::Unsigned,
            NoteOutcome::InvalidSignature,
            NoteOutcome::InvalidSignature,
            NoteOutcome::InvalidPayload
        ]
    );
    let noted = webhook.bench.sink().notes().remove(0);
    assert_eq!((noted.event.as_deref(), noted.delivery_id.as_deref()), (Some("issue_comment"), Some("d1")));
    assert_eq!(webhook.events(), []);
}

#[tokio::test]
async fn ghw_1_json_and_forms_say_the_same() {
    let webhook = Webhook::new(json!({}));
    let body = case("WH-01/payload.json");
    let form = serde_urlencoded::to_string([("payload", String::from_utf8(body.clone()).unwrap())]).unwrap();
    let accepted = (202, json!({"status": "accepted"}));
    assert_eq!(webhook.post(Post::new("issue_comment", body).id("a").signed()).await, accepted);
    let form = Post::new("issue_comment", form.into_bytes()).id("a").media("application/x-www-form-urlencoded");
    assert_eq!(webhook.post(form.signed()).await, accepted);
    let events = webhook.events();
    assert_eq!(events.len(), 2);
    assert_eq!(events[0], events[1]);
}

#[tokio::test]
async fn ghw_1_without_a_secret_only_this_machine_may_post_unsigned() {
    let closed = Webhook::on(Bench::new(config(json!({}))));
    assert!(closed.source.check().is_err());
    assert!(closed.source.health().problem.is_some_and(|problem| problem.contains(SECRET_ENV)));
    let post = || Post::new("issue_comment", case("WH-01/payload.json"));
    assert_eq!(closed.post(post()).await.0, 503);
    assert_eq!(closed.events(), []);

    let open = Webhook::on(Bench::new(config(json!({"allowUnsigned": true}))));
    let warnings = open.source.check().unwrap();
    assert!(warnings.iter().any(|warning| warning.contains("unsigned")), "{warnings:?}");
    assert!(open.source.health().detail.contains("UNSIGNED"));
    assert_eq!(open.post(post()).await.0, 202);
    assert_eq!(open.post(post().header("host", "localhost:8787")).await.0, 202);
    assert!(open.events().iter().all(|event| !event.upstream.verified));
    for (name, value) in [("host", "evil.test"), ("host", "evil.test:8787"), ("origin", "http://evil.test")] {
        assert_eq!(open.post(post().header(name, value)).await.0, 403, "{name}: {value}");
    }
    assert_eq!(open.events().len(), 2);

    let signed = Webhook::new(json!({"allowUnsigned": true}));
    assert_eq!(signed.post(post()).await.0, 401, "with a secret, unsigned is refused whatever is allowed");
    let reachable = Webhook::on(Bench::new(config(json!({"allowUnsigned": true, "host": "0.0.0.0"}))));
    assert!(reachable.source.check().is_err());
}

#[tokio::test]
async fn sec_4_the_default_secret_is_read_when_the_host_fills_in_the_defaults() {
    let name = "THE_LOOP_GH_WEBHOOK_SECRET";
    let bench = Bench::new(json!({"enabled": true, "secretEnv": name})).with_secret(name, SECRET);
    let webhook = Webhook::on(bench);
    assert_eq!(webhook.source.check(), Ok(vec![]));
    assert_eq!(webhook.post(Post::new("ping", b"{}".to_vec()).signed()).await.0, 202);
}

#[tokio::test]
async fn cfg_2_the_first_variable_that_is_set_holds_the_secret() {
    let bench = Bench::new(config(json!({"secretEnv": ["UNSET", SECRET_ENV]}))).with_secret(SECRET_ENV, SECRET);
    let webhook = Webhook::on(bench);
    assert_eq!(webhook.source.check(), Ok(vec![]));
    assert_eq!(webhook.post(Post::new("ping", b"{}".to_vec()).signed()).await.0, 202);
    assert_eq!(webhook.post(Post::new("ping", b"{}".to_vec()).signed_with("another")).await.0, 401);
}

#[tokio::test]
async fn ghw_2_a_sender_that_asks_first_is_told_before_it_sends() {
    let webhook = Webhook::new(json!({}));
    let endless = Body::from_stream(stream::pending::<Result<Vec<u8>, std::io::Error>>());
    let request = Request::post("/gh-webhook").header("expect", "100-continue").header("content-length", "99000000000");
    let (code, answer) = support::send(webhook.routes(), request.body(endless).unwrap()).await;
    assert_eq!((code, &answer["error"]["code"]), (413, &json!("too-large")));
    assert_eq!(webhook.notes(), [NoteOutcome::TooLarge]);
}

#[tokio::test]
async fn ghw_2_a_body_that_never_comes_times_out() {
    // Time is paused once everything is set up: it then jumps to whatever is waited for.
    let webhook = Webhook::new(json!({}));
    tokio::time::pause();
    let endless = Body::from_stream(stream::pending::<Result<Vec<u8>, std::io::Error>>());
    let request = Request::post("/gh-webhook").header("x-github-event", "issues").body(endless).unwrap();
    let started = tokio::time::Instant::now();
    assert_eq!(support::send(webhook.routes(), request).await.0, 408);
    assert_eq!(started.elapsed().as_secs(), 30);
    assert_eq!(webhook.notes(), [NoteOutcome::InvalidPayload]);
}

#[tokio::test]
async fn ghw_1_a_body_that_is_no_json_object_gets_a_whole_400() {
    let webhook = Webhook::new(json!({}));
    let deep = "[".repeat(100_000);
    let bodies: [&[u8]; 9] =
        [b"", b"not json", b"[]", b"[{}]", b"\"text\"", b"null", b"\xff\xfe", b"{\"a\": \"\xff\"}", deep.as_bytes()];
    for body in bodies {
        let (code, answer) = webhook.post(Post::new("issues", body.to_vec()).signed()).await;
        assert_eq!(code, 400, "{answer}");
        assert!(answer["status"].as_str().is_some_and(|status| !status.is_empty()), "{answer}");
        assert_eq!((&answer["error"]["code"], &answer["detail"]), (&json!("invalid-payload"), &answer["status"]));
    }
    // An object that does not say what it is about.
    assert_eq!(webhook.post(Post::new("issues", b"{}".to_vec()).signed()).await.0, 400);
    assert_eq!(webhook.notes(), [NoteOutcome::InvalidPayload; 10]);
    assert_eq!(webhook.events(), []);
}

#[tokio::test]
async fn ghw_3_a_refusal_of_the_host_is_not_acknowledged() {
    let webhook = Webhook::new(json!({}));
    let post = || Post::new("issue_comment", case("WH-01/payload.json")).id("d1").signed();
    webhook.bench.sink().refuse(true);
    let response = support::respond(webhook.routes(), post()).await;
    assert_eq!(response.status(), 503);
    assert!(response.headers().contains_key("retry-after"));
    assert_eq!((webhook.bench.sink().refused(), webhook.events().len()), (1, 0));
    webhook.bench.sink().refuse(false);
    assert_eq!(webhook.post(post()).await, (202, json!({"status": "accepted"})));
    assert_eq!(webhook.events().len(), 1);
    let detail = webhook.source.health().detail;
    assert!(detail.contains("1 accepted, 0 ignored, 1 refused"), "{detail}");
}

#[tokio::test]
async fn ghw_4_events_outside_the_list_and_unknown_ones_are_acknowledged_and_ignored() {
    let ignored = (202, json!({"status": "ignored"}));
    let webhook = Webhook::new(json!({}));
    for kind in ["star", "push", "label", "deployment", "repository", "a_new_one"] {
        assert_eq!(webhook.post(Post::new(kind, b"{\"action\": \"x\"}".to_vec()).signed()).await, ignored, "{kind}");
    }
    assert_eq!(webhook.notes(), [NoteOutcome::Ignored; 6]);
    let listed = Webhook::new(json!({"events": ["issues"]}));
    // What is not asked for is not judged either.
    assert_eq!(listed.post(Post::new("issue_comment", b"{}".to_vec()).signed()).await, ignored);
    assert_eq!(listed.post(Post::new("issue_comment", case("WH-01/payload.json")).signed()).await, ignored);
    assert_eq!(listed.post(Post::new("issues", case("WH-05/1-opened.json")).signed()).await.1["status"], "accepted");
    assert_eq!((listed.notes(), listed.events().len()), (vec![NoteOutcome::Ignored; 2], 1));
    assert!(matches!(&listed.source.check().unwrap()[..], [warning] if warning.contains("pull_request")));
}

#[tokio::test]
async fn ghw_1_other_paths_and_methods_are_answered_as_before() {
    let webhook = Webhook::new(json!({"path": "/hooks/{id}"}));
    let ask = async |method: &str, path: &str| {
        let request = Request::builder().method(method).uri(path).body(Body::empty()).unwrap();
        webhook.post(request).await
    };
    let (ok, lost) = ((200, json!({"status": "ok"})), (404, json!({"status": "not found"})));
    assert_eq!(ask("GET", "/health").await, ok);
    assert_eq!(ask("GET", "/healthz").await, ok);
    assert_eq!(ask("GET", "/hooks/%7Bid%7D").await, lost);
    for (method, path) in [("GET", "/"), ("POST", "/gh-webhook"), ("POST", "/hooks/x"), ("POST", "/health")] {
        assert_eq!(ask(method, path).await, lost, "{method} {path}");
    }
    let webhook = Webhook::new(json!({}));
    let ask = async |method: &str| {
        let request = Request::builder().method(method).uri("/gh-webhook").body(Body::empty()).unwrap();
        webhook.post(request).await.0
    };
    assert_eq!((ask("GET").await, ask("PUT").await, ask("OPTIONS").await), (404, 405, 405));
}

/// Item `number` of octo/hello as the cases show it.
fn item(number: u64, labels: &[&str]) -> Item {
    Item {
        reference: format!("github:octo/hello#{number}").parse().unwrap(),
        tracker_id: Some(format!("7000{number}")),
        title: "Sort the list".to_owned(),
        url: format!("https://github.test/octo/hello/issues/{number}"),
        state: ItemState::Open,
        labels: labels.iter().map(|&label| label.to_owned()).collect(),
        author: human("octo-admin"),
        is_pull_request: false,
        links: Vec::new(),
    }
}

fn commented(id: u64, body: &str) -> InboundEvent {
    let comment = Comment {
        id: id.to_string(),
        url: format!("https://github.test/octo/hello/issues/7#issuecomment-{id}"),
        author: human("octo-admin"),
        body: body.to_owned(),
        updated_at: Some("2026-11-30T10:00:00Z".parse().unwrap()),
        surface: CommentSurface::Conversation,
    };
    expected("issue_comment", "created", 7, &["auto"], Content::Comment { comment, change: CommentChange::Created })
}

fn expected(event: &str, action: &str, number: u64, labels: &[&str], content: Content) -> InboundEvent {
    InboundEvent {
        ingress: Ingress::Webhook,
        upstream: Upstream {
            event: event.to_owned(),
            action: action.to_owned(),
            delivery_id: Some("11111111-1111-4111-8111-111111111111".to_owned()),
            verified: true,
        },
        actor: human("octo-admin"),
        item: Some(item(number, labels)),
        content,
    }
}

#[tokio::test]
async fn ghw_4_the_cases_are_read_as_what_they_are() {
    let changed = |action: &str, change| expected("issues", action, 8, &["auto", "bug"], Content::Item { change });
    let labeled = |label: &str| changed("labeled", ItemChange::Labeled { label: Some(label.to_owned()) });
    let cases = [
        ("WH-01/payload.json", commented(801, "the-loop start")),
        ("WH-05/1-opened.json", changed("opened", ItemChange::Opened)),
        ("WH-05/2-labeled-auto.json", labeled("auto")),
        ("WH-05/3-labeled-bug.json", labeled("bug")),
        ("KW-03/crlf.json", commented(814, "the-loop start\r\n\r\nKeep the public names.\r\nRun the tests.\r\n")),
        ("KW-03/crlf-lone-line.json", commented(815, "Some prose first.\r\nthe-loop pause\r\n")),
        (
            "KW-05/self.json",
            commented(
                831,
                "I opened a session. To stop it, comment `the-loop stop`; to hold it, write\nthe-loop pause\n\
                 <!-- agent-comment -->",
            ),
        ),
        ("KW-05/human-same-account.json", commented(832, "the-loop pause")),
    ];
    for (file, expected) in cases {
        let webhook = Webhook::new(json!({}));
        let post = Post::new(&expected.upstream.event, case(file)).id("11111111-1111-4111-8111-111111111111");
        assert_eq!(webhook.post(post.signed()).await, (202, json!({"status": "accepted"})), "{file}");
        assert_eq!(webhook.events(), [expected], "{file}");
    }
}

#[tokio::test]
async fn kw_04_logins_and_bots_are_passed_on_as_they_are_spelled() {
    let actors = [
        ("KW-04/1-octo-admin.json", human("octo-admin")),
        ("KW-04/2-OCTO-ADMIN.json", human("OCTO-ADMIN")),
        ("KW-04/3-octo-admin-2.json", human("octo-admin-2")),
        ("KW-04/4-octo-admin_bot.json", Actor::Bot { login: "octo-admin[bot]".to_owned() }),
        ("KW-04/5-0cto-admin.json", human("0cto-admin")),
    ];
    for (file, actor) in actors {
        let webhook = Webhook::new(json!({}));
        webhook.post(Post::new("issue_comment", case(file)).signed()).await;
        assert_eq!(webhook.events().remove(0).actor, actor, "{file}");
    }
}

#[tokio::test]
async fn wh_01_a_repeat_has_the_id_of_what_it_repeats() {
    let webhook = Webhook::new(json!({}));
    let body = case("WH-01/payload.json");
    for id in ["one", "one", "", ""] {
        assert_eq!(webhook.post(Post::new("issue_comment", body.clone()).id(id).signed()).await.0, 202);
    }
    let ids: Vec<_> = webhook.events().into_iter().map(|event| event.upstream.delivery_id.unwrap()).collect();
    assert_eq!((&ids[0], &ids[1], &ids[2]), (&"one".to_owned(), &"one".to_owned(), &ids[3]));
    assert!(ids[2].starts_with("sha256:"), "{ids:?}");
}

/// A signed comment delivery of about this many bytes.
fn large(bytes: usize) -> Post {
    let mut payload: Value = serde_json::from_slice(&case("WH-01/payload.json")).unwrap();
    payload["comment"]["body"] = Value::String("x".repeat(bytes));
    Post::new("issue_comment", payload.to_string().into_bytes())
}

#[tokio::test]
async fn ghw_2_githubs_largest_bodies_are_taken_and_more_is_a_whole_413() {
    const MB: usize = 1024 * 1024;
    let webhook = Webhook::new(json!({}));
    let server = webhook.serve().await;
    let (code, answer) = server.post(large(24 * MB)).await;
    assert_eq!((code, answer), (202, json!({"status": "accepted"})));
    assert_eq!(webhook.events().len(), 1);
    // What is over by much is still being written when the answer is known.
    for size in [26 * MB, 60 * MB] {
        let (code, answer) = server.post(large(size)).await;
        assert_eq!(code, 413);
        assert!(answer["status"].is_string(), "{answer}");
    }
    assert_eq!((webhook.notes(), webhook.events().len()), (vec![NoteOutcome::TooLarge; 2], 1));
}

#[tokio::test]
async fn ghw_2_a_delivery_that_is_cut_off_gets_a_whole_400() {
    let webhook = Webhook::new(json!({}));
    let server = webhook.serve().await;
    let (code, answer) = server.cut_off(Post::new("issues", case("WH-05/1-opened.json"))).await;
    assert_eq!(code, 400, "{answer}");
    assert!(answer["status"].is_string(), "{answer}");
    assert_eq!((webhook.notes(), webhook.events().len()), (vec![NoteOutcome::InvalidPayload], 0));
}
