//! What arrives, byte for byte.

use std::{sync::Arc, time::Duration};

use futures::future::join_all;
use the_loop_plugin_api::delivery::{DeliveryOutcome, HoldReason};
use tokio::time::{self, Instant};

use super::{Hosted, Stage, gates::Gate, program::Program};
use crate::report::{Report, same, when};

const TEXT: &str =
    "from the-loop\ndelivery: dlv_1\n\n/quit !ls #x @y\n\ttab, caf\u{e9} \u{1f512}, \\e[201~ as text\nC-c Enter\nlast";

/// The bytes of one bracketed paste, and of its return (DEL-1).
fn paste(text: &str, submitted: bool) -> Vec<u8> {
    let end = if submitted { "\r" } else { "" };
    format!("\u{1b}[200~{text}\u{1b}[201~{end}").into_bytes()
}

fn shown(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    format!("{} bytes: {:.200}", bytes.len(), format!("{text:?}"))
}

fn exactly(found: &[u8], expected: &[u8]) -> Result<(), String> {
    when(found == expected, || format!("found {}, expected {}", shown(found), shown(expected)))
}

/// One text, and a large one, into one session.
pub(super) async fn arrives_whole(stage: &Stage<'_>, report: &mut Report) {
    let hosted = match stage.recorder(&stage.session("text")).await {
        Ok(hosted) => hosted,
        Err(problem) => return report.must("DEL-1", "start a recorder", Err(problem)),
    };
    let gate = Gate::open();
    let outcome = stage.deliver(&hosted, TEXT, Arc::clone(&gate)).await;
    let mut expected = paste(TEXT, true);
    let found = hosted.record.wait_for(expected.len(), stage.bench.patience()).await;
    report.must(
        "DEL-1",
        "paste a text as one bracketed paste and return it",
        same(&outcome, &DeliveryOutcome::Delivered).and(exactly(&found, &expected)),
    );
    report.must(
        "DEL-5",
        "ask the gate before the text and again before the return",
        when(gate.asked() >= 2, || format!("it was asked {} times", gate.asked())),
    );

    let large: String = (0..)
        .map(|line: u32| format!("line {line} of a large text \u{e9}\n"))
        .scan(0, |size, line| {
            *size += line.len();
            (*size <= stage.case.large).then_some(line)
        })
        .collect();
    let outcome = stage.deliver(&hosted, &large, Gate::open()).await;
    expected.extend(paste(&large, true));
    let found = hosted.record.wait_for(expected.len(), stage.bench.patience()).await;
    report.must(
        "DEL-4",
        "bring a large text whole",
        same(&outcome, &DeliveryOutcome::Delivered).and(exactly(&found, &expected)),
    );
    stage.clear([&hosted]).await;
}

/// What must not be written yet.
pub(super) async fn holds(stage: &Stage<'_>, report: &mut Report) {
    match stage.spawn(&stage.session("mute"), Program::Mute).await {
        Ok(mute) if mute.record.opened(stage.bench.patience()).await => {
            let outcome = stage.try_delivery(&mute, TEXT, Gate::open()).await;
            report.must(
                "DEL-5",
                "hold a text while the program has not switched bracketed paste on",
                same(&outcome, &DeliveryOutcome::Held(HoldReason::NotReady)).and(exactly(&mute.record.bytes(), b"")),
            );
            stage.clear([&mute]).await;
        }
        other => {
            let problem = other.map_or_else(|error| error.to_string(), |_| "it never began to read".to_owned());
            report.must("DEL-5", "start a program that is never ready", Err(problem));
        }
    }

    let hosted = match stage.recorder(&stage.session("held")).await {
        Ok(hosted) => hosted,
        Err(problem) => return report.must("DEL-5", "start a recorder", Err(problem)),
    };
    // Once a first text went through, only the gate can hold the next ones.
    let outcome = stage.deliver(&hosted, "first", Gate::open()).await;
    let mut expected = paste("first", true);
    let found = hosted.record.wait_for(expected.len(), stage.bench.patience()).await;
    report.must(
        "DEL-1",
        "deliver before a hold",
        same(&outcome, &DeliveryOutcome::Delivered).and(exactly(&found, &expected)),
    );

    let wanted = DeliveryOutcome::Held(HoldReason::DialogOpen);
    let outcome = until(stage, &hosted, "held", Gate::closed, &wanted).await;
    report.must(
        "DEL-5",
        "write no byte while the gate holds",
        same(&outcome, &wanted).and(exactly(&hosted.record.bytes(), &expected)),
    );
    let wanted = DeliveryOutcome::Unsubmitted(HoldReason::DialogOpen);
    let outcome = until(stage, &hosted, "unsubmitted", Gate::dialog_after_the_text, &wanted).await;
    expected.extend(paste("unsubmitted", false));
    let found = hosted.record.wait_for(expected.len(), stage.bench.patience()).await;
    report.must(
        "DEL-5",
        "send no return when a dialog opens after the text",
        same(&outcome, &wanted).and(exactly(&found, &expected)),
    );
    stage.clear([&hosted]).await;
}

/// Orders a delivery, each time with a new gate, until the runner no longer holds it for reasons of its own.
async fn until(
    stage: &Stage<'_>,
    hosted: &Hosted,
    text: &str,
    gate: fn() -> Arc<Gate>,
    wanted: &DeliveryOutcome,
) -> DeliveryOutcome {
    let end = Instant::now() + stage.bench.patience();
    loop {
        let outcome = stage.try_delivery(hosted, text, gate()).await;
        if outcome == *wanted || !matches!(outcome, DeliveryOutcome::Held(_)) || Instant::now() >= end {
            return outcome;
        }
        time::sleep(Duration::from_millis(25)).await;
    }
}

/// Four sessions, each with its own texts, all at once (TMX-11).
pub(super) async fn bursts(stage: &Stage<'_>, report: &mut Report) {
    let mut sessions = Vec::new();
    for number in 0..4 {
        match stage.recorder(&stage.session(&format!("burst-{number}"))).await {
            Ok(hosted) => sessions.push(hosted),
            Err(problem) => report.must("TMX-11", "start four recorders", Err(problem)),
        }
    }
    let text =
        |session: usize, number: usize| format!("session {session}, text {number}\nsecond line of {session}/{number}");
    let delivering = sessions.iter().enumerate().map(|(session, hosted)| async move {
        let mut wrong = Vec::new();
        for number in 0..stage.case.burst {
            let outcome = stage.deliver(hosted, &text(session, number), Gate::open()).await;
            if outcome != DeliveryOutcome::Delivered {
                wrong.push(format!("{session}/{number}: {outcome:?}"));
            }
        }
        let expected: Vec<u8> = (0..stage.case.burst).flat_map(|number| paste(&text(session, number), true)).collect();
        let found = hosted.record.wait_for(expected.len(), stage.bench.patience()).await;
        when(wrong.is_empty(), || wrong.join(", ")).and(exactly(&found, &expected))
    });
    let mut met = Ok(());
    for result in join_all(delivering).await {
        met = met.and(result);
    }
    report.must("TMX-11", "bring every text of a burst to its own session, once, whole and in order", met);
    stage.clear(&sessions).await;
}
