//! A program that is not there or ends at once, and a model that misbehaves.

use std::{fs, os::unix::fs::PermissionsExt as _};

use crate::{rig::is, session::Session};

#[test]
fn har_1_a_missing_program_is_a_failed_start_that_says_so() {
    let session = Session::with(|_nothing| {});
    // A machine may have one of its own.
    let path = std::env::var("PATH").unwrap_or_default();
    if std::env::split_paths(&path).any(|folder| folder.join("claude").exists()) {
        eprintln!("SKIPPED: this machine has a program `claude` in PATH");
        return;
    }
    let item = session.item("Sort the list");
    session.host.say(&item, "octo-admin", "the-loop:start-execution");
    let failed = session.host.wait_for(1, |record| is(record, "session.spawn_failed")).remove(0);
    let error = failed["error"].as_str().unwrap();
    assert!(error.contains("\"claude\" was not found") && error.contains("install it"), "{error}");
    assert_eq!(session.host.terminals(), Vec::<String>::new());
}

#[test]
fn har_1_a_program_that_ends_at_once_is_on_record_with_its_last_words() {
    let session = Session::with(|program| {
        fs::write(program, "#!/bin/sh\necho 'no licence' >&2\nexit 3\n").unwrap();
        fs::set_permissions(program, fs::Permissions::from_mode(0o755)).unwrap();
    });
    let item = session.item("Sort the list");
    session.host.say(&item, "octo-admin", "the-loop:start-execution");
    let failed = session.host.wait_for(1, |record| is(record, "session.spawn_failed")).remove(0);
    let error = failed["error"].as_str().unwrap();
    assert!(error.contains("exit status 3") && error.contains("sessions attach"), "{error}");
    session.wait_state(&item, "gone");
    assert!(session.history(&item).contains("no licence"), "its last words can be read");
    let told = session.host.ok(&["attention", "--format", "jsonl"]);
    assert!(told.contains("exit status 3"), "{told}");
    assert_eq!(session.host.count(|record| is(record, "session.spawned")), 1);
}

#[test]
fn har_2_a_turn_that_ends_in_an_error_of_the_model_leaves_an_idle_agent() {
    let Some(session) = Session::new() else { return };
    let item = session.started("Sort the list");
    session.wait_state(&item, "idle");
    session.host.say(&item, "octo-admin", "overload it <<status 529 1>>");
    session.wait(&item, "receipt of a turn that went on", || session.receipts(&item) == ["answered"]);
    session.host.say(&item, "octo-admin", "refuse it <<status 401 9>>");
    session.wait(&item, "receipt of a turn that failed", || session.receipts(&item) == ["answered", "answered"]);
    session.wait_state(&item, "idle");
    session.host.say(&item, "octo-admin", "cut it <<cut>>");
    session.wait(&item, "the cut one", || session.told(&item, "cut it <<cut>>") == 1);
    assert_eq!(session.told(&item, "overload it"), 1);
    assert_eq!(session.told(&item, "refuse it"), 1);
    let refused = |status| session.model.asked().iter().filter(|asked| asked.status == status).count();
    assert_eq!((refused(529), refused(401) > 0), (1, true), "{:#?}", session.model.asked());
}
