//! The main job over the built binary: commands, order, pause, and every named moment at which the host may die.

use std::{collections::HashMap, fs, os::unix::fs::PermissionsExt};

use the_loop::drills::POINTS;

use crate::rig::{Host, eventually, is};

#[test]
fn ctl_11_the_five_commands_do_what_the_table_says() {
    let host = Host::new("", "");
    host.ok(&["start"]);
    let item = host.item(&["auto"]);
    host.started(&item);
    let first = host.conversation(&item);
    let effect = |command: &str, effect: &str, times: usize| {
        host.wait_for(times, |record| {
            is(record, "control.command") && record["command"] == *command && record["effect"] == *effect
        });
    };
    host.say(&item, "octo-admin", "the-loop pause");
    effect("pause", "paused", 1);
    assert_eq!(host.terminals(), ["loop-local-octo-hello-1"], "pane and conversation stay as they are");
    host.say(&item, "octo-admin", "the-loop resume");
    effect("resume", "resumed", 1);
    host.say(&item, "octo-admin", "the-loop resume");
    host.wait_for(1, |record| is(record, "control.rejected") && record["reason"] == "nothing-to-resume");
    host.say(&item, "octo-admin", "the-loop stop");
    effect("stop", "stopped", 1);
    assert!(host.terminals().is_empty(), "the harness is ended");
    host.say(&item, "octo-admin", "the-loop start");
    effect("start", "resumed", 1);
    assert_eq!(host.conversation(&item), first, "the next start resumes the conversation");
    assert!(host.ok(&["sessions", "close", "--work-item", &item]).contains("closed"));
    host.say(&item, "octo-admin", "the-loop start");
    effect("start", "spawned", 2);
    let second = host.conversation(&item);
    assert_ne!(second, first, "after a close the conversation is a fresh one");
    host.say(&item, "octo-admin", "the-loop cleanup");
    effect("cleanup", "cleaned", 1);
    assert!(!host.state().join("local/local-octo-hello-1.json").exists(), "the local record is gone");
    assert!(host.state().join("portable/local-octo-hello-1.json").exists(), "the portable record is kept");
    assert!(host.tmux(&["list-sessions"]).is_empty(), "so is the terminal");
}

#[test]
fn ctl_10_the_cli_has_the_same_five_and_never_reads_its_own_comment_back() {
    let host = Host::new("", "");
    host.ok(&["start"]);
    let item = host.item(&[]);
    assert!(host.ok(&["sessions", "start", "--work-item", &item]).contains("started in loop-local-octo-hello-1"));
    host.wait_for(1, |record| is(record, "control.announced") && record["command"] == "start");
    host.wait_for(1, |record| is(record, "routing.dropped") && record["reason"] == "self-comment");
    assert!(host.ok(&["items", "show", &item]).contains("the-loop:start-execution"));
    host.ok(&["sessions", "pause", "--work-item", &item, "--no-comment"]);
    host.ok(&["sessions", "resume", "--work-item", &item, "--no-comment"]);
    host.fails(1, &["sessions", "resume", "--work-item", &item]);
    host.ok(&["sessions", "stop", "--work-item", &item, "--no-comment"]);
    assert_eq!(host.count(|record| is(record, "control.command")), 4);
    assert_eq!(host.count(|record| is(record, "control.announced")), 1, "--no-comment posts nothing");
    host.fails(1, &["sessions", "pause", "--work-item", "local:octo/hello#77"]);
    host.fails(2, &["sessions", "pause", "--work-item", "bad"]);
}

#[test]
fn ses_1_texts_reach_the_agent_once_and_in_order_while_the_host_is_killed() {
    let host = Host::new("", "");
    host.ok(&["start"]);
    let item = host.item(&["auto"]);
    host.started(&item);
    let conversation = host.conversation(&item);
    for round in 0..4 {
        for number in 0..5 {
            host.say(&item, "octo-admin", &format!("mark {:02}.", round * 5 + number));
        }
        host.kill();
        host.ok(&["start"]);
    }
    let marks = || -> Vec<String> {
        let texts =
            host.prompts(&conversation).into_iter().filter_map(|entry| entry["text"].as_str().map(str::to_owned));
        texts.filter_map(|text| text.lines().find(|line| line.starts_with("mark ")).map(str::to_owned)).collect()
    };
    let receipts = |wanted: &str| -> i64 {
        let db = rusqlite::Connection::open(host.state().join("local/host.db")).unwrap();
        let sql = "SELECT count(*) FROM deliveries WHERE receipt GLOB ?1";
        db.query_row(sql, [wanted], |row| row.get(0)).unwrap_or_default()
    };
    eventually(|| receipts("*") >= 21 && receipts("queued") == 0).expect("every text is settled");
    let found = marks();
    let expected: Vec<String> = (0..20).map(|number| format!("mark {number:02}.")).collect();
    assert_eq!(found, expected, "in order, none twice and none lost: what was in doubt is settled by the transcript");
    assert_eq!(receipts("uncertain"), 0);
    // What the host had no time to tell the log before it died is told at the next start.
    host.wait_for(21, |record| is(record, "delivery.delivered"));
}

