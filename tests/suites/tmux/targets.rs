//! Nothing that a person does to tmux redirects a text (TMX-2).

use the_loop_plugin_api::{Liveness, Runner as _, delivery::DeliveryOutcome, runner::CaptureOptions};

use crate::rig::{Rig, pasted, wait_for};

#[tokio::test]
async fn tmx_2_user_settings_never_redirect() {
    let rig = Rig::with_config(
        "set -g base-index 1\nset -g pane-base-index 1\nset -g default-command 'sh -c false'\nset -g renumber-windows on\n\
         set -g destroy-unattached on\nset -g default-shell /bin/false\nset -g remain-on-exit off\n",
    );
    // `destroy-unattached` takes every session that is not told otherwise.
    let session = rig.spawn("loop-a").await;
    assert_eq!(session.deliver("text").await, DeliveryOutcome::Delivered);
    session.wait_for_bytes(&pasted("text")).await;
}

#[tokio::test]
async fn tmx_2_a_hook_that_splits_every_new_session_gets_nothing() {
    let rig = Rig::with_config("set-hook -g after-new-session 'split-window -b cat'\n");
    let session = rig.spawn("loop-a").await;
    assert_eq!(session.deliver("text").await, DeliveryOutcome::Delivered);
    session.wait_for_bytes(&pasted("text")).await;
    let panes = rig.tmux(&["list-panes", "-a", "-F", "#{pane_id} #{pane_pipe} #{remain-on-exit}"]);
    let ours = format!("{} 1 on", session.part("paneId"));
    assert_eq!(panes.lines().filter(|line| *line == ours).count(), 1, "{panes}");
    assert!(panes.lines().any(|line| line.ends_with(" 0 off")), "the other pane is left as it is: {panes}");
}

#[tokio::test]
async fn tmx_2_a_mistake_in_the_users_configuration_does_not_take_the_input() {
    let rig = Rig::with_config("set -g no-such-option 1\n");
    let session = rig.spawn("loop-a").await;
    assert_eq!(session.deliver("text").await, DeliveryOutcome::Delivered);
    session.wait_for_bytes(&pasted("text")).await;
}

#[tokio::test]
async fn tmx_2_split_panes_and_moved_focus_never_redirect() {
    let rig = Rig::new();
    let session = rig.spawn("loop-a").await;
    let other = rig.path("typed");
    let command = format!("cat > {}", other.display());
    rig.tmux(&["split-window", "-b", "-t", "=loop-a:", &command]);
    rig.tmux(&["new-window", "-t", "=loop-a:", &command]);
    rig.tmux(&["rename-session", "-t", "=loop-a", "renamed"]);
    rig.tmux(&["new-session", "-d", "-s", "loop-a", &command]);
    assert_eq!(session.deliver("text").await, DeliveryOutcome::Delivered);
    session.wait_for_bytes(&pasted("text")).await;
    let found = rig.runner().probe("loop-a", Some(&session.handle)).await;
    assert_eq!(found, Liveness::Live { ours: true }, "renamed, and still ours");
    assert_eq!(std::fs::read_to_string(other).unwrap_or_default(), "");
    // A grouped session shows the same window under another session id.
    rig.tmux(&["new-session", "-d", "-t", "renamed", "-s", "grouped"]);
    assert_eq!(session.deliver("grouped").await, DeliveryOutcome::Delivered);
}

#[tokio::test]
async fn tmx_2_a_pane_that_was_moved_to_another_session_is_not_reached() {
    let rig = Rig::new();
    let session = rig.spawn("loop-a").await;
    rig.tmux(&["split-window", "-t", "=loop-a:", "cat"]);
    rig.tmux(&["new-session", "-d", "-s", "elsewhere", "cat"]);
    rig.tmux(&["join-pane", "-s", &session.part("paneId"), "-t", "=elsewhere:"]);
    assert!(matches!(session.deliver("text").await, DeliveryOutcome::Gone { .. }));
    assert_eq!(session.bytes(), b"");
}

#[tokio::test]
async fn tmx_2_a_respawned_pane_is_another_process() {
    let rig = Rig::new();
    let session = rig.spawn("loop-a").await;
    rig.tmux(&["respawn-pane", "-k", "-t", &session.part("paneId"), "cat"]);
    assert!(matches!(session.deliver("text").await, DeliveryOutcome::Gone { .. }));
    let found = rig.runner().probe("loop-a", Some(&session.handle)).await;
    assert_eq!(found, Liveness::Live { ours: false });
}

#[tokio::test]
async fn tmx_10_the_screen_is_readable_with_colours_alive_and_dead() {
    let rig = Rig::new();
    let out = rig.path("out");
    std::fs::create_dir(&out).unwrap();
    let script = "i=0; while [ $i -lt 80 ]; do echo \"line $i\"; i=$((i+1)); done; printf '\\033[31mred\\033[0m  grün'";
    let argv = ["/bin/sh", "-c", script].map(str::to_owned).to_vec();
    let handle = rig.runner().spawn(&rig.order_of("loop-a", argv, Default::default(), &out)).await.unwrap();
    let dead = || async { rig.runner().probe("loop-a", Some(&handle)).await == Liveness::Dead { ours: true } };
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while !dead().await {
        assert!(std::time::Instant::now() < deadline, "it did not end");
    }
    let plain = rig.runner().capture(&handle, CaptureOptions::default()).await.unwrap();
    assert!(plain.text.contains("red  grün") && !plain.text.contains("line 3\n"), "{}", plain.text);
    assert_eq!(plain.size, Some((200, 50)));
    assert!(plain.cursor.is_some());
    let options = CaptureOptions { scrollback: 1000, colours: true };
    let whole = rig.runner().capture(&handle, options).await.unwrap();
    assert!(whole.text.starts_with("line 0\nline 1\n") && whole.text.contains("\u{1b}[31mred"), "{}", whole.text);
}

#[tokio::test]
async fn tmx_10_a_screen_of_another_is_not_shown() {
    let rig = Rig::new();
    let session = rig.spawn("loop-a").await;
    rig.tmux(&["respawn-pane", "-k", "-t", &session.part("paneId"), "cat"]);
    assert!(rig.runner().capture(&session.handle, CaptureOptions::default()).await.is_err());
    wait_for("the other process", || rig.try_tmux(&["list-panes", "-a"]).status.success().then_some(())).await;
}
