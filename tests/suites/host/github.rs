//! The built binary between a signed webhook and a GitHub on loopback. What it wrote is counted there.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::Path,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use the_loop_tests::github::{FakeGithub, Fault, TOKEN};

use crate::{
    rig::{Host, eventually, is, text},
    wire::{SECRET, fixture, listener, post},
};

const MARKER: &str = "<!-- the-loop:agent-comment -->";

fn host(fake: &FakeGithub, more: &str) -> Host {
    let top = format!(
        "webhooks: {{ghWebhook: {{enabled: true, port: 0, secretEnv: CASE_SECRET}}}}\n\
         integrations: {{github: {{api: {{baseUrl: \"{}\", tokenEnv: CASE_TOKEN, writeIntervalMilliseconds: 10}}}}}}",
        fake.base()
    );
    let host = Host::new(more, &top).with_env("CASE_SECRET", SECRET).with_env("CASE_TOKEN", TOKEN);
    host.ok(&["start"]);
    host
}

/// A GitHub with the armed issue 7 and the pull request 9, which closes it.
fn fake() -> FakeGithub {
    let fake = FakeGithub::start();
    fake.item(7, &["auto"], None);
    fake.item(9, &[], Some("Closes #7"));
    fake.comment_of_id(7, 801, "the-loop start");
    fake
}

/// The host as a person has it who is logged in with GitHub's own tool and has set no variable.
fn host_of_tool(fake: &FakeGithub, api: &str, tool: &str) -> Host {
    let top = format!(
        "integrations: {{github: {{api: {{baseUrl: \"{}\", tokenEnv: CASE_TOKEN, writeIntervalMilliseconds: 10{api}}}}}}}",
        fake.base()
    );
    let mut host = Host::new("", &top);
    let bin = host.folder.path().join("bin");
    fs::create_dir(&bin).unwrap();
    fs::write(bin.join("gh"), tool).unwrap();
    fs::set_permissions(bin.join("gh"), fs::Permissions::from_mode(0o755)).unwrap();
    host.set_env("PATH", Some(&format!("{}:{}", bin.display(), std::env::var("PATH").unwrap())));
    host
}

#[test]
fn ght_1_who_is_logged_in_with_gh_needs_no_variable_and_doctor_says_what_is_used() {
    let fake = fake();
    let address = fake.base().trim_start_matches("http://").to_owned();
    let tool = format!("#!/bin/sh\n[ \"$*\" = \"auth token --hostname {address}\" ] && echo {TOKEN}\n");
    let host = host_of_tool(&fake, "", &tool);
    let said = host.ok(&["doctor"]);
    assert!(said.contains("`gh auth token`") && !said.contains(TOKEN), "{said}");
    let asked = host.run(&["ask", "--work-item", "github:octo/hello#7", "--question", "Which order?"]);
    assert!(asked.status.success(), "{}", text(&asked.stderr));
    assert!(fake.comments(7).last().unwrap().contains("Which order?"));
    let failing = host_of_tool(&fake, "", "#!/bin/sh\necho not-a-secret >&2\nexit 4\n");
    let said = failing.ok(&["doctor"]);
    assert!(said.contains("gh auth login") && said.contains("CASE_TOKEN") && !said.contains("not-a-secret"), "{said}");
}

#[test]
fn cfg_4_the_key_of_an_app_is_found_beside_the_config() {
    let fake = fake();
    let key = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/app/not-a-real-key.pem");
    fake.app("Iv1.app", 77, &key, Duration::from_secs(3600));
    let host = host_of_tool(&fake, ", app: {id: Iv1.app, keyFile: ./app.pem, installationId: \"77\"}", "");
    fs::copy(&key, host.folder.path().join("app.pem")).unwrap();
    let said = host.ok(&["doctor"]);
    assert!(said.contains("GitHub App Iv1.app, installation 77"), "{said}");
    let asked = host.run(&["ask", "--work-item", "github:octo/hello#7", "--question", "Which order?"]);
    assert!(asked.status.success(), "{}", text(&asked.stderr));
    assert!(fake.comments(7).last().unwrap().contains("Which order?"));
    fs::remove_file(host.folder.path().join("app.pem")).unwrap();
    assert!(host.fails(1, &["doctor"]).contains("integrations.github.api.app.keyFile"));
}

