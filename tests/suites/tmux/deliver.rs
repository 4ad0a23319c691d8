//! One text, one paste, one return (DEL-1).

use std::time::Duration;

use the_loop_plugin_api::{
    Runner as _, RunnerHandle,
    delivery::{DeliveryOutcome, HoldReason, Readiness},
};

use crate::{
    clients::Client,
    rig::{Gate, Rig, Session, delivery, pasted, wait_for},
};

#[tokio::test]
async fn del_1_a_text_arrives_as_one_bracketed_paste_and_one_return() {
    let rig = Rig::new();
    let session = rig.spawn("loop-a").await;
    let text = "first line\n\tsecond; 'quoted' \"$HOME\" #{pid} %H\n\nünïcode 🦀 -x\n";
    assert_eq!(session.deliver(text).await, DeliveryOutcome::Delivered);
    session.wait_for_bytes(&pasted(text)).await;
    assert_eq!(rig.tmux(&["list-buffers"]), "", "no buffer is left");
}

#[tokio::test]
async fn del_4_a_text_of_any_size_arrives_whole() {
    let rig = Rig::new();
    let session = rig.spawn("loop-a").await;
    let mut expected = Vec::new();
    for size in [1, 4095, 4096, 16_384, 65_535, 65_536, 65_537, 300_000, 1024 * 1024] {
        let text: String = (0..).flat_map(|n| format!("{n} ß line\n").chars().collect::<Vec<_>>()).take(size).collect();
        assert_eq!(session.deliver(&text).await, DeliveryOutcome::Delivered, "{size}");
        expected.extend(pasted(&text));
        session.wait_for_bytes(&expected).await;
    }
    assert_eq!(rig.tmux(&["list-buffers"]), "");
}

/// Commands that act on, or are refused for, some client: with any of them a delivery would hang on who is attached.
const CLIENT_COMMANDS: [&str; 12] = [
    "send-keys",
    "send",
    "display-message",
    "display",
    "switch-client",
    "refresh-client",
    "command-prompt",
    "confirm-before",
    "run-shell",
    "attach-session",
    "select-pane",
    "select-window",
];

#[tokio::test]
async fn tm_03_tmx_9_no_step_resolves_a_client_and_two_processes_do_it() {
    let mut rig = Rig::new();
    rig.set(|options| options.client_idle = Duration::ZERO);
    rig.log_tmux();
    let session = rig.spawn("loop-a").await;
    let mut watchers = Vec::new();
    let mut expected = Vec::new();
    for (clients, size) in [(0, (0, 0)), (1, (80, 24)), (3, (250, 70))] {
        while watchers.len() < clients {
            let size = (size.0 + u16::try_from(watchers.len()).unwrap() * 10, size.1);
            // The first only watches; the others may type, and do not.
            let words = rig.runner().attach("loop-a", watchers.is_empty());
            watchers.push(Client::attach(&rig, &words, size).await);
        }
        rig.take_log();
        let text = format!("with {clients} watchers");
        assert_eq!(session.deliver(&text).await, DeliveryOutcome::Delivered);
        expected.extend(pasted(&text));
        session.wait_for_bytes(&expected).await;
        let log = rig.take_log();
        assert_eq!(log.len(), 2, "{log:?}");
        for word in log.iter().flatten().flat_map(|argument| argument.split_whitespace()) {
            assert!(!CLIENT_COMMANDS.contains(&word), "{word} in {log:?}");
        }
        let spelled = log.concat().join(" ");
        assert!(!spelled.contains(" -c ") && spelled.contains("load-buffer -b dlv_"), "{spelled}");
    }
}

#[tokio::test]
async fn del_5_a_return_is_not_sent_when_the_harness_changed_its_mind() {
    let rig = Rig::new();
    let session = rig.spawn("loop-a").await;
    let gate = Gate::says([Ok(()), Err(HoldReason::DialogOpen)]);
    let outcome = session.deliver_when("text", Readiness::Signals, gate).await;
    assert_eq!(outcome, DeliveryOutcome::Unsubmitted(HoldReason::DialogOpen));
    session.wait_for_bytes(b"\x1b[200~text\x1b[201~").await;
    // An empty text is the return alone, for a text that stands in the composer.
    assert_eq!(session.deliver("").await, DeliveryOutcome::Delivered);
    session.wait_for_bytes(&pasted("text")).await;
    assert_eq!(rig.tmux(&["list-buffers"]), "");
}

