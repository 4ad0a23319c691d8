//! Ending agents (TMX-5), and what the launcher keeps of it.

use std::{
    cell::RefCell,
    collections::BTreeMap,
    fs,
    time::{Duration, Instant},
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use the_loop_plugin_api::{
    Liveness, Runner as _,
    runner::{CaptureOptions, Terminated},
};

use crate::rig::{RECORDER, Rig, Session, is_gone, poll_until, termination, wait_for};

#[tokio::test]
async fn tmx_5_an_agent_ends_gracefully_and_its_screen_stays() {
    let rig = Rig::new();
    let (first, second) = (rig.spawn("loop-a").await, rig.spawn("loop-b").await);
    let pid = fs::read_to_string(first.out.join("pid")).unwrap();
    assert_eq!(
        rig.runner().agent_pid(&first.handle).map(|pid| pid.to_string()),
        Some(pid),
        "the agent, not the launcher"
    );
    let ended = rig.runner().terminate(&first.handle, &termination(Duration::from_secs(20))).await.unwrap();
    assert_eq!(ended, Terminated::Gracefully);
    let status = first.wait_for_end().await;
    assert_eq!((status.code, status.signal), (None, Some(15)));
    wait_until(&rig, &first, Liveness::Dead { ours: true }).await;
    let again = rig.runner().terminate(&first.handle, &termination(Duration::from_secs(20))).await.unwrap();
    assert_eq!(again, Terminated::AlreadyGone);
    assert_eq!(rig.runner().agent_pid(&first.handle), None);
    wait_until(&rig, &second, Liveness::Live { ours: true }).await;
}

#[tokio::test]
async fn tmx_5_after_the_grace_everything_in_the_terminal_is_killed_and_nothing_else() {
    let rig = Rig::new();
    let out = rig.path("out");
    fs::create_dir(&out).unwrap();
    // An agent that does not listen, with a helper that does not either.
    let helper = rig.path("helper");
    fs::create_dir(&helper).unwrap();
    let script = format!(
        "trap '' TERM HUP; {RECORDER} --ignore-term --out {} </dev/null & {RECORDER} --ignore-term --out {}",
        helper.display(),
        out.display()
    );
    let argv = ["bash", "-c", script.as_str()].map(str::to_owned).to_vec();
    let env = BTreeMap::from([("PATH".to_owned(), std::env::var("PATH").unwrap())]);
    let handle = rig.runner().spawn(&rig.order_of("loop-a", argv, env, &out)).await.unwrap();
    let session = Session { rig: &rig, handle, out };
    session.wait_for_file("ready").await;
    let neighbour = rig.spawn("loop-b").await;
    // A person's own pane beside it.
    rig.tmux(&["split-window", "-t", "=loop-a:", "sleep 60"]);
    let began = Instant::now();
    let ended = rig.runner().terminate(&session.handle, &termination(Duration::from_millis(300))).await.unwrap();
    assert_eq!(ended, Terminated::Forced);
    assert!(began.elapsed() >= Duration::from_millis(300), "it had its grace");
    let status = session.wait_for_end().await;
    assert_eq!(status.signal, Some(9), "the launcher outlived the agent to write this down");
    wait_until(&rig, &session, Liveness::Dead { ours: true }).await;
    for file in [session.out.join("pid"), helper.join("pid")] {
        let pid = Pid::from_raw(fs::read_to_string(file).unwrap().parse().unwrap());
        wait_for("the end of it", || is_gone(pid).then_some(())).await;
    }
    wait_until(&rig, &neighbour, Liveness::Live { ours: true }).await;
    let panes = rig.tmux(&["list-panes", "-t", "=loop-a:", "-F", "#{pane_dead}"]);
    assert_eq!(panes, "1\n0", "the person's pane lives");
}

#[tokio::test]
async fn tmx_5_an_agent_that_outlived_its_server_is_still_ended() {
    let rig = Rig::new();
    let out = rig.path("out");
    fs::create_dir(&out).unwrap();
    let script = format!("trap '' HUP; cd {}; echo $$ > up; while [ -e up ]; do sleep 0.05; done", out.display());
    let argv = ["sh", "-c", script.as_str()].map(str::to_owned).to_vec();
    let env = BTreeMap::from([("PATH".to_owned(), std::env::var("PATH").unwrap())]);
    let handle = rig.runner().spawn(&rig.order_of("loop-a", argv, env, &out)).await.unwrap();
    let session = Session { rig: &rig, handle, out };
    session.wait_for_file("up").await;
    rig.tmux(&["kill-server"]);
    wait_until(&rig, &session, Liveness::Absent).await;
    assert!(rig.runner().agent_pid(&session.handle).is_some(), "it ignores that its terminal is gone");
    let ended = rig.runner().terminate(&session.handle, &termination(Duration::from_secs(20))).await.unwrap();
    assert_eq!(ended, Terminated::Gracefully);
    assert_eq!(session.wait_for_end().await.signal, Some(15));
    assert_eq!(rig.runner().agent_pid(&session.handle), None);
}

#[tokio::test]
async fn tmx_5_kill_removes_that_session_only() {
    let rig = Rig::new();
    let (first, second) = (rig.spawn("loop-1").await, rig.spawn("loop-12").await);
    rig.runner().kill(&first.handle, &termination(Duration::from_secs(20))).await.unwrap();
    assert_eq!(rig.runner().probe("loop-1", Some(&first.handle)).await, Liveness::Absent);
    wait_until(&rig, &second, Liveness::Live { ours: true }).await;
    rig.runner().kill(&first.handle, &termination(Duration::from_secs(20))).await.unwrap();
    rig.runner().kill(&second.handle, &termination(Duration::from_secs(20))).await.unwrap();
    assert_eq!(rig.runner().probe("loop-12", None).await, Liveness::Absent);
    rig.runner().kill(&second.handle, &termination(Duration::from_secs(20))).await.unwrap();
}

#[tokio::test]
async fn tmx_7_the_launcher_keeps_the_exit_status_that_tmux_may_lose() {
    let rig = Rig::new();
    let session = rig.try_spawn("loop-a", &["--exit", "7"]).await.unwrap();
    let status = session.wait_for_end().await;
    assert_eq!((status.code, status.signal, status.problem), (Some(7), None, None));
    assert!(status.pid.is_some());
}

#[tokio::test]
async fn tmx_7_a_program_that_is_not_there_is_said_in_the_pane_and_in_the_status() {
    let rig = Rig::new();
    let out = rig.path("out");
    fs::create_dir(&out).unwrap();
    let order = rig.order_of("loop-a", vec!["no-such-agent".to_owned()], BTreeMap::new(), &out);
    let handle = rig.runner().spawn(&order).await.unwrap();
    let session = Session { rig: &rig, handle, out };
    let status = session.wait_for_end().await;
    assert_eq!((status.pid, status.code), (None, Some(127)));
    assert!(status.problem.unwrap().contains("no-such-agent was not found"));
    wait_until(&rig, &session, Liveness::Dead { ours: true }).await;
    // tmux moves the lines up to say that the pane is dead.
    let options = CaptureOptions { scrollback: 10, colours: false };
    let screen = rig.runner().capture(&session.handle, options).await.unwrap();
    assert!(screen.text.contains("the-loop: the program no-such-agent was not found"), "{}", screen.text);
}

#[tokio::test]
async fn tmx_7_the_keys_of_the_terminal_end_the_agent_and_not_its_launcher() {
    let rig = Rig::new();
    let out = rig.path("out");
    fs::create_dir(&out).unwrap();
    let script =
        format!("trap 'echo interrupted; exit 3' INT; echo up > {}/up; while :; do sleep 0.05; done", out.display());
    let argv = ["sh", "-c", script.as_str()].map(str::to_owned).to_vec();
    let env = BTreeMap::from([("PATH".to_owned(), std::env::var("PATH").unwrap())]);
    let handle = rig.runner().spawn(&rig.order_of("loop-a", argv, env, &out)).await.unwrap();
    let session = Session { rig: &rig, handle, out };
    session.wait_for_file("up").await;
    rig.tmux(&["send-keys", "-t", &session.part("paneId"), "C-z", "C-c"]);
    let status = session.wait_for_end().await;
    assert_eq!((status.code, status.signal), (Some(3), None));
}

#[tokio::test]
async fn tmx_7_the_launcher_hands_on_a_polite_signal() {
    let rig = Rig::new();
    let session = rig.spawn("loop-a").await;
    let launcher = Pid::from_raw(session.part("panePid").parse().unwrap());
    kill(launcher, Signal::SIGTERM).unwrap();
    assert_eq!(session.wait_for_end().await.signal, Some(15));
    wait_until(&rig, &session, Liveness::Dead { ours: true }).await;
}

async fn wait_until(rig: &Rig, session: &Session<'_>, wanted: Liveness) {
    let seen = RefCell::new(None);
    let what = || format!("{:?} instead of {wanted:?}", seen.borrow());
    poll_until(what, async || {
        let found = rig.runner().probe(session.name(), Some(&session.handle)).await;
        let is_so = found == wanted;
        seen.replace(Some(found));
        is_so.then_some(())
    })
    .await;
}