#[test]
fn arc_8_a_stop_amid_a_burst_finishes_or_keeps_what_was_taken_in() {
    let mut host = Host::new("", "");
    // A terminal that takes its time, so that the stop comes while a text is on its way and others wait.
    let bin = host.folder.path().join("bin");
    fs::create_dir(&bin).unwrap();
    fs::write(bin.join("tmux"), "#!/bin/sh\nsleep 0.1\nPATH=\"${PATH#*:}\" exec tmux \"$@\"\n").unwrap();
    fs::set_permissions(bin.join("tmux"), fs::Permissions::from_mode(0o755)).unwrap();
    host.set_env("PATH", Some(&format!("{}:{}", bin.display(), std::env::var("PATH").unwrap())));
    host.ok(&["start"]);
    let item = host.item(&["auto"]);
    host.started(&item);
    let conversation = host.conversation(&item);
    for number in 0..12 {
        host.say(&item, "octo-admin", &format!("amid {number:02}."));
    }
    host.ok(&["stop"]);
    let newest = host.records().pop().expect("the log has records");
    assert!(is(&newest, "server.stopped"), "nothing is told after the end: {newest}");
    let of_all = |receipts: &str| -> i64 {
        let db = rusqlite::Connection::open(host.state().join("local/host.db")).unwrap();
        db.query_row(&format!("SELECT count(*) FROM deliveries WHERE receipt IN ({receipts})"), [], |row| row.get(0))
            .unwrap()
    };
    assert_eq!(of_all("'uncertain'"), 0, "a stop, unlike a kill, leaves no text in doubt");
    assert!(of_all("'queued', 'held'") > 0, "some still wait: the stop came amid them");
    assert_eq!(host.terminals().len(), 1, "the agent lives on");
    host.ok(&["start"]);
    eventually(|| host.prompts(&conversation).len() >= 13).expect("what was not delivered is after the start");
    eventually(|| of_all("'queued'") == 0).expect("every text is settled");
    let texts = host.prompts(&conversation).into_iter().filter_map(|entry| entry["text"].as_str().map(str::to_owned));
    let found: Vec<String> =
        texts.filter_map(|text| text.lines().find(|line| line.starts_with("amid ")).map(str::to_owned)).collect();
    assert_eq!(found, (0..12).map(|number| format!("amid {number:02}.")).collect::<Vec<_>>());
}

/// REL-2, in its short form: the host dies at every named moment; after the restart nothing accepted is lost, nothing acts
/// twice, and there is one session.
#[test]
fn rel_2_a_kill_at_every_named_moment_loses_and_doubles_nothing() {
    std::thread::scope(|scope| {
        for point in POINTS {
            scope.spawn(move || killed_at(point));
        }
    });
}

fn killed_at(point: &str) {
    let mut host = Host::new("", "").with_env("THE_LOOP_DRILL_KILL", point);
    host.ok(&["start"]);
    let item = host.item(&["auto"]);
    host.say(&item, "octo-admin", "the-loop:start-execution");
    host.gone();
    host.set_env("THE_LOOP_DRILL_KILL", None);
    host.ok(&["start"]);
    host.wait_for(1, |record| is(record, "control.command") && record["command"] == "start");
    host.say(&item, "octo-admin", "after the crash");
    let said = |text: &str| {
        host.all_prompts()
            .iter()
            .filter(|entry| entry["text"].as_str().is_some_and(|found| found.contains(text)))
            .count()
    };
    eventually(|| said("after the crash") == 1).unwrap_or_else(|| panic!("{point}: lost; {:?}", host.records().last()));
    assert_eq!(host.terminals().len(), 1, "{point}: one session");
    assert_eq!(said("after the crash"), 1, "{point}: none twice");
    let mut ids: HashMap<String, usize> = HashMap::new();
    for entry in host.all_prompts() {
        *ids.entry(entry["delivery"].to_string()).or_default() += 1;
    }
    assert!(ids.values().all(|times| *times == 1), "{point}: {ids:?}");
    assert_eq!(said("[the-loop] work item"), 1, "{point}: the task arrives, and once");
    assert_eq!(
        host.count(|record| is(record, "delivery.uncertain")),
        0,
        "{point}: the transcript settles what is in doubt"
    );
}

