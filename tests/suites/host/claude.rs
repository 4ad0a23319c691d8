//! Harness `claude` with a recorder in its place: what is started, and what reaches its terminal.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use crate::rig::{Host, eventually, is, program};

/// A host whose `claude` is a recorder, which says nothing of its turns.
fn host(unsignalled: &str) -> (Host, PathBuf) {
    let mut host = Host::new(&format!("unsignalled: {unsignalled}"), "env: {sessionPassthrough: [REC_DIR]}");
    let config = fs::read_to_string(host.config()).unwrap().replace("defaultHarness: shell", "defaultHarness: claude");
    fs::write(host.config(), config).unwrap();
    let (bin, out) = (host.folder.path().join("bin"), host.folder.path().join("recorded"));
    fs::create_dir(&bin).unwrap();
    fs::create_dir(&out).unwrap();
    let recorder = program().with_file_name("recorder");
    let script = format!(
        "#!/bin/sh\nprintf '%s\\n' \"$@\" > \"$REC_DIR/argv\"\nexec '{}' --out \"$REC_DIR\"\n",
        recorder.display()
    );
    install(&bin, &script);
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
    host.set_env("PATH", Some(&path));
    host.set_env("REC_DIR", out.to_str());
    (host, out)
}

fn install(bin: &Path, script: &str) {
    fs::write(bin.join("claude"), script).unwrap();
    fs::set_permissions(bin.join("claude"), fs::Permissions::from_mode(0o755)).unwrap();
}

fn pasted(out: &Path) -> String {
    String::from_utf8_lossy(&fs::read(out.join("bytes")).unwrap_or_default()).into_owned()
}

#[test]
fn har_1_har_4_claude_is_started_with_its_task_and_without_a_dialog() {
    let (host, out) = host("screen");
    host.ok(&["start"]);
    let item = host.item(&["auto"]);
    host.say(&item, "octo-admin", "the-loop:start-execution");
    host.wait_for(1, |record| is(record, "session.spawned"));
    eventually(|| out.join("argv").is_file()).expect("it runs");
    let argv = fs::read_to_string(out.join("argv")).unwrap();
    let id = host.conversation(&item);
    for part in
        [format!("--session-id\n{id}\n"), "--permission-mode\ndefault\n".to_owned(), "[the-loop] work item".to_owned()]
    {
        assert!(argv.contains(&part), "{part}: {argv}");
    }
    let settings = argv.lines().skip_while(|line| *line != "--settings").nth(1).unwrap();
    let mode = fs::metadata(settings).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert!(fs::read_to_string(settings).unwrap().contains("'hook'"), "its hooks call the host");
    let trusted = host.wait_for(1, |record| is(record, "workspace.trusted")).remove(0);
    let config = fs::read_to_string(host.folder.path().join(".claude.json")).unwrap();
    assert!(
        config.contains("hasTrustDialogAccepted") && trusted["applied"].to_string().contains("hasCompletedOnboarding")
    );
    // What it is told later is pasted, once it has been silent for a while.
    host.say(&item, "octo-admin", "by name, please");
    eventually(|| pasted(&out).contains("by name, please")).expect("it arrives");
    eventually(|| pasted(&out).ends_with('\r')).expect("and is submitted");
    assert_eq!(pasted(&out).matches("\u{1b}[200~").count(), 1, "one paste; the task was no paste");
}

#[test]
fn del_5_a_harness_that_should_signal_and_does_not_gets_nothing() {
    let (host, out) = host("hold");
    host.ok(&["start"]);
    let item = host.item(&["auto"]);
    host.say(&item, "octo-admin", "the-loop:start-execution");
    host.wait_for(1, |record| is(record, "session.spawned"));
    host.say(&item, "octo-admin", "by name, please");
    host.wait_for(1, |record| is(record, "delivery.held") && record["reason"] == "state-unknown");
    // Its hook says that it waits at a dialog, then that it is idle.
    let incarnation = |host: &Host| {
        let record = fs::read_to_string(host.state().join("local/local-octo-hello-1.json")).unwrap();
        serde_json::from_str::<serde_json::Value>(&record).unwrap()["incarnation"].as_str().unwrap().to_owned()
    };
    let hook = |event: &str| {
        let mut command = std::process::Command::new(program());
        crate::rig::clean(&mut command, host.folder.path());
        command.arg("hook").env("THE_LOOP_STATE_ROOT", host.state()).env("THE_LOOP_INCARNATION", incarnation(&host));
        let mut child = command.stdin(std::process::Stdio::piped()).spawn().unwrap();
        let payload = format!("{{\"hook_event_name\": \"{event}\", \"tool_name\": \"Bash\"}}");
        std::io::Write::write_all(child.stdin.as_mut().unwrap(), payload.as_bytes()).unwrap();
        assert!(child.wait().unwrap().success());
    };
    hook("PermissionRequest");
    host.wait_for(1, |record| is(record, "delivery.held") && record["reason"] == "dialog-open");
    let shown = host.ok(&["attention", "--format", "jsonl"]);
    assert!(shown.contains("awaiting-permission") && shown.contains("Bash"), "{shown}");
    assert_eq!(pasted(&out), "", "neither text nor return: it would approve");
    hook("Stop");
    eventually(|| pasted(&out).contains("by name, please")).expect("it takes input again");
    host.wait_for(1, |record| is(record, "delivery.delivered"));
    assert_eq!(pasted(&out).matches("by name, please").count(), 1);
}

/// Hooks are processes of their own, and one that was spooled is heard when its turn is long over.
#[test]
fn del_6_a_hook_that_comes_late_does_not_leave_its_text_unanswered() {
    let (host, out) = host("screen");
    host.ok(&["start"]);
    let item = host.item(&["auto"]);
    host.say(&item, "octo-admin", "the-loop:start-execution");
    host.wait_for(1, |record| is(record, "session.spawned"));
    host.say(&item, "octo-admin", "by name, please");
    let delivered = host.wait_for(1, |record| is(record, "delivery.delivered")).remove(0);
    let record = fs::read_to_string(host.state().join("local/local-octo-hello-1.json")).unwrap();
    let incarnation = serde_json::from_str::<serde_json::Value>(&record).unwrap()["incarnation"].clone();
    let taken_at = jiff::Timestamp::now();
    let mut stop = std::process::Command::new(program());
    crate::rig::clean(&mut stop, host.folder.path());
    stop.arg("hook")
        .env("THE_LOOP_STATE_ROOT", host.state())
        .env("THE_LOOP_INCARNATION", incarnation.as_str().unwrap());
    let mut stop = stop.stdin(std::process::Stdio::piped()).spawn().unwrap();
    std::io::Write::write_all(stop.stdin.as_mut().unwrap(), br#"{"hook_event_name": "Stop"}"#).unwrap();
    assert!(stop.wait().unwrap().success());
    let prompt = String::from_utf8_lossy(&fs::read(out.join("bytes")).unwrap()).replace("\u{1b}[200~", "");
    let late = serde_json::json!({"incarnation": incarnation, "at": taken_at, "payload":
        {"hook_event_name": "UserPromptSubmit", "prompt": prompt}});
    fs::write(host.state().join("local/spool/1.json"), late.to_string()).unwrap();
    let receipt = || host.ok(&["deliveries", delivered["delivery"].as_str().unwrap(), "--format", "json"]);
    eventually(|| receipt().contains(r#""receipt": "answered""#)).unwrap_or_else(|| panic!("{}", receipt()));
}
