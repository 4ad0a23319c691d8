//! Checkouts of work items (WSP, SES-5), over real git: what a session works in, and what its end removes.

use std::{fs, path::PathBuf};

use serde_json::Value;

use crate::rig::{Host, eventually, git, is, remote};

fn host(strategy: &str, more: &str) -> Host {
    let host = Host::new(&format!("workspace: {{root: ./checkouts, strategy: {strategy}{more}}}"), "");
    remote(&host);
    host.ok(&["start"]);
    host
}

/// The folder that an item's session works in, from its record and from its terminal.
fn folder(host: &Host, item: &str) -> PathBuf {
    let row: Value =
        serde_json::from_str(&host.ok(&["sessions", "show", "--work-item", item, "--format", "json"])).unwrap();
    let cwd = PathBuf::from(row["cwd"].as_str().unwrap());
    let pane = host.tmux(&[
        "display-message",
        "-p",
        "-t",
        &format!("={}:", row["tmuxTarget"].as_str().unwrap()),
        "#{pane_current_path}",
    ]);
    assert_eq!(fs::canonicalize(&cwd).unwrap(), fs::canonicalize(pane).unwrap());
    cwd
}

fn comments(host: &Host, item: &str) -> String {
    host.ok(&["items", "show", item])
}

fn gone(host: &Host, item: &str) {
    host.wait_for(1, |record| is(record, "workspace.cleaned") && record["work_item"] == *item);
}

#[test]
fn wsp_1_each_item_works_in_a_checkout_of_its_own_and_goes_on_in_it() {
    for strategy in ["worktree", "clone"] {
        let host = host(strategy, "");
        let items = [host.item(&["auto"]), host.item(&["auto"])];
        items.iter().for_each(|item| host.started(item));
        let folders = items.each_ref().map(|item| folder(&host, item));
        assert_ne!(folders[0], folders[1]);
        for (item, folder) in items.iter().zip(&folders) {
            assert!(folder.starts_with(host.folder.path().join("checkouts")), "{}", folder.display());
            assert!(folder.join("list.txt").is_file());
            let number = item.rsplit('#').next().unwrap();
            let branch = format!("the-loop/issue-{number}");
            assert_eq!(git(&host, folder, &["branch", "--show-current"]), branch);
            let made =
                host.wait_for(1, |record| is(record, "workspace.prepared") && record["work_item"] == **item).remove(0);
            assert_eq!((&made["strategy"], &made["branch"]), (&Value::from(strategy), &Value::from(branch)));
            assert_eq!(made["checkout"].as_str().unwrap(), folder.to_str().unwrap());
        }
        // Stopped, and taken up after a restart of the host: the same folder, with what is in it.
        fs::write(folders[0].join("note.txt"), "mine").unwrap();
        host.say(&items[0], "octo-admin", "the-loop:stop-execution");
        host.wait_for(1, |record| is(record, "control.command") && record["command"] == "stop");
        host.kill();
        host.ok(&["start"]);
        host.say(&items[0], "octo-admin", "the-loop:start-execution");
        host.wait_for(1, |record| is(record, "session.respawned"));
        assert_eq!(folder(&host, &items[0]), folders[0]);
        assert!(folders[0].join("note.txt").is_file());
        assert_eq!(host.count(|record| is(record, "workspace.prepared")), 2);
    }
}

#[test]
fn wsp_1_a_checkout_that_cannot_be_made_fails_the_start_and_nothing_runs_elsewhere() {
    let host = host("worktree", "");
    let item = host.item(&["auto"]);
    let place = host.folder.path().join("checkouts").join(item.replace([':', '/', '#'], "-"));
    fs::create_dir_all(&place).unwrap();
    fs::write(place.join("own.txt"), "not yours").unwrap();
    host.say(&item, "octo-admin", "the-loop:start-execution");
    let failed = host.wait_for(1, |record| is(record, "session.spawn_failed")).remove(0);
    assert!(failed["error"].as_str().unwrap().contains("move it away, then start again"), "{failed}");
    assert_eq!(failed["will_retry"], false);
    eventually(|| comments(&host, &item).contains("could not be started")).expect("the ticket is told");
    assert!(!comments(&host, &item).contains("checkouts"), "no folder of this machine on the ticket");
    assert!(host.terminals().is_empty() && place.join("own.txt").is_file());
    // A remote that does not answer is tried again by itself.
    fs::remove_dir_all(&place).unwrap();
    let (remotes, away) = (host.folder.path().join("remotes"), host.folder.path().join("away"));
    fs::rename(&remotes, &away).unwrap();
    host.say(&item, "octo-admin", "the-loop:start-execution");
    let failed = host.wait_for(2, |record| is(record, "session.spawn_failed")).remove(1);
    assert!(failed["error"].as_str().unwrap().contains("git fetch failed"), "{failed}");
    assert_eq!(failed["will_retry"], true);
    assert!(host.terminals().is_empty());
    fs::rename(&away, &remotes).unwrap();
    host.wait_for(1, |record| is(record, "session.spawned"));
    assert!(folder(&host, &item).join("list.txt").is_file());
}

