//! The suite for an [`IngressSource`] (ARC-4, ARC-8, REL-1, SEC-4).

use std::{fmt::Display, sync::Arc, time::Duration};

use async_trait::async_trait;
use axum::Router;
use the_loop_plugin_api::{
    IngressSource,
    event::{Content, InboundEvent},
    ingress::IngressError,
};
use tokio::{task::JoinHandle, time};

use crate::{
    bench::Bench,
    descriptor,
    kit::Kit,
    report::{Report, same, when},
};

/// The world that the source watches: the test plays it.
#[async_trait]
pub trait Outside: Send + Sync {
    /// Makes one thing happen that the source reports as one event. `number` differs each time; `routes` are those of the
    /// source's listener, to be called in-process as the upstream would (`tower::ServiceExt::oneshot`).
    async fn happen(&self, number: u32, routes: Option<Router>) -> Answer;
}

/// How the source answered the outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It acknowledged: the upstream will not send this again.
    Acknowledged,
    /// It did not, so the upstream will send it again.
    Refused,
    /// It was not asked: the source looks by itself.
    Unasked,
}

/// Runs the suite against the registered ingress source `name`, which the config of `bench` enables.
pub async fn check(kit: &Kit, name: &str, bench: &Bench, outside: &dyn Outside) -> Report {
    let mut report = Report::new(format!("ingress {name}"));
    let Some(source) = descriptor::build(kit, &kit.claim().ingresses, name, bench, &mut report) else {
        return report;
    };
    report.must("ARC-4", "be enabled by its config", when(source.enabled(), || "it says that it is not".to_owned()));
    report.must("CFG-2", "find its config sound", source.check().map(drop).map_err(|error| error.to_string()));
    let mut running = Running::start(source, bench);
    running.takes(outside, &mut report).await;
    running.refuses(outside, &mut report).await;
    running.ends(&mut report).await;

    let after = bench.restarted();
    match kit.build(
        kit.claim()
            .ingresses
            .iter()
            .find(|found| found.name() == name)
            .unwrap_or_else(|| unreachable!("it was built before")),
        &after,
    ) {
        Ok(source) => {
            let earlier = bench.sink().events();
            let mut running = Running::start(source, &after);
            running.continues(&earlier, outside, &mut report).await;
            running.ends(&mut report).await;
        }
        Err(error) => report.must("ARC-3", "be built again after a restart", Err(error.to_string())),
    }
    report
}

/// A source that runs.
struct Running<'a> {
    source: Arc<dyn IngressSource>,
    routes: Option<Router>,
    task: JoinHandle<Result<(), IngressError>>,
    bench: &'a Bench,
}

impl<'a> Running<'a> {
    fn start(source: Arc<dyn IngressSource>, bench: &'a Bench) -> Self {
        let routes = source.listener().map(|listener| listener.router);
        let task = tokio::spawn({
            let source = Arc::clone(&source);
            async move { source.run().await }
        });
        Self { source, routes, task, bench }
    }

    async fn happen(&self, outside: &dyn Outside, number: u32) -> Result<(), String> {
        match (outside.happen(number, self.routes.clone()).await, &self.routes) {
            (Answer::Acknowledged, Some(_)) | (Answer::Unasked, None) => Ok(()),
            (answer, routes) => Err(format!("with routes: {}, the answer is {answer:?}", routes.is_some())),
        }
    }

    async fn takes(&self, outside: &dyn Outside, report: &mut Report) {
        let mut answered = Ok(());
        for number in 1..=5 {
            answered = answered.and(self.happen(outside, number).await);
        }
        report.must("REL-1", "acknowledge what the host took", answered);
        let sink = self.bench.sink();
        let arrived = sink.wait_until(self.bench.patience(), |events, _| events.len() >= 5).await;
        let events = sink.events();
        report.must("ARC-4", "submit what happens", when(arrived, || format!("{} of 5 events came", events.len())));
        report.must("REL-1", "give each event an id of its own, by which a repeat is told", ids(&events));
        report.must(
            "REL-1",
            "submit what reads back from the journal as it was",
            events.iter().try_for_each(reads_back),
        );
        let health = self.source.health();
        report.must(
            "HAR-8",
            "say how it is doing in one line",
            when(!health.detail.trim().is_empty() && !health.detail.contains('\n'), || format!("{health:?}")),
        );
        report.must("HAR-8", "name no problem when all is well", same(&health.problem, &None));
        let shown = format!("{health:?} {:?}", self.source.check());
        report.must(
            "SEC-4",
            "show no secret",
            when(self.bench.secret_values().all(|secret| !shown.contains(secret)), || {
                "a secret's value is shown".into()
            }),
        );
    }

