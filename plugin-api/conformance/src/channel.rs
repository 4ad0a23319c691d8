//! The suite for a [`Channel`] (ARC-4, ARC-8, ASK-6, SEC-4).

use std::sync::Arc;

use async_trait::async_trait;
use the_loop_plugin_api::{
    Channel, SessionKey,
    channel::{Message, Thread},
    event::Ingress,
};

use crate::{
    bench::Bench,
    descriptor,
    ingress::ends,
    kit::Kit,
    report::{Report, same, when},
};

/// The surface behind the channel: the test plays it.
#[async_trait]
pub trait Surface: Send + Sync {
    /// Everything that was posted into a conversation, oldest first, its opening included.
    async fn posted(&self, thread: &Thread) -> Vec<String>;

    /// Lets a person say something in a conversation.
    async fn say(&self, thread: &Thread, text: &str);
}

/// Runs the suite against the registered channel `name`, which the config of `bench` enables and subscribes to
/// questions.
pub async fn check(kit: &Kit, name: &str, bench: &Bench, surface: &dyn Surface) -> Report {
    let mut report = Report::new(format!("channel {name}"));
    let Some(channel) = descriptor::build(kit, &kit.claim().channels, name, bench, &mut report) else {
        return report;
    };
    report.must("ARC-4", "be enabled by its config", when(channel.enabled(), || "it says that it is not".to_owned()));
    report.must(
        "ASK-6",
        "subscribe to questions, as its config does",
        when(channel.subscribes("session.awaiting_input"), || "it says that it does not".to_owned()),
    );
    describes_itself(&*channel, bench, &mut report).await;
    if let Some(thread) = posts(kit, &*channel, surface, &mut report).await {
        listens(channel, &thread, bench, surface, &mut report).await;
    }
    report
}

async fn describes_itself(channel: &dyn Channel, bench: &Bench, report: &mut Report) {
    let description = channel.describe();
    report.must(
        "SEC-4",
        "say in one line what it is",
        when(!description.trim().is_empty() && !description.contains('\n'), || format!("{description:?}")),
    );
    let findings = channel.doctor().await;
    let wrong: Vec<_> = findings.iter().filter(|finding| !finding.ok).map(|finding| finding.text.as_str()).collect();
    report.must(
        "SEC-4",
        "find itself well, and say what it looked at",
        when(!findings.is_empty() && wrong.is_empty(), || format!("{} findings, wrong: {wrong:?}", findings.len())),
    );
    let shown = format!("{description} {findings:?}");
    report.must(
        "SEC-4",
        "show no secret",
        when(bench.secret_values().all(|secret| !shown.contains(secret)), || "a secret's value is shown".to_owned()),
    );
}

async fn posts(kit: &Kit, channel: &dyn Channel, surface: &dyn Surface, report: &mut Report) -> Option<Thread> {
    let message = |key: &str, text: &str| Message::new(kit.key(), key.to_owned(), text.to_owned(), Vec::new());
    let session = SessionKey::Server { harness: "conformance".to_owned(), id: "kit".to_owned() };
    let thread = match channel.open(&session, &message("open", "the opening")).await {
        Ok(thread) => thread,
        Err(error) => {
            report.must("ARC-4", "open a conversation", Err(error.to_string()));
            return None;
        }
    };
    report.must("ARC-4", "open a conversation", Ok(()));
    let again = channel.open(&session, &message("open", "the opening")).await;
    report.must(
        "ASK-6",
        "open one conversation, however often one message opens it",
        again.map_err(|error| error.to_string()).and_then(|again| same(&again, &thread)),
    );
    let mut posted = Ok(());
    for (key, text) in [("one", "first"), ("two", "second"), ("one", "first"), ("two", "second")] {
        posted = posted.and(channel.post(&thread, &message(key, text)).await.map_err(|error| error.to_string()));
    }
    let seen = surface.posted(&thread).await;
    let times = |text: &str| seen.iter().filter(|post| post.contains(text)).count();
    report.must(
        "REL-1",
        "post one message once, however often it is asked for, and in order",
        posted.and_then(|()| same(&[times("the opening"), times("first"), times("second")], &[1, 1, 1])).and_then(
            |()| {
                let place = |text: &str| seen.iter().position(|post| post.contains(text));
                when(place("first") < place("second"), || format!("{seen:?}"))
            },
        ),
    );
    Some(thread)
}

async fn listens(
    channel: Arc<dyn Channel>,
    thread: &Thread,
    bench: &Bench,
    surface: &dyn Surface,
    report: &mut Report,
) {
    let mut task = tokio::spawn(async move { channel.listen().await });
    surface.say(thread, "a reply of a person").await;
    let sink = bench.sink();
    let came = sink.wait_until(bench.patience(), |events, _| !events.is_empty()).await;
    let kinds: Vec<_> = sink.events().iter().map(|event| event.ingress).collect();
    report.must(
        "ARC-4",
        "submit what people say, as a channel",
        when(came && kinds.iter().all(|kind| *kind == Ingress::Channel), || format!("what came: {kinds:?}")),
    );
    ends(&mut task, bench, report).await;
}
