//! Bad luck and bad input: each has a clear answer.

use std::{fs, net::TcpListener, os::unix::fs::PermissionsExt};

use crate::rig::{Host, eventually, is, text};

#[test]
fn cli_4_two_hosts_on_one_root_and_a_port_in_use_are_told() {
    let host = Host::new("", "");
    host.ok(&["start"]);
    let said = host.fails(1, &["run"]);
    assert!(said.contains(&host.pid().unwrap().to_string()), "names the holder: {said}");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let other = Host::new("", "");
    let config = fs::read_to_string(other.config()).unwrap().replace("port: 0", &format!("port: {port}"));
    fs::write(other.config(), config).unwrap();
    let said = other.fails(1, &["start"]);
    assert!(said.contains(&port.to_string()) && said.contains("service.port"), "{said}");
}

#[test]
fn cli_3_verbs_without_a_service_say_how_to_start_it() {
    let host = Host::new("", "");
    assert!(host.fails(3, &["sessions", "list"]).contains("the-loop start"));
    assert!(host.fails(1, &["status"]).contains("not running"));
    assert!(host.ok(&["stop"]).contains("not running"));
    host.fails(2, &["nonsense"]);
    host.fails(2, &[]);
    host.ok(&["events", "--types"]);
    assert!(host.run(&["events", "--type", "nope"]).status.success());
    host.fails(2, &["events", "--since", "yesterday-ish"]);
    host.fails(2, &["events", "--work-item", "bad"]);
    host.fails(2, &["items", "comment", "bad", "--body", "x"]);
    host.fails(2, &["items", "new", "--repo", "octo/hello", "--title", " "]);
}

#[test]
fn cli_3_a_verb_may_start_the_service_where_the_config_lets_it() {
    let host = Host::new("", "");
    let config = fs::read_to_string(host.config()).unwrap().replace("autoStart: false", "autoStart: true");
    fs::write(host.config(), config).unwrap();
    assert!(host.fails(1, &["status"]).contains("not running"), "a verb about the service itself starts nothing");
    let output = host.run(&["sessions", "list"]);
    assert!(output.status.success() && text(&output.stderr).contains("service.autoStart"), "{}", text(&output.stderr));
    host.ok(&["status"]);
    assert!(!text(&host.run(&["sessions", "list"]).stderr).contains("autoStart"), "once is enough");
}

#[test]
fn ctl_8_a_start_that_cannot_come_up_is_told_once_on_the_ticket_and_not_tried_again() {
    let host = Host::new("", "");
    let config = fs::read_to_string(host.config()).unwrap();
    fs::write(host.config(), config.replace("defaultHarness: shell", "defaultHarness: nonesuch")).unwrap();
    host.ok(&["start"]);
    let item = host.item(&["auto"]);
    host.say(&item, "octo-admin", "the-loop:start-execution");
    let failed = host.wait_for(1, |record| is(record, "session.spawn_failed"));
    assert_eq!(failed[0]["will_retry"], false, "{}", failed[0]);
    eventually(|| host.ok(&["items", "show", &item]).matches("could not be started on its machine").count() == 1)
        .expect("the author is told");
    let shown = host.ok(&["items", "show", &item]);
    assert!(!shown.contains("nonesuch"), "why is for the operator: {shown}");
    fs::write(host.config(), config).unwrap();
    host.started(&item);
    assert_eq!(host.count(|record| is(record, "session.spawn_failed")), 1);
}