#[tokio::test]
async fn del_7_a_held_text_writes_no_byte_and_leaves_no_buffer() {
    let rig = Rig::new();
    let session = rig.spawn("loop-a").await;
    for reason in [HoldReason::StateUnknown, HoldReason::DialogOpen, HoldReason::Paused] {
        let outcome = session.deliver_when("held", Readiness::Signals, Gate::says([Err(reason.clone())])).await;
        assert_eq!(outcome, DeliveryOutcome::Held(reason));
    }
    assert_eq!(session.deliver("after").await, DeliveryOutcome::Delivered);
    session.wait_for_bytes(&pasted("after")).await;
    assert_eq!(rig.tmux(&["list-buffers"]), "");
}

#[tokio::test]
async fn del_1_a_caller_that_loses_interest_leaves_a_whole_text_or_none() {
    let rig = Rig::new();
    let session = rig.spawn("loop-a").await;
    let text = "x".repeat(200_000);
    let whole = [b"\x1b[200~", text.as_bytes(), b"\x1b[201~"].concat();
    for micros in (0..20).map(|n| n * 400) {
        let work = session.deliver(&text);
        let _given_up = tokio::time::timeout(Duration::from_micros(micros), work).await;
    }
    assert_eq!(session.deliver("the end").await, DeliveryOutcome::Delivered);
    let end = pasted("the end");
    let bytes = wait_for("the end", || Some(session.bytes()).filter(|bytes| bytes.ends_with(&end))).await;
    let mut rest = &bytes[..bytes.len() - end.len()];
    while !rest.is_empty() {
        rest = rest.strip_prefix(whole.as_slice()).expect("a text came in pieces");
        rest = rest.strip_prefix(b"\r").unwrap_or(rest);
    }
    wait_for("the deletion of all buffers", || rig.tmux(&["list-buffers"]).is_empty().then_some(())).await;
}

#[tokio::test]
async fn tm_01_a_dead_session_never_reaches_a_longer_named_neighbour() {
    let rig = Rig::new();
    let short = rig.spawn("loop-1").await;
    let long = rig.spawn("loop-12").await;
    rig.tmux(&["kill-session", "-t", "=loop-1"]);
    assert!(matches!(short.deliver("for 1").await, DeliveryOutcome::Gone { .. }));
    let grace = crate::rig::termination(Duration::from_millis(100));
    rig.runner().terminate(&short.handle, &grace).await.unwrap();
    rig.runner().kill(&short.handle, &grace).await.unwrap();
    assert!(rig.runner().capture(&short.handle, Default::default()).await.is_err());
    assert_eq!(long.deliver("for 12").await, DeliveryOutcome::Delivered);
    long.wait_for_bytes(&pasted("for 12")).await;
}

#[tokio::test]
async fn del_7_a_pane_that_died_takes_nothing() {
    let rig = Rig::new();
    let session = rig.spawn("loop-a").await;
    rig.runner().terminate(&session.handle, &crate::rig::termination(Duration::from_secs(5))).await.unwrap();
    assert!(matches!(session.deliver("late").await, DeliveryOutcome::Gone { .. }));
    let nonsense = RunnerHandle { data: serde_json::json!({"paneId": "%0; kill-server"}), ..session.handle.clone() };
    let nonsense = Session { rig: &rig, handle: nonsense, out: session.out.clone() };
    assert!(matches!(nonsense.deliver("odd").await, DeliveryOutcome::Gone { .. }));
    assert_eq!(session.bytes(), b"");
}

#[tokio::test]
async fn del_7_a_server_killed_under_a_delivery_is_gone_or_uncertain_never_delivered() {
    let rig = Rig::new();
    let session = rig.spawn("loop-a").await;
    rig.tmux(&["kill-server"]);
    let outcome = rig.runner().deliver(&session.handle, &delivery("late", Readiness::Signals, Gate::open())).await;
    assert!(matches!(outcome, DeliveryOutcome::Gone { .. } | DeliveryOutcome::NotWritten { .. }), "{outcome:?}");
}
