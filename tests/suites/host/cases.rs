//! Inputs from real failures, over the built binary.

use std::fs;

use serde_json::Value;

use crate::{
    rig::{Host, eventually, is},
    screen::Screen,
};

#[test]
fn kw_03_kw_05_line_ends_and_own_words() {
    let host = Host::new("", "");
    host.ok(&["start"]);
    let item = host.item(&["auto"]);
    host.say(&item, "octo-admin", "the-loop start\r\nplease\r\n");
    host.wait_for(1, |record| is(record, "control.command") && record["effect"] == "spawned");
    host.say(&item, "octo-admin", "one\r\ntwo\rthree");
    let conversation = host.conversation(&item);
    eventually(|| host.prompts(&conversation).len() == 2).expect("one paste, submitted once");
    let text = host.prompts(&conversation)[1]["text"].as_str().unwrap().to_owned();
    assert!(text.contains("\none\ntwo\nthree\n") && !text.contains('\r'), "{text:?}");
    // The announcement that the host itself posted came back as activity, and did nothing.
    host.wait_for(1, |record| is(record, "session.announced"));
    host.wait_for(1, |record| is(record, "routing.dropped") && record["reason"] == "self-comment");
    assert_eq!(host.prompts(&conversation).len(), 2);
}

/// TM-01: item 1's terminal is gone; nothing that is meant for it reaches item 12, whose name begins the same.
#[test]
fn tm_01_a_short_name_never_reaches_a_longer_one() {
    let host = Host::new("", "");
    host.ok(&["start"]);
    let items: Vec<String> = (0..12).map(|_| host.item(&["auto"])).collect();
    let (one, twelve) = (&items[0], &items[11]);
    host.started(one);
    host.started(twelve);
    host.tmux(&["kill-session", "-t", "=loop-local-octo-hello-1"]);
    let neighbour = host.conversation(twelve);
    host.say(one, "octo-admin", "for number one");
    host.wait_for(1, |record| is(record, "session.respawned") && record["work_item"] == **one);
    let conversation = host.conversation(one);
    let arrived = || {
        host.prompts(&conversation)
            .iter()
            .any(|entry| entry["text"].as_str().is_some_and(|text| text.contains("for number one")))
    };
    eventually(arrived).expect("item 1 is respawned and has its text");
    host.tmux(&["kill-session", "-t", "=loop-local-octo-hello-1"]);
    host.ok(&["sessions", "stop", "--work-item", one, "--no-comment"]);
    host.ok(&["sessions", "cleanup", "--work-item", one, "--no-comment"]);
    assert_eq!(host.terminals(), ["loop-local-octo-hello-12"]);
    assert_eq!(host.prompts(&neighbour).len(), 1, "nothing came to the neighbour");
}

/// TM-02: names that are flattened to the same letters, or differ in case.
#[test]
fn tm_02_lnk_8_one_identity_an_item_and_the_printed_name_is_the_real_one() {
    let host = Host::new("", "");
    // Each agent shows whose it is.
    let config = fs::read_to_string(host.config()).unwrap();
    let agent = "sh, -c, 'echo \"I work on <$THE_LOOP_WORK_ITEM>\"; exec cat'";
    let (before, rest) = config.split_once("{shell: [").unwrap();
    let after = rest.split_once(']').unwrap().1;
    fs::write(host.config(), format!("{before}{{shell: [{agent}]{after}")).unwrap();
    host.ok(&["start"]);
    let refs = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/cases/TM-02/refs.txt")).unwrap();
    let said: Vec<(String, String)> = refs
        .lines()
        .map(|line| {
            let item = format!("github:{line}");
            let said = host.ok(&["sessions", "start", "--work-item", &item, "--no-comment"]);
            (item, said)
        })
        .collect();
    let rows: Value = serde_json::from_str(&host.ok(&["sessions", "list", "--format", "json"])).unwrap();
    let rows = rows.as_array().unwrap();
    let mut printed: Vec<String> = rows.iter().map(|row| row["tmuxTarget"].as_str().unwrap().to_owned()).collect();
    printed.sort();
    assert_eq!(printed.len(), 8, "two of the lines are one item");
    assert_eq!(host.terminals(), printed);
    assert!(printed.iter().all(|name| !name.contains(['.', ':'])));
    for (item, said) in &said {
        let row = rows.iter().find(|row| row["ref"].as_str().unwrap().eq_ignore_ascii_case(item));
        let name = row.unwrap_or_else(|| panic!("{item} is not listed: {rows:?}"))["tmuxTarget"].as_str().unwrap();
        assert!(said.contains(name), "{item}: {said}");
        let screen = Screen::attach(&host, name);
        let shows_it =
            || screen.shown().to_ascii_lowercase().contains(&format!("i work on <{}>", item.to_ascii_lowercase()));
        eventually(shows_it).unwrap_or_else(|| panic!("attached to {name}: {:?}", screen.shown()));
    }
    let files = fs::read_dir(host.state().join("local")).unwrap().flatten();
    assert_eq!(files.filter(|file| file.file_name().to_string_lossy().starts_with("github-")).count(), 8);
    host.ok(&["sessions", "stop", "--work-item", "github:octo/foo.js#1", "--no-comment"]);
    assert_eq!(host.terminals().len(), 7);
}