#[test]
fn har_2_a_hook_is_handed_over_or_spooled_and_never_fails_the_agent() {
    let host = Host::new("", "");
    let incarnation = the_loop_plugin_api::IncarnationId::generate().to_string();
    let hook = |payload: &str, state: &std::path::Path| {
        let mut command = std::process::Command::new(crate::rig::program());
        crate::rig::clean(&mut command, host.folder.path());
        command.arg("hook").env("THE_LOOP_STATE_ROOT", state).env("THE_LOOP_INCARNATION", &incarnation);
        let mut child =
            command.stdin(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap();
        std::io::Write::write_all(child.stdin.as_mut().unwrap(), payload.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stderr)
    };
    host.ok(&["start"]);
    let spool = || fs::read_dir(host.state().join("local/spool")).unwrap().count();
    assert_eq!(hook("{\"hook_event_name\": \"Stop\"}", &host.state()), "");
    assert_eq!(spool(), 0, "a host that runs takes it at once");
    assert!(hook("not json", &host.state()).contains("not JSON"));
    assert!(hook("{}", std::path::Path::new("")).contains("THE_LOOP_STATE_ROOT"));
    host.kill();
    hook("{}", &host.state());
    hook("{}", &host.state());
    assert_eq!(spool(), 2, "one that is down finds it later");
    host.ok(&["start"]);
    assert_eq!(spool(), 0);
}

#[test]
fn a_folder_that_is_gone_is_named_and_the_start_goes_on_once_it_is_back() {
    let host = Host::new("", "");
    fs::remove_dir(host.folder.path().join("work")).unwrap();
    host.ok(&["start"]);
    let item = host.item(&["auto"]);
    host.say(&item, "octo-admin", "the-loop:start-execution");
    let failed = host.wait_for(1, |record| is(record, "session.spawn_failed"));
    assert!(failed[0]["error"].as_str().unwrap().contains("routing.spawnWorkdir"), "{}", failed[0]);
    assert_eq!(failed[0]["will_retry"], true);
    fs::create_dir(host.folder.path().join("work")).unwrap();
    host.wait_for(1, |record| is(record, "session.spawned"));
}

#[test]
fn tmx_3_a_tmux_that_is_missing_starts_nothing_and_says_so() {
    let mut host = Host::new("", "");
    let bin = host.folder.path().join("bin");
    fs::create_dir(&bin).unwrap();
    host.set_env("PATH", bin.to_str());
    host.ok(&["start"]);
    let item = host.item(&["auto"]);
    host.say(&item, "octo-admin", "the-loop:start-execution");
    let failed = host.wait_for(1, |record| is(record, "session.spawn_failed"));
    assert!(failed[0]["error"].as_str().unwrap().contains("tmux"), "{}", failed[0]);
    assert!(crate::rig::text(&host.run(&["status"]).stdout).contains("tmux"), "status says it too");
}

#[test]
fn tmx_3_a_tmux_that_hangs_loses_and_starts_nothing() {
    let mut host = Host::new("", "");
    host.ok(&["start"]);
    let item = host.item(&["auto"]);
    host.started(&item);
    host.ok(&["stop"]);
    let bin = host.folder.path().join("bin");
    fs::create_dir(&bin).unwrap();
    fs::write(bin.join("tmux"), "#!/bin/sh\nexec sleep 600\n").unwrap();
    fs::set_permissions(bin.join("tmux"), fs::Permissions::from_mode(0o755)).unwrap();
    let path = std::env::var("PATH").unwrap();
    host.set_env("PATH", Some(&format!("{}:{path}", bin.display())));
    host.ok(&["start"]);
    host.say(&item, "octo-admin", "through a hanging tmux");
    host.wait_for(1, |record| is(record, "delivery.held"));
    fs::remove_file(bin.join("tmux")).unwrap();
    let conversation = host.conversation(&item);
    eventually(|| host.prompts(&conversation).len() == 2).expect("it is delivered once tmux answers");
    assert_eq!(host.count(|record| is(record, "session.respawned")), 0, "silence is not absence");
}

#[test]
fn sta_2_sec_6_a_newer_root_a_linked_one_and_a_damaged_database_are_refused() {
    let host = Host::new("", "");
    host.ok(&["start"]);
    host.ok(&["stop"]);
    let db = host.state().join("local/host.db");
    let good = fs::read(&db).unwrap();
    fs::write(&db, "garbage").unwrap();
    for aside in ["local/host.db-wal", "local/host.db-shm"] {
        // They are there only when the last process did not close them.
        let _ = fs::remove_file(host.state().join(aside));
    }
    let said = host.fails(1, &["start"]);
    assert!(said.contains("host.db"), "{said}");
    assert_eq!(fs::read(&db).unwrap(), b"garbage", "STA-5: it is never overwritten");
    fs::write(&db, good).unwrap();
    fs::write(host.state().join("local/version"), "99\n").unwrap();
    let said = host.fails(1, &["start"]);
    assert!(said.contains("99") || said.contains("newer"), "{said}");
    fs::remove_dir_all(host.state()).unwrap();
    let elsewhere = host.folder.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, host.state()).unwrap();
    let said = host.fails(1, &["start"]);
    assert!(said.contains("symbolic link"), "{said}");
}

