//! Claude Code at work: its task, what it is told later, and the dialog at which a return would approve.

use std::{fs, path::Path};

use serde_json::Value;

use crate::{rig::is, session::Session};

#[test]
fn har_1_har_4_claude_code_has_its_task_without_a_dialog_and_every_comment_once() {
    let Some(session) = Session::new() else { return };
    let item = session.started("Sort the list");
    let task = session.said(&item).remove(0);
    assert!(task.starts_with("[the-loop] work item") && task.contains("Sort the list"), "{task}");
    session.wait_state(&item, "idle");
    // The process that the host asks is the agent itself.
    let pid = *session.pids().last().unwrap();
    let own = fs::read_to_string(session.claude_folder().join(format!("sessions/{pid}.json"))).unwrap();
    let own: Value = serde_json::from_str(&own).unwrap();
    assert_eq!(own["sessionId"], session.host.conversation(&item));
    for word in ["by name, please", "one line\n\n    and an indented one\nand /one that is no command"] {
        session.host.say(&item, "octo-admin", word);
        session.wait(&item, word, || session.told(&item, word) == 1);
    }
    session.wait(&item, "receipts", || session.receipts(&item) == ["answered", "answered"]);
    assert_eq!(session.told(&item, "[the-loop] work item"), 1);
    assert_eq!(session.said(&item).len(), 3, "{:#?}", session.said(&item));
}

#[test]
fn wsp_1_har_4_claude_code_works_in_each_items_checkout_without_a_dialog() {
    let Some(session) = Session::in_checkouts() else { return };
    for title in ["Sort the list", "Sort it again"] {
        let item = session.started(title);
        session.wait_state(&item, "idle");
        let pid = *session.pids().last().unwrap();
        let own = fs::read_to_string(session.claude_folder().join(format!("sessions/{pid}.json"))).unwrap();
        let own: Value = serde_json::from_str(&own).unwrap();
        let folder = Path::new(own["cwd"].as_str().unwrap());
        assert!(folder.join("list.txt").is_file(), "{own}");
        assert!(folder.ends_with(Path::new("checkouts").join(item.replace([':', '/', '#'], "-"))), "{own}");
    }
}

#[test]
fn del_5_a_text_that_is_due_at_a_permission_prompt_approves_nothing() {
    let Some(session) = Session::new() else { return };
    let item = session.started("<<run touch made-by-approval>>");
    let made = session.host.folder.path().join("work/made-by-approval");
    session.wait_state(&item, "awaiting-permission");
    session.host.say(&item, "octo-admin", "by name, please");
    session.host.wait_for(1, |record| is(record, "delivery.held") && record["reason"] == "dialog-open");
    // The host looks at the held text again and again meanwhile: a look is the time of a few commands.
    for _ in 0..20 {
        assert_eq!(session.state(&item)["state"], "awaiting-permission");
        let screen = session.screen(&item);
        assert!(screen.contains("Do you want to proceed?") && !screen.contains("by name, please"), "{screen}");
        assert!(!made.exists(), "approved by nobody");
    }
    let told = session.host.ok(&["attention", "--format", "jsonl"]);
    assert!(told.contains("awaiting-permission"), "{told}");
    assert_eq!(session.receipts(&item), ["queued"]);
    assert_eq!(session.told(&item, "by name, please"), 0);
    session.press(&item, "1");
    session.wait(&item, "what the person allowed", || made.exists());
    session.wait(&item, "the text", || session.told(&item, "by name, please") == 1);
    session.wait(&item, "its receipt", || session.receipts(&item) == ["answered"]);
}

#[test]
fn del_5_a_text_that_is_due_at_a_refused_permission_prompt_is_delivered_after_it() {
    let Some(session) = Session::new() else { return };
    let item = session.started("<<run touch made-by-approval>>");
    session.wait_state(&item, "awaiting-permission");
    session.host.say(&item, "octo-admin", "by name, please");
    session.host.wait_for(1, |record| is(record, "delivery.held") && record["reason"] == "dialog-open");
    session.press(&item, "Escape");
    session.wait(&item, "the text", || session.told(&item, "by name, please") == 1);
    assert!(!session.host.folder.path().join("work/made-by-approval").exists(), "refused");
}

#[test]
fn del_6_texts_for_a_busy_agent_arrive_once_each() {
    let Some(session) = Session::new() else { return };
    let item = session.started("Sort the list");
    session.wait_state(&item, "idle");
    session.host.say(&item, "octo-admin", "first <<wait 2000>>");
    session.wait_state(&item, "busy");
    for word in ["second word", "third word"] {
        session.host.say(&item, "octo-admin", word);
    }
    session.wait(&item, "all of them", || {
        ["first <<wait", "second word", "third word"].iter().all(|word| session.told(&item, word) == 1)
    });
    session.wait(&item, "receipts", || session.receipts(&item) == ["answered"; 3]);
}
