//! What was let in and is not done yet: switched off, left without a record, or carried out later.

use std::fs;

use serde_json::Value;

use crate::rig::{Host, eventually, is, program};

/// Makes every start fail for want of the program, or work again.
fn break_harness(host: &Host, broken: bool) {
    let config = fs::read_to_string(host.config()).unwrap();
    let program = program().display().to_string();
    let (whole, gone) = (format!("[\"{program}\""), format!("[\"/nope{program}\""));
    let changed = if broken { config.replace(&whole, &gone) } else { config.replace(&gone, &whole) };
    assert_ne!(changed, config);
    fs::write(host.config(), changed).unwrap();
}

fn set(host: &Host, key: &str, value: &str) {
    host.ok(&["config", "set", key, value]);
}

fn is_of(record: &Value, kind: &str, item: &str) -> bool {
    is(record, kind) && record["work_item"] == *item
}

#[test]
fn adm_6_ctl_8_a_start_that_failed_waits_while_routing_is_off_and_is_on_record_once_it_came_up() {
    for (key, off, on) in [("routing.shadow", "true", "false"), ("routing.enabled", "false", "true")] {
        let host = Host::new("", "");
        host.ok(&["start"]);
        let item = host.item(&["auto"]);
        break_harness(&host, true);
        host.say(&item, "octo-admin", "the-loop:start-execution");
        host.wait_for(1, |record| is_of(record, "session.spawn_failed", &item));
        set(&host, key, off);
        break_harness(&host, false);
        let tried = host.count(|record| is_of(record, "control.retry", &item));
        // What the operator asks for is done, and takes longer than the pause after a first failure.
        let other = host.item(&["auto"]);
        host.ok(&["sessions", "start", "--work-item", &other]);
        host.wait_for(1, |record| is_of(record, "session.spawned", &other));
        let conversation = host.conversation(&other);
        eventually(|| host.prompts(&conversation).len() == 1).expect("and its task arrives");
        assert_eq!(host.count(|record| is_of(record, "session.spawned", &item)), 0, "{key} holds it back");
        assert!(host.count(|record| is_of(record, "control.retry", &item)) <= tried + 1);
        set(&host, key, on);
        host.wait_for(1, |record| is_of(record, "session.spawned", &item));
        let commanded = host.wait_for(1, |record| is_of(record, "control.command", &item));
        assert_eq!((&commanded[0]["command"], &commanded[0]["actor"]), (&"start".into(), &"octo-admin".into()));
        assert_eq!(commanded[0]["effect"], "spawned", "who started this run is told (CTL-8)");
    }
}

#[test]
fn adm_6_a_text_that_waits_is_not_delivered_while_routing_is_off() {
    let host = Host::new("", "");
    host.ok(&["start"]);
    let item = host.item(&["auto"]);
    host.started(&item);
    let conversation = host.conversation(&item);
    host.tmux(&["copy-mode", "-t", "=loop-local-octo-hello-1:"]);
    host.say(&item, "octo-admin", "wait for it");
    host.wait_for(1, |record| is(record, "delivery.held") && record["reason"] == "copy-mode");
    set(&host, "routing.shadow", "true");
    host.tmux(&["send-keys", "-t", "=loop-local-octo-hello-1:", "-X", "cancel"]);
    host.wait_for(1, |record| is(record, "delivery.held") && record["reason"] == "routing-off");
    assert_eq!(host.prompts(&conversation).len(), 1);
    set(&host, "routing.shadow", "false");
    eventually(|| host.prompts(&conversation).len() == 2).expect("it goes on once routing is on");
}

#[test]
fn arm_5_a_text_that_was_held_when_the_session_was_paused_says_that_it_waits_for_that() {
    let host = Host::new("", "");
    host.ok(&["start"]);
    let item = host.item(&["auto"]);
    host.started(&item);
    host.tmux(&["copy-mode", "-t", "=loop-local-octo-hello-1:"]);
    host.say(&item, "octo-admin", "wait for it");
    host.wait_for(1, |record| is(record, "delivery.held") && record["reason"] == "copy-mode");
    host.ok(&["sessions", "pause", "--work-item", &item]);
    host.wait_for(1, |record| is(record, "delivery.held") && record["reason"] == "paused");
    let waiting = host.ok(&["deliveries", "--receipt", "queued", "--format", "json"]);
    assert!(waiting.contains("\"paused\""), "{waiting}");
}

#[test]
fn sta_1_ctl_11_a_session_without_a_readable_record_is_ended_by_whoever_ends_it() {
    for (command, content) in [("stop", "{\"ref"), ("cleanup", "{\"version\": 99}")] {
        let host = Host::new("", "");
        host.ok(&["start"]);
        let item = host.item(&["auto"]);
        host.started(&item);
        host.ok(&["stop"]);
        fs::write(host.state().join("local/local-octo-hello-1.json"), content).unwrap();
        host.ok(&["start"]);
        assert_eq!(host.terminals().len(), 1);
        let said = host.fails(1, &["sessions", "pause", "--work-item", &item]);
        assert!(said.contains("cannot be read") && said.contains("stop it"), "{said}");
        host.say(&item, "octo-admin", &format!("the-loop {command}"));
        let done = host.wait_for(1, |record| is(record, "control.command") && record["command"] == command);
        assert_ne!(done[0]["effect"], "noop", "{command}");
        assert!(host.terminals().is_empty(), "{command}: the agent is ended, as its person was told");
    }
}

#[test]
fn ses_3_a_terminal_that_a_person_renamed_is_still_the_sessions() {
    let host = Host::new("", "");
    host.ok(&["start"]);
    let item = host.item(&["auto"]);
    host.started(&item);
    host.tmux(&["rename-session", "-t", "=loop-local-octo-hello-1", "mine"]);
    let shown: Value = serde_json::from_str(&host.ok(&["sessions", "list", "--format", "json"])).unwrap();
    assert_ne!(shown[0]["harnessState"]["state"], "gone", "{shown}");
    let waits: Value = serde_json::from_str(&host.ok(&["attention", "--format", "json"])).unwrap();
    assert_eq!(waits, serde_json::json!([]));
    let conversation = host.conversation(&item);
    host.say(&item, "octo-admin", "to whatever it is called");
    eventually(|| host.prompts(&conversation).len() == 2).expect("texts reach it");
    assert_eq!(host.terminals(), ["mine"], "and none is started beside it");
}

#[test]
fn ctl_8_a_command_that_cannot_be_recorded_has_an_end_in_the_log() {
    let host = Host::new("", "");
    host.ok(&["start"]);
    let item = host.item(&["auto"]);
    host.started(&item);
    host.ok(&["stop"]);
    let file = host.state().join("portable/local-octo-hello-1.json");
    let record = fs::read_to_string(&file).unwrap();
    fs::write(&file, record.replacen("\"version\": 1", "\"version\": 99", 1)).unwrap();
    host.ok(&["start"]);
    host.say(&item, "octo-admin", "the-loop pause");
    let ended = host.wait_for(1, |record| is_of(record, "dispatch.error", &item));
    assert!(ended[0]["error"].as_str().unwrap().contains("pause could not be recorded"), "{}", ended[0]);
}
