//! Starting, probing, ending and removing.

use std::path::PathBuf;

use the_loop_plugin_api::{
    Liveness, RunnerHandle,
    delivery::DeliveryOutcome,
    runner::{CaptureOptions, SpawnError, Terminated},
};

use super::{
    BANNER, Hosted, Stage,
    gates::Gate,
    program::{Program, Record},
};
use crate::report::{Report, same, when};

/// Names, occupants and what a start reports.
pub(super) async fn starts(stage: &Stage<'_>, report: &mut Report) {
    let (name, longer) = (stage.session("a"), stage.session("a-longer"));
    report.must(
        "TMX-3",
        "say that nothing stands under a name",
        same(&stage.runner.probe(&name, None).await, &Liveness::Absent),
    );

    let neighbour = match stage.recorder(&longer).await {
        Ok(hosted) => hosted,
        Err(problem) => return report.must("TMX-4", "start a program under a free name", Err(problem)),
    };
    report.must(
        "TMX-2",
        "never take a longer name for a shorter one",
        same(&stage.runner.probe(&name, None).await, &Liveness::Absent),
    );
    match stage.recorder(&name).await {
        Ok(first) => {
            report.must("TMX-4", "start a program under a free name", Ok(()));
            looks(stage, &name, &first, &neighbour, report).await;
            stage.clear([&first]).await;
        }
        Err(problem) => report.must("TMX-4", "start a program under a free name", Err(problem)),
    }
    let nowhere = stage.bench.folder().join("no-such-folder");
    let refused = stage.order_in(&stage.session("nowhere"), Program::Recorder, &Record(stage.file("record")), nowhere);
    let answer = stage.runner.spawn(&refused).await;
    report.must(
        "TMX-4",
        "refuse a folder that is not there",
        when(matches!(answer, Err(SpawnError::NoFolder { .. })), || format!("it answers {answer:?}")),
    );
    stage.clear([&neighbour]).await;
}

async fn looks(stage: &Stage<'_>, name: &str, first: &Hosted, neighbour: &Hosted, report: &mut Report) {
    let handle = &first.handle;
    report.must(
        "TMX-12",
        "give a handle that says whose it is and reads back from a record",
        same(&(handle.runner.as_str(), handle.name.as_str()), &(stage.name, name)).and_then(|()| {
            let written = serde_json::to_string(handle).map_err(|error| error.to_string())?;
            let read: RunnerHandle = serde_json::from_str(&written).map_err(|error| error.to_string())?;
            same(&read, handle)
        }),
    );
    report.must("TMX-3", "find its own process live", stage.settles(handle, &Liveness::Live { ours: true }).await);
    let again = stage.spawn(name, Program::Brief).await;
    let occupied = matches!(again, Err(SpawnError::Occupied { .. }));
    report.must(
        "TMX-4",
        "leave a live occupant alone and say so",
        when(occupied, || format!("it answers {:?}", again.map(|hosted| hosted.handle)))
            .and(stage.settles(handle, &Liveness::Live { ours: true }).await),
    );
    let survey = stage.runner.survey().await;
    let names =
        survey.as_ref().map(|all| all.iter().filter(|one| !one.dead).map(|one| one.name.as_str()).collect::<Vec<_>>());
    report.must(
        "TMX-9",
        "list all that occupies it in one look",
        when(
            names
                .as_ref()
                .is_some_and(|names| names.contains(&name) && names.contains(&neighbour.handle.name.as_str())),
            || format!("{names:?}"),
        ),
    );
    let screen = stage.runner.capture(handle, CaptureOptions::default()).await;
    report.must(
        "TMX-10",
        "show what the terminal shows",
        match screen {
            Ok(screen) => when(screen.text.contains(BANNER), || format!("{:?}", screen.text)),
            Err(error) => Err(error.to_string()),
        },
    );
    let attach = [stage.runner.attach(name, false), stage.runner.attach(name, true)];
    report.must(
        "SES-5",
        "say how a person attaches, to write and to read",
        when(attach.iter().all(|argv| argv.iter().any(|word| word.contains(name))) && attach[0] != attach[1], || {
            format!("{attach:?}")
        }),
    );
}

