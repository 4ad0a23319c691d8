//! The runner's own gates (DEL-5).

use std::{cell::RefCell, collections::BTreeMap, fs, time::Duration};

use the_loop_plugin_api::{
    Runner as _,
    delivery::{DeliveryOutcome, HoldReason, Readiness},
};

use crate::{
    clients::Client,
    rig::{Gate, Rig, Session, pasted, poll_until, wait_for},
};

const SCREEN: Readiness = Readiness::Screen { quiet_for: Duration::from_secs(1) };

#[tokio::test]
async fn del_5_copy_mode_holds_until_it_is_left() {
    let rig = Rig::new();
    let session = rig.spawn("loop-a").await;
    let pane = session.part("paneId");
    rig.tmux(&["copy-mode", "-t", &pane]);
    assert_eq!(session.deliver("text").await, DeliveryOutcome::Held(HoldReason::CopyMode));
    rig.tmux(&["copy-mode", "-q", "-t", &pane]);
    assert_eq!(session.deliver("text").await, DeliveryOutcome::Delivered);
    session.wait_for_bytes(&pasted("text")).await;
}

#[tokio::test]
async fn tmx_9_what_changes_after_the_gates_is_caught_by_tmux_itself() {
    let rig = Rig::new();
    let session = rig.spawn("loop-a").await;
    let pane = session.part("paneId");
    let gate = |args: &[&str]| {
        let command = std::sync::Mutex::new(rig.command(args));
        Gate::meanwhile(move || assert!(command.lock().unwrap().status().unwrap().success()))
    };
    let copy_mode = gate(&["copy-mode", "-t", &pane]);
    let outcome = session.deliver_when("text", Readiness::Signals, copy_mode).await;
    assert_eq!(outcome, DeliveryOutcome::Held(HoldReason::CopyMode));
    rig.tmux(&["copy-mode", "-q", "-t", &pane]);
    let off = gate(&["select-pane", "-d", "-t", &pane]);
    let outcome = session.deliver_when("text", Readiness::Signals, off).await;
    assert_eq!(outcome, DeliveryOutcome::Held(HoldReason::NotReady));
    rig.tmux(&["select-pane", "-e", "-t", &pane]);
    let respawn = gate(&["respawn-pane", "-k", "-t", &pane, "cat"]);
    let outcome = session.deliver_when("text", Readiness::Signals, respawn).await;
    assert!(matches!(outcome, DeliveryOutcome::Gone { .. }), "{outcome:?}");
    let other = rig.spawn("loop-b").await;
    let kill = gate(&["kill-session", "-t", "=loop-b"]);
    let outcome = other.deliver_when("text", Readiness::Signals, kill).await;
    assert!(matches!(outcome, DeliveryOutcome::Gone { .. }), "{outcome:?}");
    assert_eq!((session.bytes(), other.bytes()), (Vec::new(), Vec::new()));
    assert_eq!(rig.tmux(&["list-buffers"]), "");
}

#[tokio::test]
async fn del_5_a_pane_whose_input_is_switched_off_holds() {
    let rig = Rig::new();
    let session = rig.spawn("loop-a").await;
    rig.tmux(&["select-pane", "-d", "-t", &session.part("paneId")]);
    assert_eq!(session.deliver("text").await, DeliveryOutcome::Held(HoldReason::NotReady));
}

#[tokio::test]
async fn del_5_without_bracketed_paste_nothing_is_pasted() {
    let rig = Rig::new();
    let session = rig.spawn_with("loop-a", &["--no-bracketed"]).await;
    for readiness in [Readiness::Signals, SCREEN] {
        let outcome = session.deliver_when("text", readiness, Gate::open()).await;
        assert_eq!(outcome, DeliveryOutcome::Held(HoldReason::NotReady));
    }
    assert_eq!(session.bytes(), b"");
}

#[tokio::test]
async fn del_5_bracketed_paste_that_was_switched_off_again_holds() {
    let rig = Rig::new();
    let out = rig.path("agent");
    fs::create_dir(&out).unwrap();
    let fifo = out.join("fifo");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let script = format!("printf '\\033[?2004h'; cat {0} > /dev/null; printf '\\033[?2004l'; cat {0}", fifo.display());
    let argv = ["sh", "-c", script.as_str()].map(str::to_owned).to_vec();
    let env = BTreeMap::from([("PATH".to_owned(), std::env::var("PATH").unwrap())]);
    let handle = rig.runner().spawn(&rig.order_of("loop-a", argv, env, &out)).await.unwrap();
    let session = Session { rig: &rig, handle, out };
    session.wait_for_file("mark").await;
    fs::write(&fifo, "").unwrap();
    let mark = session.out.join("mark");
    wait_for("the end of the mark", || (!mark.exists()).then_some(())).await;
    assert_eq!(session.deliver("text").await, DeliveryOutcome::Held(HoldReason::NotReady));
}