fn send(host: &Host, event: &str, id: &str, payload: &Value) {
    assert_eq!(post(&listener(host), event, id, SECRET, payload.to_string().as_bytes()), 202);
}

/// Starts item 7 by a comment, and waits until its agent has its task.
fn started(host: &Host) {
    send(host, "issue_comment", "start", &fixture("WH-01/payload.json"));
    host.wait_for(1, |record| is(record, "session.spawned"));
    eventually(|| host.all_prompts().len() == 1).expect("the agent has its task");
}

fn said(id: u64, body: &str) -> Value {
    let mut payload = fixture("WH-01/payload.json");
    payload["comment"]["id"] = id.into();
    payload["comment"]["body"] = body.into();
    payload
}

fn prompts_with(host: &Host, text: &str) -> usize {
    host.all_prompts().iter().filter(|prompt| prompt["text"].as_str().is_some_and(|said| said.contains(text))).count()
}

fn announcements(fake: &FakeGithub) -> usize {
    fake.comments(7).iter().filter(|body| body.contains("loop-github-octo-hello-7") && body.contains(MARKER)).count()
}

#[test]
fn ses_6_a_start_is_reacted_to_and_announced_once_also_across_a_restart() {
    let fake = fake();
    let host = host(&fake, "");
    started(&host);
    host.wait_for(1, |record| is(record, "session.announced"));
    host.wait_for(1, |record| is(record, "reaction.added"));
    assert_eq!(fake.reactions(), [("issues/801".to_owned(), "eyes".to_owned())]);
    assert_eq!(announcements(&fake), 1);
    let shown = fake.comments(7).pop().unwrap();
    assert!(!shown.contains(&host.folder.path().display().to_string()), "no path is told: {shown}");
    host.kill();
    host.ok(&["start"]);
    send(&host, "issue_comment", "start", &fixture("WH-01/payload.json"));
    host.wait_for(1, |record| is(record, "routing.dropped") && record["reason"] == "duplicate-delivery");
    // A respawn posts nothing.
    let agent = host.tmux(&["list-panes", "-a", "-F", "#{pane_pid}"]).parse().unwrap();
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(agent), nix::sys::signal::Signal::SIGKILL).unwrap();
    eventually(|| host.terminals().is_empty()).expect("the agent is gone");
    send(&host, "issue_comment", "more", &said(802, "go on"));
    host.wait_for(1, |record| is(record, "session.respawned"));
    eventually(|| prompts_with(&host, "go on") == 1).expect("the text arrives in the new process");
    assert_eq!((announcements(&fake), fake.count("POST /repos/octo/hello/issues/7/comments")), (1, 1));
}

#[test]
fn ctl_8_a_refusal_is_answered_on_the_ticket_once() {
    let fake = fake();
    let host = host(&fake, "");
    let mut unarmed = fixture("WH-01/payload.json");
    unarmed["issue"]["labels"] = json!([]);
    send(&host, "issue_comment", "a", &unarmed);
    eventually(|| fake.comments(7).iter().any(|body| body.contains("not armed"))).expect("the refusal is told");
    eventually(|| fake.reactions() == [("issues/801".to_owned(), "confused".to_owned())]).expect("and shown");
    send(&host, "issue_comment", "a", &unarmed);
    send(&host, "issue_comment", "b", &unarmed);
    host.wait_for(2, |record| matches!(record["reason"].as_str(), Some("duplicate-delivery" | "already-processed")));
    assert_eq!(fake.count("POST /repos/octo/hello/issues/7/comments"), 1);
    assert!(host.terminals().is_empty());
}

