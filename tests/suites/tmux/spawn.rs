//! Starting, and what stands under a name.

use std::{collections::BTreeSet, fs, time::Duration};

use the_loop_plugin_api::{Liveness, Runner as _, SessionKey, runner::SpawnError};
use the_loop_plugin_tmux::TmuxRunner;

use crate::rig::{RECORDER, Rig, Session, termination, wait_for};

#[tokio::test]
async fn tm_02_every_look_alike_gets_a_session_that_tmux_knows_as_printed() {
    let rig = Rig::new();
    let refs = [
        "octo/foo.js#1",
        "octo/foo_js#1",
        "octo/foo-js#1",
        "octo-a/b#1",
        "octo/a-b#1",
        "Octo/Hello#1",
        "octo/hello#1",
        "octo/hello#11",
        "octo/.github#1",
    ];
    let names: BTreeSet<String> = refs
        .iter()
        .map(|item| SessionKey::work_item(format!("github:{item}").parse().unwrap()).terminal_name())
        .collect();
    assert_eq!(names.len(), 8, "two of the refs are one item: {names:?}");
    let mut sessions = Vec::new();
    for name in &names {
        assert!(!name.contains(['.', ':']), "{name}");
        sessions.push(rig.spawn(name).await);
    }
    let known: BTreeSet<String> =
        rig.tmux(&["list-sessions", "-F", "#{session_name}"]).lines().map(str::to_owned).collect();
    assert_eq!(known, names);
    for name in &names {
        let words = rig.runner().attach(name, false);
        assert_eq!(words, ["tmux", "-L", "suite", "attach", "-t", &format!("={name}")]);
        assert!(rig.try_tmux(&["has-session", "-t", &words[5]]).status.success(), "{name}");
    }
    let stopped = sessions.remove(0);
    rig.runner().kill(&stopped.handle, &termination(Duration::from_secs(5))).await.unwrap();
    for session in &sessions {
        let found = rig.runner().probe(session.name(), Some(&session.handle)).await;
        assert_eq!(found, Liveness::Live { ours: true }, "{}", session.name());
    }
}

#[tokio::test]
async fn tmx_1_a_name_that_tmux_would_change_is_refused() {
    let rig = Rig::new();
    for name in ["loop.a", "loop:a", "", "=loop", "loop a"] {
        let refused = rig.try_spawn(name, &[]).await;
        assert!(matches!(refused, Err(SpawnError::Failed { .. })), "{name:?}");
    }
    assert_eq!(rig.runner().survey().await, Some(Vec::new()));
}

#[tokio::test]
async fn tmx_4_a_live_occupant_is_left_alone_and_named_with_the_remedy() {
    let rig = Rig::new();
    let first = rig.spawn("loop-a").await;
    let Err(error) = rig.try_spawn("loop-a", &[]).await else { panic!("it was spawned over") };
    assert!(matches!(error, SpawnError::Occupied { .. }));
    assert!(error.to_string().contains("tmux -L suite attach -r -t =loop-a"), "{error}");
    let found = rig.runner().probe("loop-a", Some(&first.handle)).await;
    assert_eq!(found, Liveness::Live { ours: true });
    assert_eq!(rig.runner().probe("loop-a", None).await, Liveness::Live { ours: false });
}

#[tokio::test]
async fn tmx_4_a_dead_occupant_is_cleared() {
    let rig = Rig::new();
    let first = rig.try_spawn("loop-a", &["--exit", "7"]).await.unwrap();
    wait_for_death(&rig, &first).await;
    assert_eq!(first.wait_for_end().await.code, Some(7));
    let second = rig.spawn("loop-a").await;
    assert_ne!(first.part("panePid"), second.part("panePid"));
    let found = rig.runner().probe("loop-a", Some(&first.handle)).await;
    assert_eq!(found, Liveness::Live { ours: false }, "the first one's handle does not name the second");
}

#[tokio::test]
async fn tmx_4_a_name_taken_in_between_is_decided_again_once() {
    let rig = Rig::new();
    let real = Rig::real_tmux();
    let (real, once) = (real.display(), rig.path("once").display().to_string());
    // Someone is faster, between the look and the start.
    rig.program(
        "tmux",
        &format!(
            "case \" $* \" in *' new-session '*) mkdir {once} 2>/dev/null && \
             {real} -L suite new-session -d -s loop-a -- sleep 60;; esac\nexec {real} \"$@\""
        ),
    );
    let refused = rig.try_spawn("loop-a", &[]).await;
    assert!(matches!(refused, Err(SpawnError::Occupied { .. })), "{:?}", refused.err());
    wait_for("the faster one, which lives", || {
        (rig.tmux(&["list-panes", "-a", "-F", "#{pane_dead} #{pane_current_command}"]) == "0 sleep").then_some(())
    })
    .await;
}

