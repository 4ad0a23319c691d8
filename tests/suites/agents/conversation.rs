//! A conversation of Claude Code outlives its process.

use std::fs;

use crate::{
    rig::is,
    session::{Session, runs},
};

#[test]
fn tmx_6_a_stopped_session_takes_its_conversation_up_again() {
    let Some(session) = Session::new() else { return };
    let item = session.started("Sort the list");
    session.wait_state(&item, "idle");
    let (conversation, pid) = (session.host.conversation(&item), *session.pids().last().unwrap());
    session.host.say(&item, "octo-admin", "the-loop:stop-execution");
    session.wait(&item, "end of the agent", || !runs(pid));
    session.host.say(&item, "octo-admin", "the-loop:start-execution");
    session.wait(&item, "task of the resumed session", || session.said(&item).len() == 2);
    assert_eq!(session.host.conversation(&item), conversation);
    let said = session.said(&item);
    assert!(
        said[0].starts_with("[the-loop] work item") && !said[0].contains("worked on this item before"),
        "{said:#?}"
    );
    assert!(said[1].contains("worked on this item before"), "{said:#?}");
    assert_eq!(session.host.count(|record| is(record, "session.resume_failed")), 0);
}

#[test]
fn tmx_6_a_killed_agent_is_brought_back_by_the_next_text() {
    let Some(session) = Session::new() else { return };
    let item = session.started("Sort the list");
    session.wait_state(&item, "idle");
    let (conversation, pid) = (session.host.conversation(&item), *session.pids().last().unwrap());
    // Claude Code writes with a delay, and what a kill leaves unwritten cannot be taken up.
    session.wait(&item, "transcript", || session.transcript(&item).contains("understood"));
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::Signal::SIGKILL).unwrap();
    session.wait(&item, "end of the agent", || !runs(pid));
    session.wait_state(&item, "gone");
    session.host.say(&item, "octo-admin", "by name, please");
    session.wait(&item, "the text", || session.told(&item, "by name, please") == 1);
    session.wait(&item, "same conversation", || session.host.conversation(&item) == conversation);
    session.wait(&item, "its receipt", || session.receipts(&item) == ["answered"]);
}

#[test]
fn tmx_6_a_conversation_that_is_not_there_any_more_gives_way_to_a_fresh_one() {
    let Some(session) = Session::new() else { return };
    let item = session.started("Sort the list");
    session.wait_state(&item, "idle");
    let (conversation, pid) = (session.host.conversation(&item), *session.pids().last().unwrap());
    session.host.say(&item, "octo-admin", "the-loop:stop-execution");
    session.wait(&item, "end of the agent", || !runs(pid));
    fs::remove_dir_all(session.claude_folder().join("projects")).unwrap();
    session.host.say(&item, "octo-admin", "the-loop:start-execution");
    let failed = session.host.wait_for(1, |record| is(record, "session.resume_failed")).remove(0);
    assert_eq!(failed["harness_session_id"], conversation);
    session.wait(&item, "task of a fresh session", || {
        session.host.conversation(&item) != conversation && session.said(&item).len() == 1
    });
    session.wait_state(&item, "idle");
}
