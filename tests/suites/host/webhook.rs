//! Signed deliveries through the webhook listener of the built binary.

use std::fs;

use serde_json::Value;

use crate::{
    recorders::Recorders,
    rig::{Host, eventually, is, program, text},
    wire::{SECRET, TOP, comment, fixture, host, idle_host, listener, post},
};

/// WH-01: a repeat acts once, also after a restart; a delivery whose handling failed may be sent again, and then acts.
#[test]
fn wh_01_a_repeated_delivery_acts_once_and_a_failed_one_may_be_sent_again() {
    let host = idle_host("");
    let agent = host.folder.path().join("agent");
    std::os::unix::fs::symlink(program(), &agent).unwrap();
    let config = fs::read_to_string(host.config()).unwrap();
    let (real, link) = (program().display().to_string(), agent.display().to_string());
    fs::write(host.config(), config.replace(&real, &link)).unwrap();
    host.ok(&["start"]);
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
    // The agent's program is missing: the delivery fails, is not remembered as done, and acts when it is sent again.
    let other = comment(9, 809, "the-loop start").to_string();
    let (item, id) = ("github:octo/hello#9", "22222222-2222-4222-8222-222222222222");
    fs::remove_file(&agent).unwrap();
    for failures in 1..=2 {
        assert_eq!(send(id, &other), 202);
        let failed =
            host.wait_for(failures, |record| is(record, "session.spawn_failed") && record["work_item"] == *item);
        assert!(failed[0]["error"].as_str().unwrap().contains(agent.to_str().unwrap()), "{}", failed[0]);
    }
    std::os::unix::fs::symlink(program(), &agent).unwrap();
    assert_eq!(send(id, &other), 202);
    host.wait_for(1, |record| is(record, "session.spawned") && record["work_item"] == *item);
    eventually(|| host.terminals().len() == 2).expect("both are there");
    let spawns = || host.count(|record| is(record, "session.spawned") && record["work_item"] == *item);
    // Behind it in the same queue: what the third one would have done has been done by now.
    assert_eq!(send("33333333-3333-4333-8333-333333333333", &comment(9, 810, "and then").to_string()), 202);
    let conversation = |record: &Value| is(record, "dispatch.succeeded") && record["work_item"] == *item;
    host.wait_for(2, conversation);
    assert_eq!(spawns(), 1, "however often it was sent, and whether the host tried again by itself");
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

/// KW-03: line ends as the web editor sends them. The keyword is seen, and what reaches the pane has line feeds only.
#[test]
fn kw_03_del_2_line_ends_of_the_web_editor_neither_hide_a_keyword_nor_submit() {
    let host = idle_host("");
    let recorders = Recorders::of(&host);
    host.ok(&["start"]);
    let address = listener(&host);
    let send = |id: &str, payload: &Value| {
        assert_eq!(post(&address, "issue_comment", id, SECRET, payload.to_string().as_bytes()), 202);
    };
    let effect = |effect: &str| {
        host.wait_for(1, |record| is(record, "control.command") && record["effect"] == *effect);
    };
    send("crlf", &fixture("KW-03/crlf.json"));
    effect("spawned");
    send("lone", &fixture("KW-03/crlf-lone-line.json"));
    effect("paused");
    send("resume", &comment(7, 900, "the-loop resume\r\n"));
    effect("resumed");
    send("plain", &comment(7, 901, "one\r\ntwo\rthree\r\n\r\nfour\r\n"));
    let item = "github:octo/hello#7";
    let bytes = || recorders.of_item(item).iter().map(|agent| text(&agent.bytes)).collect::<String>();
    eventually(|| bytes().split_once("four").is_some_and(|(_, rest)| rest.contains('\r'))).expect("it arrives");
    let agents = recorders.of_item(item);
    let pastes = agents[0].pastes().unwrap_or_else(|wrong| panic!("{wrong}"));
    assert_eq!((agents.len(), pastes.len()), (1, 2), "the task and the plain comment: {pastes:?}");
    assert!(pastes[1].text.contains("\none\ntwo\nthree\n\nfour\n"), "{:?}", pastes[1].text);
    assert!(pastes.iter().all(|paste| !paste.text.contains('\r')), "a bare return inside a paste");
    assert_eq!(bytes().matches('\r').count(), 2, "each is submitted once");
}

/// KW-05: what the product itself posted does nothing, though its author and a keyword in it are valid; a person with the
/// same account is heard.
#[test]
fn kw_05_own_words_do_nothing_and_the_same_account_is_heard() {
    let host = idle_host("");
    let recorders = Recorders::of(&host);
    host.ok(&["start"]);
    // The mark, from a comment that the product really posted.
    let ticket = host.item(&["auto"]);
    host.say(&ticket, "octo-admin", "the-loop:start-execution");
    host.wait_for(1, |record| is(record, "session.announced"));
    let thread: Value = serde_json::from_str(&host.ok(&["items", "show", &ticket, "--format", "json"])).unwrap();
    let posted = thread["thread"].as_array().unwrap().last().unwrap()["body"].as_str().unwrap().to_owned();
    let mark = posted.trim_end().lines().last().unwrap();
    let address = listener(&host);
    let send = |id: &str, payload: &Value| {
        assert_eq!(post(&address, "issue_comment", id, SECRET, payload.to_string().as_bytes()), 202);
    };
    let item = "github:octo/hello#7";
    send("start", &fixture("WH-01/payload.json"));
    host.wait_for(1, |record| is(record, "session.spawned") && record["work_item"] == *item);
    let mut own = fixture("KW-05/self.json");
    let body = own["comment"]["body"].as_str().unwrap();
    let (words, _) = body.rsplit_once('\n').unwrap();
    own["comment"]["body"] = format!("{words}\n{mark}").into();
    send("self", &own);
    // And the whole of what it posted, back from GitHub.
    send("echo", &comment(7, 902, &posted));
    host.wait_for(2, |record| {
        is(record, "routing.dropped") && record["reason"] == "self-comment" && record["actor"] == "octo-admin"
    });
    let commands = |command: &str| {
        host.count(|record| {
            is(record, "control.command") && record["command"] == *command && record["work_item"] == *item
        })
    };
    assert_eq!((commands("pause"), commands("stop")), (0, 0));
    send("human", &fixture("KW-05/human-same-account.json"));
    host.wait_for(1, |record| is(record, "control.command") && record["effect"] == "paused");
    // Its task may have been on its way when it was paused.
    let agents = recorders.of_item(item).into_iter();
    let pastes: Vec<_> = agents.flat_map(|agent| agent.pastes().unwrap_or_else(|wrong| panic!("{wrong}"))).collect();
    assert!(pastes.len() <= 1, "nothing but the task: {pastes:?}");
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