#[tokio::test]
async fn tmx_3_absent_dead_and_live_are_told_apart_in_one_process() {
    let rig = Rig::new();
    rig.log_tmux();
    assert_eq!(rig.runner().probe("loop-a", None).await, Liveness::Absent);
    let live = rig.spawn("loop-a").await;
    let dead = rig.try_spawn("loop-b", &["--exit", "0"]).await.unwrap();
    wait_for_death(&rig, &dead).await;
    for n in 0..5 {
        rig.spawn(&format!("loop-more-{n}")).await;
    }
    rig.take_log();
    let survey = rig.runner().survey().await.unwrap();
    assert_eq!(rig.take_log().len(), 1, "one process for all sessions");
    assert_eq!(survey.len(), 7);
    let entry = survey.iter().find(|found| found.name == "loop-a").unwrap();
    for part in ["socket", "serverPid", "sessionId", "paneId", "panePid"] {
        assert_eq!(entry.data[part], live.handle.data[part], "{part}");
    }
    assert!(survey.iter().find(|found| found.name == "loop-b").unwrap().dead);
    assert_eq!(rig.runner().probe("loop-b", Some(&dead.handle)).await, Liveness::Dead { ours: true });
    assert_eq!(rig.runner().probe("loop", None).await, Liveness::Absent, "a prefix is nobody");
}

#[tokio::test]
async fn tmx_7_the_agent_gets_the_planned_environment_and_the_server_no_secret() {
    let rig = Rig::new();
    let session = rig.spawn("loop-a").await;
    let environment = fs::read(session.out.join("env")).unwrap();
    let names: BTreeSet<String> = String::from_utf8(environment)
        .unwrap()
        .split_terminator('\0')
        .map(|pair| pair.split_once('=').unwrap().0.to_owned())
        .collect();
    let expected = ["PLANNED", "TERM", "TMUX", "TMUX_PANE"].map(str::to_owned);
    assert_eq!(names, BTreeSet::from(expected));
    assert_eq!(fs::read_to_string(session.out.join("cwd")).unwrap(), rig.path("work").to_str().unwrap());
    let server = rig.tmux(&["show-environment", "-g"]);
    assert!(!server.contains("canary-secret") && server.contains("HOME="), "{server}");
    assert!(!server.contains("CARGO"), "what the test itself was started with does not pass either: {server}");
}

#[tokio::test]
async fn tmx_8_under_systemd_the_server_starts_in_a_scope_of_its_own() {
    let mut rig = Rig::new();
    rig.set(|options| {
        options.under_systemd = true;
        options.bus = Some("unix:path=/run/bus".into());
    });
    let log = rig.path("scope.log");
    rig.program(
        "systemd-run",
        &format!(
            "echo \"$* bus=$DBUS_SESSION_BUS_ADDRESS\" >> {}\nwhile [ \"$1\" != -- ]; do shift; done; shift\nexec \"$@\"",
            log.display()
        ),
    );
    rig.spawn("loop-a").await;
    let told = fs::read_to_string(&log).unwrap();
    assert!(told.starts_with("--user --scope --quiet --collect -- tmux -u -L suite new-session"), "{told}");
    assert!(told.trim_end().ends_with("bus=unix:path=/run/bus"), "{told}");
    rig.spawn("loop-b").await;
    assert_eq!(fs::read_to_string(&log).unwrap(), told, "a server that runs is used as it is");
}

#[tokio::test]
async fn tmx_8_a_systemd_that_refuses_does_not_keep_sessions_from_starting() {
    let mut rig = Rig::new();
    rig.set(|options| options.under_systemd = true);
    rig.program("systemd-run", "echo 'Failed to connect to bus' >&2; exit 1");
    rig.spawn("loop-a").await;
}

#[tokio::test]
async fn tmx_8_a_tmux_that_is_too_old_is_named() {
    let rig = Rig::new();
    for (version, old) in [("3.1c", true), ("2.9", true), ("3.2", false), ("next-3.7", false), ("master", false)] {
        rig.program(
            "tmux",
            &format!("[ \"$1\" = -V ] && exec echo tmux {version}; exec {} \"$@\"", Rig::real_tmux().display()),
        );
        let described = rig.runner().describe().await;
        assert_eq!(described.version.as_deref(), Some(version));
        let named = described.problem.is_some_and(|problem| problem.contains("3.2"));
        assert_eq!(named, old, "{version}");
    }
}