/// REL-3: a text that may have been written is settled by the agent's transcript: found, or provably absent and delivered
/// again under the same id. Where there is no transcript it is uncertain and never repeated.
#[test]
fn rel_3_a_crash_between_paste_and_record_is_settled_by_the_transcript() {
    for (point, again) in [("delivery:written", false), ("delivery:writing", true)] {
        let mut host = Host::new("", "");
        host.ok(&["start"]);
        let item = host.item(&["auto"]);
        host.started(&item);
        host.ok(&["stop"]);
        host.set_env("THE_LOOP_DRILL_KILL", Some(point));
        host.ok(&["start"]);
        host.say(&item, "octo-admin", "in doubt");
        host.gone();
        host.set_env("THE_LOOP_DRILL_KILL", None);
        host.ok(&["start"]);
        let conversation = host.conversation(&item);
        let settled = host.wait_for(2, |record| is(record, "delivery.delivered")).pop().unwrap();
        eventually(|| host.prompts(&conversation).len() == 2).expect("it is there");
        let prompts = host.prompts(&conversation);
        assert_eq!(prompts[1]["delivery"], settled["delivery"], "{point}: under the same id");
        assert_eq!(settled["evidence"], if again { "runner" } else { "transcript" }, "{point}");
        host.say(&item, "octo-admin", "and on");
        eventually(|| host.prompts(&conversation).len() == 3).expect("the queue goes on");
        assert_eq!(host.count(|record| is(record, "delivery.uncertain")), 0);
    }
}

#[test]
fn rel_3_without_a_transcript_what_is_in_doubt_stays_so_and_is_not_repeated() {
    let mut host = Host::new("", "");
    host.ok(&["start"]);
    let item = host.item(&["auto"]);
    host.started(&item);
    host.ok(&["stop"]);
    host.set_env("THE_LOOP_DRILL_KILL", Some("delivery:written"));
    host.ok(&["start"]);
    host.say(&item, "octo-admin", "in doubt");
    host.gone();
    let conversation = host.conversation(&item);
    let file = host.state().join(format!("local/plugins/shell/{conversation}.jsonl"));
    std::fs::rename(&file, file.with_extension("away")).unwrap();
    host.set_env("THE_LOOP_DRILL_KILL", None);
    host.ok(&["start"]);
    let uncertain = host.wait_for(1, |record| is(record, "delivery.uncertain"));
    assert!(uncertain[0]["reason"].as_str().unwrap().contains("between the paste and its record"), "{}", uncertain[0]);
    std::fs::rename(file.with_extension("away"), &file).unwrap();
    host.say(&item, "octo-admin", "and on");
    eventually(|| host.prompts(&conversation).len() == 3).expect("the queue goes on, and the text is there once");
    let waits = host.ok(&["attention", "--format", "json"]);
    assert!(waits.contains("delivery-uncertain"), "what came later does not tell that anybody looked: {waits}");
}

#[test]
fn ses_2_ses_1_two_items_run_beside_each_other_and_a_stranger_reaches_neither() {
    let host = Host::new("", "");
    host.ok(&["start"]);
    let (one, two) = (host.item(&["auto"]), host.item(&["auto"]));
    host.started(&one);
    host.started(&two);
    host.say(&one, "octo-admin", "for one");
    host.say(&two, "octo-admin", "for two");
    host.say(&one, "passer-by", "from outside");
    host.wait_for(1, |record| is(record, "routing.dropped") && record["actor"] == "passer-by");
    for (item, own) in [(&one, "for one"), (&two, "for two")] {
        let conversation = host.conversation(item);
        eventually(|| host.prompts(&conversation).len() == 2).expect("its own text arrives");
        let texts: String = host.prompts(&conversation).iter().map(ToString::to_string).collect();
        assert!(texts.contains(own) && !texts.contains("from outside"), "{texts}");
    }
}

