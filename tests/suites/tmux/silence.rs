//! A tmux that does not answer (TMX-3, REL-4).

use std::time::{Duration, Instant};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use the_loop_plugin_api::{
    Liveness, Runner as _,
    delivery::{DeliveryOutcome, HoldReason},
    runner::{RunnerError, SpawnError},
};

use crate::rig::{Rig, pasted, termination};

const PATIENCE: Duration = Duration::from_millis(400);

#[tokio::test]
async fn tmx_3_a_hanging_tmux_is_unknown_within_the_bound_and_nothing_is_done_on_it() {
    let mut rig = Rig::new();
    rig.set(|options| options.patience = PATIENCE);
    let session = patient_spawn(&rig).await;
    // The program hangs, and its child with it; both are gone afterwards.
    let pids = rig.path("pids");
    rig.program("tmux", &format!("sleep 60 & echo $$ $! >> {}; wait", pids.display()));
    let runner = rig.runner();
    let began = Instant::now();
    assert!(matches!(runner.probe("loop-a", Some(&session)).await, Liveness::Unknown { .. }));
    assert!(began.elapsed() >= PATIENCE && began.elapsed() < PATIENCE * 10, "{:?}", began.elapsed());
    assert_eq!(runner.survey().await, None);
    let (order, _) = rig.order("loop-b", &[]);
    assert!(matches!(runner.spawn(&order).await, Err(SpawnError::Silent { .. })));
    assert!(matches!(runner.capture(&session, Default::default()).await, Err(RunnerError::Silent { .. })));
    assert!(matches!(runner.terminate(&session, &termination(Duration::ZERO)).await, Err(RunnerError::Silent { .. })));
    assert!(matches!(runner.kill(&session, &termination(Duration::ZERO)).await, Err(RunnerError::Silent { .. })));
    assert!(runner.describe().await.problem.is_some_and(|problem| problem.contains("did not answer")));
    let held = crate::rig::Session { rig: &rig, handle: session.clone(), out: rig.path("none") };
    assert_eq!(held.deliver("text").await, DeliveryOutcome::Held(HoldReason::RunnerSilent));
    rig.remove_program("tmux");
    assert_eq!(rig.tmux(&["list-sessions", "-F", "#{session_name}"]), "loop-a", "nothing was started, nothing ended");
    let pids = std::fs::read_to_string(pids).unwrap();
    for pid in pids.split_whitespace().map(|pid| Pid::from_raw(pid.parse().unwrap())) {
        crate::rig::wait_for("the end of what hung", || crate::rig::is_gone(pid).then_some(())).await;
    }
}

#[tokio::test]
async fn tmx_3_a_stopped_server_is_unknown_and_a_text_of_that_time_never_appears() {
    let mut rig = Rig::new();
    rig.set(|options| options.patience = PATIENCE);
    let handle = patient_spawn(&rig).await;
    let out = rig.path("out");
    let session = crate::rig::Session { rig: &rig, handle, out };
    let server = Pid::from_raw(session.part("serverPid").parse().unwrap());
    kill(server, Signal::SIGSTOP).unwrap();
    let outcome = session.deliver("while it was stopped").await;
    let found = rig.runner().probe("loop-a", Some(&session.handle)).await;
    kill(server, Signal::SIGCONT).unwrap();
    assert_eq!(outcome, DeliveryOutcome::Held(HoldReason::RunnerSilent));
    assert!(matches!(found, Liveness::Unknown { .. }), "{found:?}");
    let deadline = Instant::now() + Duration::from_secs(20);
    while session.deliver("afterwards").await != DeliveryOutcome::Delivered {
        assert!(Instant::now() < deadline, "it never came back");
    }
    session.wait_for_bytes(&pasted("afterwards")).await;
    assert_eq!(rig.tmux(&["list-buffers"]), "");
}

#[tokio::test]
async fn del_7_a_tmux_that_falls_silent_with_the_text_leaves_the_delivery_uncertain() {
    let mut rig = Rig::new();
    rig.set(|options| options.patience = PATIENCE);
    let handle = patient_spawn(&rig).await;
    let session = crate::rig::Session { rig: &rig, handle, out: rig.path("out") };
    // It answers with the facts, takes the text, and says nothing more.
    let real = Rig::real_tmux();
    rig.program(
        "tmux",
        &format!(
            "facts=$({} -L suite list-panes -a -F 'pane|#{{pid}}|#{{session_id}}|#{{window_id}}|#{{pane_id}}|#{{pane_pid}}|0|0|0|0')\n\
             echo \"$facts\"\ncat > /dev/null\nsleep 60",
            real.display()
        ),
    );
    let outcome = session.deliver("text").await;
    assert!(matches!(outcome, DeliveryOutcome::Uncertain { .. }), "{outcome:?}");
}

/// Spawns with a patience that is short for a loaded machine.
async fn patient_spawn(rig: &Rig) -> the_loop_plugin_api::RunnerHandle {
    let mut options = rig.options();
    options.patience = Duration::from_secs(20);
    let out = rig.path("out");
    std::fs::create_dir(&out).unwrap();
    let argv = [crate::rig::RECORDER, "--out", out.to_str().unwrap()].map(str::to_owned).to_vec();
    let order = rig.order_of("loop-a", argv, Default::default(), &out);
    let handle = the_loop_plugin_tmux::TmuxRunner::new(options).spawn(&order).await.unwrap();
    crate::rig::wait_for("bracketed paste", || out.join("mark").exists().then_some(())).await;
    handle
}