#[test]
fn wsp_1_a_kill_between_a_checkout_and_its_record_makes_no_second_one() {
    let mut host = Host::new("workspace: {root: ./checkouts}", "");
    remote(&host);
    host.set_env("THE_LOOP_DRILL_KILL", Some("workspace:prepared"));
    host.ok(&["start"]);
    let item = host.item(&["auto"]);
    host.say(&item, "octo-admin", "the-loop:start-execution");
    host.gone();
    host.set_env("THE_LOOP_DRILL_KILL", None);
    host.ok(&["start"]);
    host.wait_for(1, |record| is(record, "session.spawned"));
    assert!(folder(&host, &item).join("list.txt").is_file());
    assert_eq!(fs::read_dir(host.folder.path().join("checkouts/.making")).unwrap().count(), 0);
}

#[test]
fn ses_5_wsp_3_a_cleanup_that_would_lose_work_is_refused_with_the_list() {
    for strategy in ["worktree", "clone"] {
        let host = host(strategy, "");
        let item = host.item(&["auto"]);
        host.started(&item);
        let folder = folder(&host, &item);
        fs::write(folder.join("draft `@octo`.txt"), "").unwrap();
        fs::write(folder.join("done.txt"), "").unwrap();
        git(&host, &folder, &["add", "done.txt"]);
        git(&host, &folder, &["commit", "--quiet", "-m", "add the list"]);
        host.say(&item, "octo-admin", "the-loop:cleanup");
        let refused = host.wait_for(1, |record| is(record, "control.rejected")).remove(0);
        assert_eq!((&refused["reason"], &refused["command"]), (&"would-lose-work".into(), &"cleanup".into()));
        eventually(|| comments(&host, &item).contains("uncommitted: draft '@octo'.txt"))
            .expect("the ticket has the list");
        let told = comments(&host, &item);
        assert!(told.contains("add the list") && told.contains("--discard-work"), "{told}");
        assert!(!told.contains(folder.to_str().unwrap()), "{told}");
        // The session goes on as if nothing had been said.
        assert_eq!(host.terminals().len(), 1);
        host.say(&item, "octo-admin", "still there?");
        let conversation = host.conversation(&item);
        eventually(|| host.prompts(&conversation).len() == 2).expect("it is delivered");
        for verb in [["sessions", "cleanup"], ["sessions", "reset"]] {
            let said = host.fails(1, &[&verb[..], &["--work-item", &item]].concat());
            assert!(said.contains("add the list") && said.contains("--discard-work"), "{said}");
        }
        let preview = host.ok(&["sessions", "reset", "--work-item", &item, "--dry-run"]);
        assert!(preview.contains("checkout ") && preview.contains("only with --discard-work"), "{preview}");
        assert!(folder.join("done.txt").is_file() && host.terminals().len() == 1);
        // What is pushed may go by a comment, what is not by the operator's word.
        if strategy == "clone" {
            fs::remove_file(folder.join("draft `@octo`.txt")).unwrap();
            git(&host, &folder, &["push", "--quiet", "origin", "HEAD"]);
            host.say(&item, "octo-admin", "the-loop:cleanup");
        } else {
            host.ok(&["sessions", "cleanup", "--work-item", &item, "--discard-work"]);
        }
        gone(&host, &item);
        let cleaned = host.wait_for(1, |record| is(record, "session.cleaned")).remove(0);
        assert!(cleaned["removed"].to_string().contains("checkout "), "{cleaned}");
        assert!(!folder.exists() && host.terminals().is_empty());
    }
}

#[test]
fn wsp_3_a_closed_items_checkout_goes_unless_it_is_kept_or_has_work_in_it() {
    for keep in [false, true] {
        let host = host("worktree", &format!(", keepCheckoutOnClose: {keep}"));
        let [idle, busy] = [host.item(&["auto"]), host.item(&["auto"])];
        for item in [&idle, &busy] {
            host.started(item);
        }
        let [of_idle, of_busy] = [&idle, &busy].map(|item| folder(&host, item));
        fs::write(of_busy.join("draft.txt"), "").unwrap();
        for item in [&idle, &busy] {
            host.ok(&["items", "close", item, "--as", "octo-admin"]);
            host.wait_for(1, |record| is(record, "session.closed") && record["work_item"] == **item);
        }
        if keep {
            host.ok(&["sessions", "cleanup", "--work-item", &idle]);
            gone(&host, &idle);
        } else {
            gone(&host, &idle);
            let deferred = host.wait_for(1, |record| is(record, "cleanup.deferred")).remove(0);
            assert_eq!(
                (&deferred["work_item"], &deferred["reason"]),
                (&Value::from(busy.as_str()), &"would-lose-work".into())
            );
            assert!(deferred["error"].as_str().unwrap().contains("draft.txt"), "{deferred}");
        }
        assert!(!of_idle.exists() && of_busy.join("draft.txt").is_file());
        // What was kept is what the next session finds.
        host.ok(&["items", "reopen", &busy, "--as", "octo-admin"]);
        host.say(&busy, "octo-admin", "the-loop:start-execution");
        let mine = |record: &Value| record["work_item"] == *busy;
        host.wait_for(2, |record| mine(record) && (is(record, "session.spawned") || is(record, "session.respawned")));
        assert_eq!(folder(&host, &busy), of_busy);
        assert!(of_busy.join("draft.txt").is_file());
    }
}