#[test]
fn adm_5_ses_4_closing_the_item_ends_its_session_whoever_closed_it() {
    let host = Host::new("", "");
    host.ok(&["start"]);
    let item = host.item(&["auto"]);
    host.started(&item);
    host.ok(&["items", "close", &item, "--as", "passer-by"]);
    host.wait_for(1, |record| is(record, "session.closed") && record["reason"] == "issue-closed");
    assert!(host.terminals().is_empty());
    let shown = host.ok(&["sessions", "show", "--work-item", &item, "--format", "json"]);
    let row: serde_json::Value = serde_json::from_str(&shown).unwrap();
    assert_eq!((row["status"].as_str(), row["harnessState"]["state"].as_str()), (Some("closed"), Some("gone")));
}

#[test]
fn ctl_8_arm_2_a_refused_start_is_answered_once_on_the_ticket_and_leaves_nothing() {
    let host = Host::new("", "");
    host.ok(&["start"]);
    let item = host.item(&[]);
    host.say(&item, "octo-admin", "the-loop:start-execution");
    host.wait_for(1, |record| is(record, "control.rejected") && record["reason"] == "spawn-policy");
    host.wait_for(1, |record| is(record, "reaction.added") && record["state"] == "error");
    // The answer comes back as activity, and does nothing.
    host.wait_for(1, |record| is(record, "routing.dropped") && record["reason"] == "self-comment");
    let shown = host.ok(&["items", "show", &item]);
    assert_eq!(shown.matches("is not armed").count(), 1, "{shown}");
    host.ok(&["items", "label", &item, "auto", "--as", "octo-admin"]);
    host.wait_for(1, |record| is(record, "dispatch.dropped") && record["reason"] == "awaiting-start");
    assert!(host.terminals().is_empty(), "labelling it later starts nothing");
    host.say(&item, "octo-admin", "the-loop:start-execution the-loop:stop-execution");
    host.wait_for(1, |record| is(record, "control.ambiguous"));
    host.started(&item);
    host.wait_for(1, |record| is(record, "reaction.added") && record["state"] == "started");
}

#[test]
fn ses_3_ses_5_cli_5_what_the_host_says_of_itself_and_its_sessions() {
    let host = Host::new("", "");
    host.ok(&["start"]);
    let item = host.item(&["auto"]);
    host.started(&item);
    let rows: serde_json::Value = serde_json::from_str(&host.ok(&["sessions", "list", "--format", "json"])).unwrap();
    assert_eq!(rows[0]["harnessState"]["state"], "unknown", "a harness without signals is never shown as idle");
    assert!(rows[0]["harnessState"]["evidence"].is_string() && rows[0]["harnessState"]["since"].is_string());
    let lock = std::fs::read_to_string(host.state().join("local/service.pid")).unwrap();
    assert_eq!(lock.split_whitespace().next().unwrap(), host.pid().unwrap().to_string(), "the pid is the first token");
    let status: serde_json::Value = serde_json::from_str(&host.ok(&["status", "--format", "json"])).unwrap();
    let pids: Vec<_> = status["services"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|row| row["running"] == true)
        .map(|row| row["pid"].clone())
        .collect();
    assert!(pids.len() == 2 && pids[0] == pids[1], "one process hosts everything: {status}");
    assert!(host.ok(&["sessions", "reset", "--work-item", &item, "--dry-run"]).contains("would remove"));
    assert_eq!(host.terminals().len(), 1, "a dry run removes nothing");
    assert!(host.ok(&["sessions", "reset", "--work-item", &item]).contains("removed"));
    assert!(host.terminals().is_empty());
    assert!(host.count(|record| is(record, "session.reset")) == 1, "the log is kept");
    host.fails(1, &["sessions", "show", "--work-item", &item]);
}

#[test]
fn del_4_a_long_comment_is_cut_with_a_mark_and_arrives_as_one_paste() {
    let host = Host::new("maxDeliveryBytes: 4096", "");
    host.ok(&["start"]);
    let item = host.item(&["auto"]);
    host.started(&item);
    let file = host.folder.path().join("long.txt");
    std::fs::write(&file, "é".repeat(40_000)).unwrap();
    host.ok(&["items", "comment", &item, "--as", "octo-admin", "--body-file", file.to_str().unwrap()]);
    let conversation = host.conversation(&item);
    eventually(|| host.prompts(&conversation).len() == 2).expect("it arrives");
    let text = host.prompts(&conversation)[1]["text"].as_str().unwrap().to_owned();
    assert!(
        text.contains("[cut here: 4096 of 80000 bytes shown; the whole text is at local:octo/hello#1/"),
        "{}",
        &text[text.len() - 200..]
    );
}