#[test]
fn cfg_4_a_config_that_breaks_while_running_keeps_the_last_good_one() {
    let host = Host::new("", "");
    host.ok(&["start"]);
    let item = host.item(&["auto"]);
    let good = fs::read_to_string(host.config()).unwrap();
    host.started(&item);
    fs::write(host.config(), good.replace("octo-admin", "nobody-else")).unwrap();
    host.say(&item, "octo-admin", "not any more");
    // The items verb reads the same file, so the change is in force when the comment is judged.
    host.wait_for(1, |record| is(record, "routing.dropped") && record["reason"] == "unauthorized-actor");
    fs::write(host.config(), good).unwrap();
    host.say(&item, "octo-admin", "again");
    let conversation = host.conversation(&item);
    eventually(|| host.prompts(&conversation).len() == 2).expect("the good one is in force again");
    let reloads = host.wait_for(2, |record| is(record, "config.reloaded"));
    assert_eq!(reloads[0]["changed"], serde_json::json!(["routing.authorizedUsers"]), "{}", reloads[0]);
}

#[test]
fn cfg_4_evt_2_the_log_says_what_became_of_each_change_of_the_config() {
    let host = Host::new("", "");
    host.ok(&["start"]);
    host.ok(&["config", "set", "routing.autoExecuteLabel", "other"]);
    let updated = host.wait_for(1, |record| is(record, "config.updated"));
    assert_eq!(updated[0]["changed"], serde_json::json!(["routing.autoExecuteLabel"]));
    assert!(!updated[0].to_string().contains("other"), "never the value: {}", updated[0]);
    // Nothing else comes in: the host looks by itself.
    host.wait_for(1, |record| is(record, "config.reloaded"));
    let good = fs::read_to_string(host.config()).unwrap();
    fs::write(host.config(), format!("{good}foo: [\n")).unwrap();
    let broken = host.wait_for(2, |record| is(record, "config.reloaded"));
    assert!(broken[1]["detail"].as_str().unwrap().contains("not in force"), "{}", broken[1]);
    fs::write(host.config(), good).unwrap();
}

/// SEC-4: a secret of the host's environment reaches no session, no log and no file.
#[test]
fn sec_4_tmx_7_a_planted_secret_is_found_nowhere() {
    const CANARY: &str = "canary-5f1c0d";
    let top = "webhooks: {ghWebhook: {enabled: true, port: 0, secretEnv: CASE_SECRET}}\nenv: {sessionPassthrough: [CASE_SECRET]}";
    let host = Host::new("", top)
        .with_env("CASE_SECRET", CANARY)
        .with_env("GITHUB_TOKEN", CANARY)
        .with_env("CLAUDECODE", CANARY);
    host.ok(&["start"]);
    let item = host.item(&["auto"]);
    host.started(&item);
    let pane: i32 =
        host.tmux(&["display-message", "-p", "-t", "=loop-local-octo-hello-1:", "#{pane_pid}"]).parse().unwrap();
    let children = fs::read_to_string(format!("/proc/{pane}/task/{pane}/children")).unwrap();
    let server = host.tmux(&["display-message", "-p", "#{pid}"]);
    for pid in children.split_whitespace().chain([server.as_str(), &pane.to_string()]) {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap();
        let arguments = fs::read(format!("/proc/{pid}/cmdline")).unwrap();
        for bytes in [environment, arguments] {
            assert!(!crate::rig::text(&bytes).contains(CANARY), "process {pid}");
        }
    }
    fn walk(folder: &std::path::Path) {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            let kind = entry.file_type().unwrap();
            if kind.is_dir() {
                walk(&entry.path());
            } else if kind.is_file() {
                let bytes = fs::read(entry.path()).unwrap();
                assert!(!crate::rig::text(&bytes).contains(CANARY), "{}", entry.path().display());
            }
        }
    }
    walk(&host.state());
}