    async fn refuses(&self, outside: &dyn Outside, report: &mut Report) {
        let sink = self.bench.sink();
        let before = sink.events().len();
        sink.refuse(true);
        let answer = outside.happen(6, self.routes.clone()).await;
        let tried = sink.wait_until(self.bench.patience(), |_, refused| refused > 0).await;
        report.must("REL-1", "offer the host what happens", when(tried, || "nothing was submitted".to_owned()));
        sink.refuse(false);
        if self.routes.is_some() {
            report.must("REL-1", "acknowledge nothing that the host refused", same(&answer, &Answer::Refused));
        } else {
            let came = sink.wait_until(self.bench.patience(), |events, _| events.len() > before).await;
            report.must(
                "REL-1",
                "offer again what the host refused",
                when(came, || format!("{} events before the refusal, {} after it", before, sink.events().len())),
            );
        }
    }

    async fn continues(&self, earlier: &[InboundEvent], outside: &dyn Outside, report: &mut Report) {
        report.must("REL-1", "go on after a restart", self.happen(outside, 7).await);
        let known: Vec<_> = earlier.iter().filter_map(id).collect();
        let fresh = |events: &[InboundEvent]| events.iter().filter_map(id).any(|id| !known.contains(&id));
        let sink = self.bench.sink();
        let came = sink.wait_until(self.bench.patience(), |events, _| fresh(events)).await;
        report.must("REL-1", "submit after a restart what happens then", when(came, || format!("{:?}", sink.events())));
        let without = sink.events().iter().filter(|event| id(event).is_none()).count();
        report.must("REL-1", "repeat after a restart only what its id tells", same(&without, &0));
    }

    async fn ends(&mut self, report: &mut Report) {
        ends(&mut self.task, self.bench, report).await;
    }
}

/// A task of a plugin runs until the bench is stopped, and no longer (ARC-8).
pub(crate) async fn ends<E: Display>(task: &mut JoinHandle<Result<(), E>>, bench: &Bench, report: &mut Report) {
    const RUN: &str = "run until it is stopped";
    const END: &str = "end when it is stopped";
    // Nothing says that a task will go on running: it is given a moment in which to end.
    if let Ok(ended) = time::timeout(Duration::from_millis(100), &mut *task).await {
        let how = ended
            .map_or_else(|panic| panic.to_string(), |ended| ended.err().map_or_else(String::new, |e| e.to_string()));
        return report.must("ARC-8", RUN, Err(format!("it ended by itself {how}")));
    }
    report.must("ARC-8", RUN, Ok(()));
    bench.stop();
    let ended = match time::timeout(bench.patience(), &mut *task).await {
        Ok(Ok(ended)) => ended.map_err(|error| error.to_string()),
        Ok(Err(panic)) => Err(panic.to_string()),
        Err(_) => {
            task.abort();
            Err("it still runs".to_owned())
        }
    };
    report.must("ARC-8", END, ended);
}

/// What tells an event from its repeats: the upstream's delivery id, else the comment's id with its revision.
fn id(event: &InboundEvent) -> Option<String> {
    event.upstream.delivery_id.clone().or_else(|| match &event.content {
        Content::Comment { comment, .. } => Some(format!("{}@{:?}", comment.id, comment.updated_at)),
        Content::Item { .. } | Content::Check { .. } | Content::Moved { .. } | Content::Ping => None,
    })
}

fn ids(events: &[InboundEvent]) -> Result<(), String> {
    let mut ids: Vec<_> = events.iter().filter_map(id).collect();
    ids.sort();
    ids.dedup();
    when(ids.len() == events.len(), || format!("{} events have {} ids", events.len(), ids.len()))
}

fn reads_back(event: &InboundEvent) -> Result<(), String> {
    let written = serde_json::to_string(event).map_err(|error| error.to_string())?;
    let read: InboundEvent = serde_json::from_str(&written).map_err(|error| error.to_string())?;
    same(&read, event)
}