/// ST-01: a record that is cut, empty or full of NULs costs that record, and never a second agent over a live one.
#[test]
fn st_01_a_damaged_record_costs_itself_alone() {
    let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/cases/ST-01/");
    let host = Host::new("", "");
    host.ok(&["start"]);
    let items: Vec<String> = (0..3).map(|_| host.item(&["auto"])).collect();
    for item in &items {
        host.started(item);
    }
    for bad in ["truncated.json", "empty.json", "nul.json"] {
        host.kill();
        let record = host.state().join("local/local-octo-hello-3.json");
        fs::copy(format!("{fixtures}{bad}"), &record).unwrap();
        host.ok(&["start"]);
        assert!(host.run(&["status"]).status.success());
        assert!(
            crate::rig::text(&host.run(&["status"]).stdout).contains("local-octo-hello-3"),
            "{bad}: status names the file"
        );
        let aside = fs::read_dir(host.state().join("local")).unwrap().flatten();
        assert!(
            aside.filter(|file| file.file_name().to_string_lossy().starts_with("local-octo-hello-3")).count() > 0,
            "{bad}: a copy is kept"
        );
        host.say(&items[2], "octo-admin", "the-loop:start-execution");
        host.wait_for(1, |record| is(record, "session.spawn_failed") && record["work_item"] == *items[2]);
        assert_eq!(host.terminals().len(), 3, "{bad}: no second agent, none lost");
    }
    host.say(&items[0], "octo-admin", "still there?");
    let conversation = host.conversation(&items[0]);
    eventually(|| host.prompts(&conversation).len() == 2).expect("the others work");
}

/// ST-02: the lock decides, never the number in the file, and a foreign process is never signalled.
#[test]
fn st_02_a_foreign_pid_in_the_lock_file_means_nothing() {
    let host = Host::new("", "");
    host.ok(&["start"]);
    host.kill();
    let mut bystander = std::process::Command::new("sleep").arg("600").spawn().unwrap();
    for content in [bystander.id().to_string(), "1".to_owned(), "garbage".to_owned(), String::new()] {
        fs::write(host.state().join("local/service.pid"), &content).unwrap();
        assert!(host.fails(1, &["status"]).contains("not running"), "{content:?}");
        host.ok(&["stop"]);
        host.ok(&["start"]);
        assert!(host.ok(&["start"]).contains("already running"), "{content:?}");
        host.ok(&["stop"]);
    }
    assert!(bystander.try_wait().unwrap().is_none(), "the bystander lives");
    bystander.kill().unwrap();
    bystander.wait().unwrap();
    // Two at once: one host, and both say so truthfully.
    let outputs = std::thread::scope(|scope| {
        let starts: Vec<_> = (0..2).map(|_| scope.spawn(|| host.run(&["start"]))).collect();
        starts.into_iter().map(|start| start.join().unwrap()).collect::<Vec<_>>()
    });
    assert!(outputs.iter().any(|output| output.status.success()));
    assert!(host.ok(&["start"]).contains("already running"));
}
