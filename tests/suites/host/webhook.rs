//! Signed deliveries through the webhook listener of the built binary.

use std::fs;

use serde_json::Value;

use crate::{
    rig::{Host, eventually, is},
    wire::{SECRET, TOP, fixture, host, listener, post},
};

/// WH-01: a repeat acts once, also after a restart; a delivery whose handling failed may be sent again, and then acts.
#[test]
fn wh_01_a_repeated_delivery_acts_once_and_a_failed_one_may_be_sent_again() {
    let host = host("");
    let payload = fixture("WH-01/payload.json").to_string();
    let delivery = "11111111-1111-4111-8111-111111111111";
    let send = |id: &str, body: &str| post(&listener(&host), "issue_comment", id, SECRET, body.as_bytes());
    assert_eq!(send(delivery, &payload), 202);
    assert_eq!(send(delivery, &payload), 202);
    host.wait_for(1, |record| is(record, "session.spawned"));
    host.ok(&["restart"]);
    assert_eq!(send(delivery, &payload), 202);
    host.wait_for(2, |record| is(record, "routing.dropped") && record["reason"] == "duplicate-delivery");
    assert_eq!(host.count(|record| is(record, "control.command")), 1);
    assert_eq!(host.count(|record| is(record, "session.spawned")), 1);
    // The agent cannot be started: the delivery fails, is not remembered as done, and acts when it is sent again.
    let mut other = fixture("WH-01/payload.json");
    other["issue"]["number"] = 9.into();
    other["issue"]["id"] = 70009.into();
    other["comment"]["id"] = 809.into();
    let other = other.to_string();
    fs::rename(host.folder.path().join("work"), host.folder.path().join("away")).unwrap();
    assert_eq!(send("22222222-2222-4222-8222-222222222222", &other), 202);
    host.wait_for(1, |record| is(record, "session.spawn_failed"));
    fs::rename(host.folder.path().join("away"), host.folder.path().join("work")).unwrap();
    assert_eq!(send("22222222-2222-4222-8222-222222222222", &other), 202);
    host.wait_for(1, |record| is(record, "session.spawned") && record["work_item"] == "github:octo/hello#9");
    assert_eq!(host.terminals().len(), 2);
}

/// WH-05: three deliveries of one act, at once: one session, and the later ones are queued to it.
#[test]
fn wh_05_one_act_with_many_events_gives_one_session() {
    let host = host("control: {requireStartCommand: false}");
    let address = listener(&host);
    const ROUNDS: u64 = 20;
    for round in 0..ROUNDS {
        std::thread::scope(|scope| {
            for name in ["1-opened", "2-labeled-auto", "3-labeled-bug"] {
                let address = &address;
                scope.spawn(move || {
                    let mut payload = fixture(&format!("WH-05/{name}.json"));
                    payload["issue"]["number"] = (100 + round).into();
                    payload["issue"]["id"] = (70_100 + round).into();
                    let id = format!("{round:08}-{name}");
                    assert_eq!(post(address, "issues", &id, SECRET, payload.to_string().as_bytes()), 202);
                });
            }
        });
    }
    let rounds = usize::try_from(ROUNDS).unwrap();
    host.wait_for(rounds, |record| is(record, "session.spawned"));
    // Its task, and the two events that came behind the one that spawned it.
    eventually(|| host.all_prompts().len() == rounds * 3)
        .unwrap_or_else(|| panic!("{} prompts", host.all_prompts().len()));
    assert_eq!(host.count(|record| is(record, "session.spawned")), rounds);
    assert_eq!(host.count(|record| is(record, "session.spawn_failed")), 0);
    assert_eq!(host.terminals().len(), rounds);
}

#[test]
fn ghw_1_an_unsigned_or_wrongly_signed_delivery_is_refused_and_logged() {
    let host = host("");
    let payload = fixture("WH-01/payload.json").to_string();
    let address = listener(&host);
    assert_eq!(post(&address, "issue_comment", "x", "another-secret", payload.as_bytes()), 401);
    host.wait_for(1, |record| is(record, "webhook.rejected") && record["reason"] == "invalid-signature");
    assert!(host.terminals().is_empty());
}

/// The same path from GitHub's own public example of a comment, which `make setup` installs.
#[test]
fn ghw_5_a_public_example_comment_drives_the_main_job() {
    let root =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../node_modules/@octokit/webhooks-examples/api.github.com/index.json");
    let Ok(examples) = fs::read_to_string(root) else {
        assert!(std::env::var_os("THE_LOOP_REQUIRE_EXAMPLES").is_none(), "{root} is missing: run `make setup`");
        eprintln!("SKIPPED: the public example payloads are not installed; run `make setup`");
        return;
    };
    let examples: Value = serde_json::from_str(&examples).unwrap();
    let comments = examples.as_array().unwrap().iter().find(|kind| kind["name"] == "issue_comment").unwrap();
    let mut payload =
        comments["examples"].as_array().unwrap().iter().find(|example| example["action"] == "created").unwrap().clone();
    let login = payload["comment"]["user"]["login"].as_str().unwrap().to_owned();
    payload["comment"]["body"] = "the-loop:start-execution".into();
    payload["issue"]["labels"] = serde_json::json!([{"name": "auto"}]);
    payload["issue"]["state"] = "open".into();
    let host = Host::new("", TOP).with_env("CASE_SECRET", SECRET);
    let config = fs::read_to_string(host.config()).unwrap().replace("[octo-admin]", &format!("[{login}]"));
    fs::write(host.config(), config).unwrap();
    host.ok(&["start"]);
    assert_eq!(post(&listener(&host), "issue_comment", "example-1", SECRET, payload.to_string().as_bytes()), 202);
    let spawned = host.wait_for(1, |record| is(record, "session.spawned"));
    eventually(|| host.all_prompts().len() == 1).expect("the agent has its task");
    assert!(spawned[0]["work_item"].as_str().unwrap().starts_with("github:"), "{}", spawned[0]);
}