/// The ends of a process, polite and forced, and what stays.
pub(super) async fn ends(stage: &Stage<'_>, report: &mut Report) {
    let name = stage.session("end");
    let first = match stage.recorder(&name).await {
        Ok(hosted) => hosted,
        Err(problem) => return report.must("TMX-5", "start a program to end", Err(problem)),
    };
    let dead = Liveness::Dead { ours: true };
    let ended = stage.runner.terminate(&first.handle, &stage.termination()).await.map_err(|error| error.to_string());
    report.must(
        "TMX-5",
        "end a program by the polite signal",
        ended.and_then(|ended| same(&ended, &Terminated::Gracefully)),
    );
    report.must("TMX-5", "find it dead then, and not absent", stage.settles(&first.handle, &dead).await);
    report.must(
        "TMX-5",
        "name no process of a program that ended",
        same(&stage.runner.agent_pid(&first.handle), &None),
    );
    let screen = stage.runner.capture(&first.handle, CaptureOptions { scrollback: 100, colours: false }).await;
    report.must(
        "TMX-5",
        "keep the terminal readable",
        match screen {
            Ok(screen) => when(screen.text.contains(BANNER), || format!("{:?}", screen.text)),
            Err(error) => Err(error.to_string()),
        },
    );
    let before = first.record.bytes();
    let outcome = stage.try_delivery(&first, "to the dead", Gate::open()).await;
    report.must(
        "DEL-7",
        "write no byte to a program that is gone, and say so",
        when(matches!(outcome, DeliveryOutcome::Gone { .. }) && first.record.bytes() == before, || {
            format!("{outcome:?}")
        }),
    );
    let again = stage.runner.terminate(&first.handle, &stage.termination()).await.map_err(|error| error.to_string());
    report.must("TMX-5", "end twice what ended once", again.and_then(|ended| same(&ended, &Terminated::AlreadyGone)));

    match stage.recorder(&name).await {
        Ok(second) => {
            report.must("TMX-4", "clear a dead occupant and start", Ok(()));
            report.must(
                "TMX-12",
                "tell its own process from another one under the same name",
                same(&stage.runner.probe(&name, Some(&first.handle)).await, &Liveness::Live { ours: false }),
            );
            let stale = stage.runner.kill(&first.handle, &stage.termination()).await;
            let live = stage.settles(&second.handle, &Liveness::Live { ours: true }).await;
            report.must(
                "TMX-12",
                "remove nothing for a handle of an earlier process",
                live.map_err(|problem| format!("{problem} ({stale:?})")),
            );
            stage.clear([&second]).await;
        }
        Err(problem) => report.must("TMX-4", "clear a dead occupant and start", Err(problem)),
    }
    stubborn(stage, report).await;
}

async fn stubborn(stage: &Stage<'_>, report: &mut Report) {
    let name = stage.session("stubborn");
    let hosted = match stage.spawn(&name, Program::Stubborn).await {
        Ok(hosted) if hosted.record.opened(stage.bench.patience()).await => hosted,
        Ok(_) => return report.must("TMX-5", "start a program to force", Err("it never began to read".to_owned())),
        Err(error) => return report.must("TMX-5", "start a program to force", Err(error.to_string())),
    };
    let ended = stage.runner.terminate(&hosted.handle, &stage.termination()).await.map_err(|error| error.to_string());
    report.must(
        "TMX-5",
        "force a program that ignores the polite signal, after the grace",
        ended.and_then(|ended| same(&ended, &Terminated::Forced)),
    );
    report.must("TMX-5", "find it dead then", stage.settles(&hosted.handle, &Liveness::Dead { ours: true }).await);
    stage.clear([&hosted]).await;

    match stage.spawn(&stage.session("brief"), Program::Brief).await {
        Ok(brief) => {
            let settled = stage.settles(&brief.handle, &Liveness::Dead { ours: true }).await;
            report.must("TMX-5", "keep the terminal of a program that ended by itself", settled);
            stage.clear([&brief]).await;
        }
        Err(error) => {
            report.must("TMX-5", "keep the terminal of a program that ended by itself", Err(error.to_string()))
        }
    }
}

/// Removing touches one session and no other.
pub(super) async fn keeps_to_its_own(stage: &Stage<'_>, report: &mut Report) {
    let (name, longer) = (stage.session("k"), stage.session("k-longer"));
    let (one, other) = match (stage.recorder(&name).await, stage.recorder(&longer).await) {
        (Ok(one), Ok(other)) => (one, other),
        (one, other) => {
            let problems: Vec<_> = [one.err(), other.err()].into_iter().flatten().collect();
            return report.must("TMX-2", "start two programs of like names", Err(problems.join("; ")));
        }
    };
    let killed = stage.runner.kill(&one.handle, &stage.termination()).await.map_err(|error| error.to_string());
    report.must("TMX-5", "remove a session", killed.and(stage.settles(&one.handle, &Liveness::Absent).await));
    report.must(
        "TMX-2",
        "remove no neighbour of a longer name",
        stage.settles(&other.handle, &Liveness::Live { ours: true }).await,
    );
    stage.clear([&other]).await;
    let left: Vec<String> = stage.runner.survey().await.into_iter().flatten().map(|one| one.name).collect();
    let ours: Vec<_> = left.into_iter().filter(|name| name.starts_with(&stage.session(""))).collect();
    report.must("TMX-5", "leave nothing behind", when(ours.is_empty(), || format!("{ours:?}")));
    let files: Vec<PathBuf> = stray_files(stage);
    report.should(
        "TMX-11",
        "leave no file in the folder of a session",
        when(files.is_empty(), || format!("{files:?}")),
    );
}

/// Files in the sessions' folder that the suite did not make.
fn stray_files(stage: &Stage<'_>) -> Vec<PathBuf> {
    let ours = |name: &str| name.starts_with("record-") || name.starts_with("mark-");
    std::fs::read_dir(stage.bench.folder())
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| !ours(&entry.file_name().to_string_lossy()))
        .map(|entry| entry.path())
        .collect()
}