#[test]
fn ght_3_a_github_that_is_down_or_slow_holds_up_no_delivery() {
    let fake = fake();
    let host = host(&fake, "");
    for (number, fault) in
        [Fault::Status(503, vec![], "down"), Fault::Slow(Duration::from_secs(20))].into_iter().enumerate()
    {
        fake.all(Some(fault));
        if number == 0 {
            started(&host);
        }
        let asked = Instant::now();
        let word = format!("word-{number}");
        send(&host, "issue_comment", &word, &said(900 + number as u64, &word));
        eventually(|| prompts_with(&host, &word) == 1).expect("the text arrives");
        assert!(asked.elapsed() < Duration::from_secs(10), "{:?}", asked.elapsed());
    }
    // What could not be written is written after a restart, once.
    host.kill();
    fake.all(None);
    host.ok(&["start"]);
    eventually(|| announcements(&fake) == 1).expect("the announcement arrives");
    eventually(|| fake.reactions().contains(&("issues/801".to_owned(), "eyes".to_owned()))).expect("the reaction too");
    assert_eq!(announcements(&fake), 1);
}

#[test]
fn wh_06_an_inline_comment_reaches_the_issues_session_once_in_either_order() {
    for order in [["review", "inline"], ["inline", "review"]] {
        let fake = fake();
        let host = host(&fake, "");
        started(&host);
        for name in order {
            let event = if name == "review" { "pull_request_review" } else { "pull_request_review_comment" };
            send(&host, event, name, &fixture(&format!("WH-06/{name}.json")));
        }
        eventually(|| prompts_with(&host, "Use a stable sort here.") == 1).expect("the inline text arrives");
        send(&host, "issue_comment", "last", &said(803, "the last word"));
        eventually(|| prompts_with(&host, "the last word") == 1).expect("what came later arrives too");
        let prompts = host.all_prompts();
        assert_eq!(prompts.len(), 3, "{prompts:?}");
        let inline = prompts.iter().find(|prompt| prompt["text"].as_str().unwrap().contains("stable sort")).unwrap();
        let text = inline["text"].as_str().unwrap();
        assert!(text.contains("file: src/list.rs\nline: 42\n"), "{text}");
        assert_eq!(host.terminals(), ["loop-github-octo-hello-7"], "the pull request has no session of its own");
        eventually(|| fake.reactions().contains(&("pulls/807".to_owned(), "eyes".to_owned()))).expect("a reaction");
    }
}

fn pull_request(action: &str) -> Value {
    let mut payload = fixture("WH-06/inline.json");
    payload["action"] = action.into();
    payload.as_object_mut().unwrap().remove("comment");
    payload
}

#[test]
fn lnk_6_only_what_closed_is_ended() {
    let fake = fake();
    let host = host(&fake, "");
    started(&host);
    send(&host, "pull_request", "opened", &pull_request("opened"));
    eventually(|| prompts_with(&host, "github:octo/hello#9 was opened") == 1).expect("the session hears of it");
    let record = || {
        let text = std::fs::read_to_string(host.state().join("local/github-octo-hello-7.json")).unwrap();
        serde_json::from_str::<Value>(&text).unwrap()
    };
    assert_eq!(record()["pullRequests"][0]["ref"], "github:octo/hello#9", "LNK-2");
    // Bound on record: no tracker is asked any more.
    fake.all(Some(Fault::Status(503, vec![], "down")));
    send(&host, "pull_request", "closed", &pull_request("closed"));
    eventually(|| record()["pullRequests"][0]["closed"] == true).expect("its end is noted");
    assert_eq!(host.terminals(), ["loop-github-octo-hello-7"]);
    let check = json!({
        "action": "completed",
        "check_run": {
            "name": "build", "status": "completed", "conclusion": "failure", "html_url": "https://github.test/check",
            "pull_requests": [{"number": 9, "head": {"ref": "fix-sort"}}]
        },
        "repository": fixture("WH-06/inline.json")["repository"], "sender": {"login": "ci[bot]", "type": "Bot"}
    });
    send(&host, "check_run", "check", &check);
    eventually(|| prompts_with(&host, "conclusion: failure") == 1).expect("ADM-3: a CI result reaches the session");
    let mut closed = fixture("WH-05/1-opened.json");
    closed["action"] = "closed".into();
    closed["issue"]["number"] = 7.into();
    closed["issue"]["id"] = 70007.into();
    closed["sender"]["login"] = "passer-by".into();
    send(&host, "issues", "end", &closed);
    host.wait_for(1, |record| is(record, "session.closed") && record["work_item"] == "github:octo/hello#7");
}