/// A paste that an earlier host left in the composer is submitted by itself: what comes next is never glued to it.
#[test]
fn del_1_rel_2_what_a_killed_host_left_in_the_composer_is_not_glued_to_the_next_text() {
    let mut host = Host::new("", "");
    host.ok(&["start"]);
    let item = host.item(&["auto"]);
    host.started(&item);
    host.ok(&["stop"]);
    // The gate is asked for the second time between the paste and the return.
    host.set_env("THE_LOOP_DRILL_KILL", Some("delivery:writing@2"));
    host.ok(&["start"]);
    host.say(&item, "octo-admin", "the interrupted one");
    host.gone();
    host.set_env("THE_LOOP_DRILL_KILL", None);
    host.ok(&["start"]);
    host.say(&item, "octo-admin", "the next one");
    let conversation = host.conversation(&item);
    let said = |text: &str| {
        let prompts = host.prompts(&conversation);
        prompts.iter().filter(|entry| entry["text"].as_str().is_some_and(|found| found.contains(text))).count()
    };
    eventually(|| said("the next one") == 1).expect("the next one arrives");
    host.wait_for(1, |record| is(record, "delivery.delivered") && record["evidence"] == "transcript");
    for prompt in host.prompts(&conversation) {
        let headers = prompt["text"].as_str().unwrap().matches("[the-loop] ").count();
        assert_eq!(headers, 1, "two texts in one prompt: {prompt}");
    }
    assert_eq!(said("the interrupted one"), 1, "its paste stood in the composer");
}

/// The same, when the host dies once more between the restart and the next text.
#[test]
#[ignore = "what may stand in the composer is not remembered over a second kill"]
fn del_1_rel_2_a_second_kill_does_not_glue_the_next_text_either() {
    let mut host = Host::new("", "");
    host.ok(&["start"]);
    let item = host.item(&["auto"]);
    host.started(&item);
    host.ok(&["stop"]);
    for (moment, words) in [("delivery:writing@2", "the interrupted one"), ("delivery:queued", "the next one")] {
        host.set_env("THE_LOOP_DRILL_KILL", Some(moment));
        host.ok(&["start"]);
        host.say(&item, "octo-admin", words);
        host.gone();
    }
    host.set_env("THE_LOOP_DRILL_KILL", None);
    host.ok(&["start"]);
    let conversation = host.conversation(&item);
    let arrived = || host.prompts(&conversation).iter().any(|entry| entry.to_string().contains("the next one"));
    eventually(arrived).expect("the next one arrives");
    for prompt in host.prompts(&conversation) {
        let headers = prompt["text"].as_str().unwrap().matches("[the-loop] ").count();
        assert_eq!(headers, 1, "two texts in one prompt: {prompt}");
    }
}

#[test]
fn cfg_4_what_one_recovers_with_works_with_a_config_that_does_not_parse() {
    let host = Host::new("", "");
    host.ok(&["start"]);
    let item = host.item(&["auto"]);
    host.started(&item);
    let good = fs::read_to_string(host.config()).unwrap();
    fs::write(host.config(), format!("{good}foo: [\n")).unwrap();
    let shown = host.run(&["status"]);
    assert!(text(&shown.stdout).contains("not in force"), "the service says how it is: {}", text(&shown.stdout));
    host.fails(1, &["sessions", "list"]);
    host.ok(&["sessions", "stop", "--work-item", &item, "--no-comment"]);
    assert!(host.terminals().is_empty());
    assert!(host.ok(&["stop"]).contains("stopped"));
    fs::write(host.config(), good).unwrap();
}

