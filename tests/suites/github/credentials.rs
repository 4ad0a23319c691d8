//! What the tracker authenticates with, as the GitHub on loopback sees it.

use std::{path::PathBuf, time::Duration};

use serde_json::{Value, json};
use the_loop_conformance::Bench;
use the_loop_tests::github::{FakeGithub, Fault, TOKEN};

use crate::{TOKEN_ENV, item, on, post};

fn key(name: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/app")).join(name)
}

/// A tracker with whatever else `api` says.
fn bench(fake: &FakeGithub, api: &Value) -> Bench {
    let mut config = json!({
        "api": {"baseUrl": fake.base(), "tokenEnv": [TOKEN_ENV], "writeIntervalMilliseconds": 1},
        "cli": {"binary": "hub"},
    });
    config["api"].as_object_mut().unwrap().extend(api.as_object().unwrap().clone());
    Bench::new(config)
}

fn app(id: &Value, key_file: &str) -> Value {
    json!({"app": {"id": id, "keyFile": key(key_file), "installationId": 77}})
}

/// What `doctor` finds: whether it is well, and in which words.
async fn found(bench: &Bench) -> (bool, String) {
    let mut findings = on(bench).doctor().await;
    assert_eq!(findings.len(), 1);
    let finding = findings.remove(0);
    (finding.ok, finding.text)
}

fn fake() -> FakeGithub {
    let fake = FakeGithub::start();
    fake.item(7, &["auto"], None);
    fake
}

#[tokio::test]
async fn ght_1_an_app_acts_with_tokens_of_its_installation_that_are_replaced_in_time() {
    let fake = fake();
    fake.app("12", 77, &key("not-a-real-key.pem"), Duration::from_secs(3600));
    // An App that is named is what the operator wants to act as, whatever else is set.
    let bench = bench(&fake, &app(&json!(12), "not-a-real-key.pem")).with_secret(TOKEN_ENV, TOKEN);
    let tracker = on(&bench);
    for key in ["one", "two"] {
        tracker.comment(&post(7, key, key)).await.unwrap();
    }
    assert_eq!((fake.comments(7).len(), fake.count("POST /app/installations/77/access_tokens")), (2, 1));
    let (ok, text) = found(&bench).await;
    assert!(ok && text.contains("GitHub App 12, installation 77") && text.contains("4999"), "{text}");
    // One that has nearly ended is not used: each request then asks for its own.
    fake.app("12", 77, &key("not-a-real-key.pem"), Duration::from_secs(60));
    let tracker = on(&bench.restarted());
    let before = fake.count("access_tokens");
    for _ in 0..2 {
        tracker.look_up(&item(7)).await.unwrap();
    }
    assert_eq!(fake.count("access_tokens"), before + 2);
}

#[tokio::test]
async fn ght_1_a_token_that_github_does_not_take_any_more_is_replaced_by_the_next_request() {
    let fake = fake();
    fake.app("12", 77, &key("not-a-real-key.pem"), Duration::from_secs(3600));
    let bench = bench(&fake, &app(&json!("12"), "not-a-real-key.pem"));
    let tracker = on(&bench);
    tracker.look_up(&item(7)).await.unwrap();
    fake.fault("GET /repos", Fault::Status(401, vec![], "Bad credentials"));
    assert!(tracker.look_up(&item(7)).await.is_err());
    tracker.look_up(&item(7)).await.unwrap();
    assert_eq!(fake.count("access_tokens"), 2);
}

#[tokio::test]
async fn ght_1_an_app_that_cannot_act_says_why_and_sends_no_comment() {
    let fake = fake();
    fake.app("12", 77, &key("not-a-real-key.pem"), Duration::from_secs(3600));
    for (app, wanted) in [
        (app(&json!(13), "not-a-real-key.pem"), "integrations.github.api.app"),
        (app(&json!(12), "no-such-file.pem"), "integrations.github.api.app.keyFile"),
        (app(&json!(12), "../../Cargo.toml"), "integrations.github.api.app.keyFile"),
    ] {
        let bench = bench(&fake, &app);
        let error = on(&bench).comment(&post(7, "x", "text")).await.unwrap_err().to_string();
        assert!(error.contains(wanted), "{error}");
        let (ok, text) = found(&bench).await;
        assert!(!ok && text.contains(wanted), "{text}");
    }
    assert!(fake.comments(7).is_empty());
}

#[tokio::test]
async fn ght_1_without_a_variable_the_command_line_tool_is_asked_for_this_server() {
    let fake = fake();
    let host = fake.base().trim_start_matches("http://").to_owned();
    let without = bench(&fake, &json!({}));
    let (ok, text) = found(&without).await;
    assert!(ok, "whoever works with other trackers needs none: {text}");
    for part in [TOKEN_ENV, "hub auth login", "integrations.github.api.app"] {
        assert!(text.contains(part), "{text}");
    }
    let error = on(&without).comment(&post(7, "x", "text")).await.unwrap_err().to_string();
    assert!(error.contains(TOKEN_ENV), "{error}");
    let bench = without.restarted().with_program(&format!("hub auth token --hostname {host}"), TOKEN);
    on(&bench).comment(&post(7, "y", "text")).await.unwrap();
    assert_eq!(fake.comments(7).len(), 1);
    let (ok, text) = found(&bench).await;
    assert!(ok && text.contains("`hub auth token`") && !text.contains(TOKEN), "{text}");
    // A variable comes first.
    let (ok, text) = found(&bench.restarted().with_secret(TOKEN_ENV, "not-the-token")).await;
    assert!(!ok && text.contains(&format!("the token in {TOKEN_ENV}")) && text.contains("401"), "{text}");
}