#[test]
fn lnk_2_a_pull_request_is_linked_by_hand_and_once() {
    let fake = fake();
    fake.item(10, &[], Some("no word of an issue"));
    let host = host(&fake, "");
    started(&host);
    let link = |pull_request: &str| {
        host.ok(&["sessions", "link-pr", "--work-item", "github:octo/hello#7", "--pull-request", pull_request])
    };
    assert!(link("10").contains("github:octo/hello#10 is linked"));
    assert!(link("github:octo/hello#10").contains("was linked already"));
    host.fails(2, &["sessions", "link-pr", "--work-item", "github:octo/hello#7", "--pull-request", "zzz"]);
    let mut inline = fixture("WH-06/inline.json");
    inline["pull_request"]["number"] = 10.into();
    inline["pull_request"]["body"] = Value::Null;
    send(&host, "pull_request_review_comment", "inline", &inline);
    eventually(|| prompts_with(&host, "Use a stable sort here.") == 1).expect("it reaches the issue's session");
    assert_eq!(host.terminals(), ["loop-github-octo-hello-7"]);
}

#[test]
fn adm_3_a_ci_result_starts_nothing() {
    let fake = fake();
    let host = host(&fake, "control: {requireStartCommand: false}");
    let status = json!({
        "state": "failure", "context": "the-loop start", "branches": [{"name": "issue-7"}],
        "repository": fixture("WH-06/inline.json")["repository"], "sender": {"login": "octo-admin", "type": "User"}
    });
    send(&host, "status", "status", &status);
    host.wait_for(1, |record| is(record, "dispatch.dropped") && record["reason"] == "spawn-policy");
    assert!(host.terminals().is_empty());
}

#[test]
fn lnk_1_a_start_on_a_pull_request_starts_the_issue_that_it_closes() {
    let fake = fake();
    let host = host(&fake, "");
    fake.comment_of_id(9, 811, "the-loop start");
    let mut start = said(811, "the-loop start");
    start["issue"] = fixture("WH-06/inline.json")["pull_request"].clone();
    start["issue"]["id"] = 70009.into();
    start["issue"]["labels"] = json!([]);
    start["issue"]["pull_request"] = json!({"url": "https://github.test/octo/hello/pull/9"});
    send(&host, "issue_comment", "start", &start);
    host.wait_for(1, |record| is(record, "session.spawned") && record["work_item"] == "github:octo/hello#7");
    eventually(|| fake.reactions() == [("issues/811".to_owned(), "eyes".to_owned())]).expect("a reaction");
    assert_eq!(host.terminals(), ["loop-github-octo-hello-7"]);
}

/// Everything that the product posted in a run is fed back: nothing comes of it.
#[test]
fn kw_05_what_the_host_posted_is_never_acted_on() {
    let fake = fake();
    let host = host(&fake, "");
    let mut unarmed = said(850, "the-loop start");
    unarmed["issue"]["labels"] = json!([]);
    send(&host, "issue_comment", "refused", &unarmed);
    started(&host);
    eventually(|| fake.comments(7).iter().filter(|body| body.contains(MARKER)).count() == 2).expect("two posts");
    let posted: Vec<String> = fake.comments(7).into_iter().filter(|body| body.contains(MARKER)).collect();
    let writes = fake.count("POST /repos/octo/hello/issues/7/comments");
    for (number, body) in posted.iter().enumerate() {
        let text = format!("{body}\nthe-loop stop");
        send(&host, "issue_comment", &format!("own-{number}"), &said(860 + number as u64, body));
        send(&host, "issue_comment", &format!("quoted-{number}"), &said(870 + number as u64, &text));
    }
    host.wait_for(posted.len() * 2, |record| is(record, "routing.dropped") && record["reason"] == "self-comment");
    assert_eq!((host.all_prompts().len(), fake.count("POST /repos/octo/hello/issues/7/comments")), (1, writes));
    send(&host, "issue_comment", "human", &fixture("KW-05/human-same-account.json"));
    host.wait_for(1, |record| is(record, "session.paused"));
}