#[tokio::test]
async fn del_5_a_person_who_may_type_holds_and_a_watcher_does_not() {
    let mut rig = Rig::new();
    rig.set(|options| options.client_idle = Duration::from_secs(2));
    let session = rig.spawn("loop-a").await;
    let mut person = Client::attach(&rig, &rig.runner().attach("loop-a", false), (100, 30)).await;
    assert_eq!(session.deliver("text").await, DeliveryOutcome::Held(HoldReason::ClientActive));
    until_delivered(&session, "first", Readiness::Signals).await;
    person.press("k");
    session.wait_for_bytes(&[pasted("first").as_slice(), b"k"].concat()).await;
    assert_eq!(session.deliver("text").await, DeliveryOutcome::Held(HoldReason::ClientActive));
    drop(person);
    wait_for("the detached client", || (Client::count(&rig) == 0).then_some(())).await;
    let mut watcher = Client::attach(&rig, &rig.runner().attach("loop-a", true), (90, 20)).await;
    watcher.press("ignored");
    assert_eq!(session.deliver("second").await, DeliveryOutcome::Delivered);
}

#[tokio::test]
async fn del_5_a_screen_that_still_changes_holds() {
    let rig = Rig::new();
    let session = rig.spawn_with("loop-a", &["--noise"]).await;
    for _ in 0..3 {
        let outcome = session.deliver_when("text", SCREEN, Gate::open()).await;
        assert_eq!(outcome, DeliveryOutcome::Held(HoldReason::ScreenBusy));
    }
    assert_eq!(session.deliver("signalled").await, DeliveryOutcome::Delivered, "its own signals are better evidence");
}

#[tokio::test]
async fn del_5_a_quiet_screen_takes_texts_and_our_own_echo_does_not_hold_the_next() {
    let rig = Rig::new();
    let session = rig.spawn_with("loop-a", &["--echo"]).await;
    let mut expected = pasted("text 0");
    until_delivered(&session, "text 0", SCREEN).await;
    for n in 1..5 {
        let text = format!("text {n}");
        let outcome = session.deliver_when(&text, SCREEN, Gate::open()).await;
        assert_eq!(outcome, DeliveryOutcome::Delivered, "{text}");
        expected.extend(pasted(&text));
    }
    session.wait_for_bytes(&expected).await;
}

#[tokio::test]
async fn del_5_a_shell_takes_texts_at_its_prompt_and_not_while_a_command_runs() {
    let rig = Rig::new();
    let out = rig.path("shell");
    fs::create_dir(&out).unwrap();
    let argv = ["bash", "--norc", "--noprofile", "-i"].map(str::to_owned).to_vec();
    let env =
        BTreeMap::from([("PATH".to_owned(), std::env::var("PATH").unwrap()), ("HISTFILE".to_owned(), String::new())]);
    let handle = rig.runner().spawn(&rig.order_of("loop-a", argv, env, &out)).await.unwrap();
    let session = Session { rig: &rig, handle, out };
    session.wait_for_file("mark").await;
    let fifo = rig.path("fifo");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
    until_delivered(
        &session,
        &format!("echo started >$HOME/../shell/started; cat {}", fifo.display())
            .replace("$HOME/../", &format!("{}/", rig.path("").display())),
        SCREEN,
    )
    .await;
    session.wait_for_file("started").await;
    // The shell has handed the terminal to the command, and switched bracketed paste off.
    let outcome = session.deliver_when("echo too early", SCREEN, Gate::open()).await;
    assert!(matches!(outcome, DeliveryOutcome::Held(HoldReason::NotForeground | HoldReason::NotReady)), "{outcome:?}");
    fs::write(&fifo, "").unwrap();
    until_delivered(&session, &format!("echo done >{}/done", session.out.display()), SCREEN).await;
    session.wait_for_file("done").await;
}

#[tokio::test]
async fn del_5_another_program_in_the_foreground_holds() {
    let rig = Rig::new();
    let out = rig.path("shell");
    fs::create_dir(&out).unwrap();
    // A shell with job control that has switched bracketed paste on and runs something in the foreground.
    let script = format!("set -m; printf '\\033[?2004h'; sleep 60 & fg >/dev/null; : {}", out.display());
    let argv = ["bash", "--norc", "-c", script.as_str()].map(str::to_owned).to_vec();
    let env = BTreeMap::from([("PATH".to_owned(), std::env::var("PATH").unwrap())]);
    let handle = rig.runner().spawn(&rig.order_of("loop-a", argv, env, &out)).await.unwrap();
    let session = Session { rig: &rig, handle, out };
    session.wait_for_file("mark").await;
    // It becomes the sleeping program's terminal.
    wait_for_outcome(&session, DeliveryOutcome::Held(HoldReason::NotForeground)).await;
}

async fn wait_for_outcome(session: &Session<'_>, wanted: DeliveryOutcome) {
    let seen = RefCell::new(None);
    let what = || format!("{:?} instead of {wanted:?}", seen.borrow());
    poll_until(what, async || {
        // A gate of the harness's that is shut: nothing is delivered whatever the runner's own gates say.
        let outcome = session.deliver_when("text", SCREEN, Gate::says([Err(HoldReason::Paused)])).await;
        let is_so = outcome == wanted;
        seen.replace(Some(outcome));
        is_so.then_some(())
    })
    .await;
}

/// Delivers as the host does: again, as long as it is held.
async fn until_delivered(session: &Session<'_>, text: &str, readiness: Readiness) {
    let held_for = RefCell::new(None);
    poll_until(
        || format!("held for {:?}", held_for.borrow()),
        async || match session.deliver_when(text, readiness, Gate::open()).await {
            DeliveryOutcome::Delivered => Some(()),
            DeliveryOutcome::Held(reason) => {
                held_for.replace(Some(reason));
                None
            }
            other => panic!("{other:?}"),
        },
    )
    .await;
}