#[test]
fn sec_6_a_link_in_place_of_a_log_is_never_followed() {
    let host = Host::new("", "");
    host.ok(&["start"]);
    host.ok(&["stop"]);
    let victim = host.folder.path().join("victim");
    fs::write(&victim, "").unwrap();
    for log in ["logs/events.jsonl", "logs/events.lock", "logs/service.out"] {
        fs::rename(host.state().join(log), host.folder.path().join("kept")).unwrap();
        std::os::unix::fs::symlink(&victim, host.state().join(log)).unwrap();
        let _refused_or_warned = host.run(&["start"]);
        let _it_may_not_run = host.run(&["stop"]);
        assert_eq!(fs::read_to_string(&victim).unwrap(), "", "{log}");
        fs::remove_file(host.state().join(log)).unwrap();
    }
}

#[test]
fn cli_4_doctor_says_what_a_start_would_lack() {
    let host = Host::new("", "");
    assert!(host.ok(&["doctor"]).contains("ok  harness shell"));
    let good = fs::read_to_string(host.config()).unwrap();
    for (from, to, says) in [
        ("spawnWorkdir: ./work", "spawnWorkdir: ./nowhere", "routing.spawnWorkdir"),
        ("shell: [", "shell: [/no/such/agent, ", "/no/such/agent"),
        ("defaultHarness: shell", "defaultHarness: nonesuch", "nonesuch"),
    ] {
        let bad = good.replace(from, to);
        assert_ne!(bad, good, "{from}");
        fs::write(host.config(), bad).unwrap();
        let said = host.fails(1, &["doctor"]);
        assert!(said.lines().any(|line| line.starts_with("BAD") && line.contains(says)), "{says}: {said}");
    }
}

#[test]
fn sta_5_doctor_repairs_a_damaged_database_from_its_last_copy() {
    let host = Host::new("", "");
    host.ok(&["start"]);
    host.ok(&["stop"]);
    host.ok(&["doctor"]);
    fs::write(host.state().join("local/host.db"), "garbage").unwrap();
    assert!(host.fails(1, &["start"]).contains("doctor --repair"));
    host.fails(1, &["doctor"]);
    assert!(host.ok(&["doctor", "--repair"]).contains("is the copy of"));
    host.ok(&["start"]);
}

#[test]
fn tmx_6_a_conversation_that_cannot_be_one_is_refused_before_it_is_recorded() {
    let host = Host::new("", "");
    host.ok(&["start"]);
    let item = host.item(&["auto"]);
    let register = |conversation: &str, cwd: &str| {
        let harness = ["sessions", "register", "--work-item", &item, "--harness", "shell", "--force"];
        host.run(&[&harness[..], &["--conversation", conversation, "--cwd", cwd]].concat()).status.code()
    };
    assert_eq!(register("../../x", "work"), Some(1));
    assert_eq!(register("0123456789ab", "gone"), Some(1));
    host.fails(1, &["sessions", "show", "--work-item", &item]);
    host.started(&item);
    assert_eq!(register("0123456789ab", "work"), Some(1), "a live one is not replaced");
    host.ok(&["sessions", "close", "--work-item", &item]);
    assert_eq!(register("0123456789ab", "work"), Some(0));
}

#[test]
fn tmx_6_a_tmux_that_was_ended_is_started_again_for_the_next_text() {
    let host = Host::new("", "");
    host.ok(&["start"]);
    let item = host.item(&["auto"]);
    host.started(&item);
    let conversation = host.conversation(&item);
    // The server goes with its last session.
    for (times, ended) in [(1, "kill-session"), (2, "kill-server")] {
        host.tmux(&[ended]);
        let said = format!("{ended}, and still there?");
        host.say(&item, "octo-admin", &said);
        let told = || host.prompts(&conversation).iter().filter(|prompt| prompt.to_string().contains(&said)).count();
        eventually(|| told() == 1).expect("it is delivered");
        assert_eq!(host.count(|record| is(record, "session.respawned")), times);
    }
}
