//! Many at once (TMX-11), and what one costs.

use std::{
    process::Stdio,
    time::{Duration, Instant},
};

use futures::future::join_all;
use the_loop_plugin_api::delivery::DeliveryOutcome;

use crate::rig::{Rig, Session, pasted};

const SESSIONS: usize = 8;
const MESSAGES: usize = 40;

#[tokio::test(flavor = "multi_thread")]
async fn tmx_11_bursts_into_many_sessions_arrive_each_once_whole_and_where_they_belong() {
    let mut rig = Rig::new();
    rig.set(|options| options.patience = Duration::from_secs(60));
    let mut sessions = Vec::new();
    for n in 0..SESSIONS {
        sessions.push(rig.spawn(&format!("loop-{n}")).await);
    }
    let text = |session: &Session<'_>, n: usize| {
        format!("message {n} for {}\nwith a second line {}", session.name(), "x".repeat(n * 37))
    };
    // All at once, into every session: the runner itself keeps paste and return of one together.
    let all = sessions
        .iter()
        .flat_map(|session| (0..MESSAGES).map(move |n| async move { session.deliver(&text(session, n)).await }));
    for outcome in join_all(all).await {
        assert_eq!(outcome, DeliveryOutcome::Delivered);
    }
    for session in &sessions {
        let mut expected: Vec<Vec<u8>> = (0..MESSAGES).map(|n| pasted(&text(session, n))).collect();
        let length: usize = expected.iter().map(Vec::len).sum();
        crate::rig::wait_for("all messages", || (session.bytes().len() >= length).then_some(())).await;
        let bytes = session.bytes();
        assert_eq!(bytes.len(), length, "{}", session.name());
        let mut found: Vec<Vec<u8>> = bytes.split_inclusive(|byte| *byte == b'\r').map(<[u8]>::to_vec).collect();
        found.sort();
        expected.sort();
        assert!(found == expected, "{}: lost, doubled, mixed or misplaced", session.name());
    }
    assert_eq!(rig.tmux(&["list-buffers"]), "");
}

/// Not a check: `cargo nextest run -p the-loop-tests --run-ignored only prf_5 --no-capture` prints the figures.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "a measurement"]
async fn prf_5_one_delivery_against_the_two_bare_commands() {
    const RUNS: usize = 200;
    let rig = Rig::new();
    let session = rig.spawn("loop-a").await;
    let text = "a line of some forty letters, as they are\n".repeat(10);
    let (mut ours, mut bare) = (Vec::new(), Vec::new());
    let mut length = 0;
    for _ in 0..RUNS {
        length += pasted(&text).len();
        let began = Instant::now();
        assert_eq!(session.deliver(&text).await, DeliveryOutcome::Delivered);
        until(&session, length);
        ours.push(began.elapsed());
        length += pasted(&text).len();
        let began = Instant::now();
        two_commands(&rig, &session, &text);
        until(&session, length);
        bare.push(began.elapsed());
    }
    for (what, mut times) in [("delivery", ours), ("two bare commands", bare)] {
        times.sort();
        println!("{what}: n={RUNS} p50={:?} p99={:?}", times[RUNS / 2], times[RUNS * 99 / 100]);
    }
}

/// Not a check: 200 sessions, a delivery each, all at once, against as many bare pastes one after the other.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "a measurement"]
async fn prf_7_many_deliveries_at_once_against_bare_pastes_in_a_row() {
    const SESSIONS: usize = 200;
    let mut rig = Rig::new();
    rig.set(|options| options.patience = Duration::from_secs(60));
    let mut sessions = Vec::new();
    for n in 0..SESSIONS {
        sessions.push(rig.spawn(&format!("loop-{n}")).await);
    }
    let text = "a line of some forty letters, as they are\n".repeat(10);
    let length = pasted(&text).len();
    for round in 0..3 {
        let began = Instant::now();
        let all = join_all(sessions.iter().map(|session| session.deliver(&text))).await;
        sessions.iter().for_each(|session| until(session, length * (2 * round + 1)));
        let ours = began.elapsed();
        assert!(all.iter().all(|outcome| *outcome == DeliveryOutcome::Delivered));
        let began = Instant::now();
        sessions.iter().for_each(|session| two_commands(&rig, session, &text));
        sessions.iter().for_each(|session| until(session, length * (2 * round + 2)));
        println!("{SESSIONS} at once: {ours:?}; bare in a row: n={SESSIONS} {:?}", began.elapsed());
    }
}

fn until(session: &Session<'_>, length: usize) {
    let path = session.out.join("bytes");
    while std::fs::metadata(&path).unwrap().len() < length as u64 {
        std::thread::yield_now();
    }
}

fn two_commands(rig: &Rig, session: &Session<'_>, text: &str) {
    use std::io::Write as _;
    let pane = session.part("paneId");
    let mut paste = rig
        .command(&["load-buffer", "-b", "bare", "-", ";", "paste-buffer", "-p", "-r", "-d", "-b", "bare", "-t", &pane])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    paste.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    assert!(paste.wait().unwrap().success());
    rig.tmux(&["set-buffer", "-b", "bare", "\r", ";", "paste-buffer", "-r", "-d", "-b", "bare", "-t", &pane]);
}