#[tokio::test]
async fn tmx_12_the_default_server_is_the_users_and_a_surrounding_tmux_is_ignored() {
    let mut rig = Rig::new();
    rig.set(|options| options.socket_name = String::new());
    let session = rig.spawn("loop-a").await;
    let expected = rig.path("sockets").join(format!("tmux-{}/default", nix::unistd::getuid()));
    assert_eq!(session.part("socket"), expected.to_str().unwrap());
    assert_eq!(rig.runner().attach("loop-a", true), ["tmux", "attach", "-r", "-t", "=loop-a"]);
    let described = rig.runner().describe().await;
    assert_eq!((described.address.as_str(), described.problem), (expected.to_str().unwrap(), None));
    assert!(described.version.is_some_and(|version| version.starts_with(char::is_numeric)));
}

#[tokio::test]
async fn tmx_12_a_handle_of_an_earlier_server_is_never_ours() {
    let rig = Rig::new();
    let first = rig.spawn("loop-a").await;
    rig.tmux(&["kill-server"]);
    wait_for("the end of the server", || (!rig.try_tmux(&["list-sessions"]).status.success()).then_some(())).await;
    let second = rig.spawn("loop-a").await;
    for part in ["socket", "sessionId", "paneId"] {
        assert_eq!(first.part(part), second.part(part), "ids start again with a new server");
    }
    assert_ne!(first.part("serverPid"), second.part("serverPid"));
    let runner = rig.runner();
    assert_eq!(runner.probe("loop-a", Some(&first.handle)).await, Liveness::Live { ours: false });
    assert!(matches!(first.deliver("to the first").await, the_loop_plugin_api::delivery::DeliveryOutcome::Gone { .. }));
    wait_for("the end of the first agent", || runner.agent_pid(&first.handle).is_none().then_some(())).await;
    assert!(runner.terminate(&first.handle, &termination(Duration::ZERO)).await.is_err());
    assert!(runner.kill(&first.handle, &termination(Duration::ZERO)).await.is_err());
    assert_eq!(runner.probe("loop-a", Some(&second.handle)).await, Liveness::Live { ours: true });
    assert_eq!(second.bytes(), b"");
}

#[tokio::test]
async fn a_folder_that_is_gone_starts_nothing_in_another() {
    let rig = Rig::new();
    fs::remove_dir(rig.path("work")).unwrap();
    let refused = rig.try_spawn("loop-a", &[]).await;
    assert!(matches!(refused, Err(SpawnError::NoFolder { .. })), "{:?}", refused.err());
    assert_eq!(rig.runner().survey().await, Some(Vec::new()));
}

#[tokio::test]
async fn a_missing_tmux_is_named_with_the_remedy() {
    let mut rig = Rig::new();
    rig.set(|options| options.program = "tmux-that-is-not-there".into());
    let Err(error) = rig.try_spawn("loop-a", &[]).await else { panic!("it was started without tmux") };
    assert!(error.to_string().contains("install tmux"), "{error}");
    let runner = TmuxRunner::new(rig.options());
    assert!(runner.describe().await.problem.is_some_and(|problem| problem.contains("install tmux")));
    assert!(matches!(runner.probe("loop-a", None).await, Liveness::Unknown { .. }));
    assert_eq!(runner.survey().await, None);
}

#[tokio::test]
async fn odd_letters_in_folders_and_programs_are_taken_literally() {
    let rig = Rig::new();
    let odd = rig.path("it's #{pid} %H;");
    fs::create_dir(&odd).unwrap();
    let program = odd.join("recorder;");
    fs::copy(RECORDER, &program).unwrap();
    let argv = vec![program.display().to_string(), "--out".to_owned(), odd.display().to_string()];
    let order = rig.order_of("loop-a", argv, Default::default(), &odd);
    let handle = rig.runner().spawn(&order).await.unwrap();
    let session = Session { rig: &rig, handle, out: odd };
    session.wait_for_file("mark").await;
}

async fn wait_for_death(rig: &Rig, session: &Session<'_>) {
    let pane = session.part("paneId");
    wait_for("the pane's death", || {
        let panes = rig.tmux(&["list-panes", "-a", "-F", "#{pane_id} #{pane_dead}"]);
        panes.lines().any(|line| line == format!("{pane} 1")).then_some(())
    })
    .await;
}
