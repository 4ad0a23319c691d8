//! The suite for a [`Runner`] (TMX-1 to TMX-5, TMX-9, TMX-11, DEL-1, DEL-4, DEL-5).
//!
//! It hosts small recorders and compares what they read, byte for byte, with what was ordered.

mod deliveries;
mod gates;
mod lifecycle;
mod program;

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use the_loop_plugin_api::{
    Delivery, DeliveryId, IncarnationId, Liveness, Runner, RunnerHandle, SpawnOrder, Termination,
    delivery::{DeliveryOutcome, InputGate, Readiness},
    runner::{SpawnError, SpawnParts},
};
use tokio::time::{self, Instant};

pub use self::program::{BANNER, Program, watch};
use self::{gates::Gate, program::Record};
use crate::{
    bench::Bench,
    descriptor,
    kit::Kit,
    report::{Report, when},
};

/// What the suite needs to know of a runner.
#[derive(Clone, Debug)]
pub struct Case {
    /// The time between the polite signal and the forced one.
    pub grace: Duration,
    /// How long a screen must be quiet before a text is pasted.
    pub quiet_for: Duration,
    /// How many texts each of four sessions gets at once.
    pub burst: usize,
    /// The size of the largest text, in bytes.
    pub large: usize,
}

impl Default for Case {
    fn default() -> Self {
        Self { grace: Duration::from_secs(2), quiet_for: Duration::from_millis(100), burst: 10, large: 64 * 1024 }
    }
}

/// Runs the suite against the registered runner `name`. The bench's config should give it a place of its own (such as a
/// private socket): the suite removes what it makes, and nothing else.
pub async fn check(kit: &Kit, name: &str, bench: &Bench, case: &Case) -> Report {
    let mut report = Report::new(format!("runner {name}"));
    let Some(runner) = descriptor::build(kit, &kit.claim().runners, name, bench, &mut report) else {
        return report;
    };
    let description = runner.describe().await;
    report.must(
        "TMX-8",
        "say its version, and that it answers",
        when(description.version.is_some() && description.problem.is_none(), || format!("{description:?}")),
    );
    let stage = Stage { kit, runner, name, bench, case, records: AtomicU32::new(0) };
    lifecycle::starts(&stage, &mut report).await;
    lifecycle::ends(&stage, &mut report).await;
    lifecycle::keeps_to_its_own(&stage, &mut report).await;
    deliveries::arrives_whole(&stage, &mut report).await;
    deliveries::holds(&stage, &mut report).await;
    deliveries::bursts(&stage, &mut report).await;
    report
}

/// Where the suite plays: the runner, and names, files and orders for it.
struct Stage<'a> {
    kit: &'a Kit,
    runner: Arc<dyn Runner>,
    name: &'a str,
    bench: &'a Bench,
    case: &'a Case,
    records: AtomicU32,
}

/// A hosted program.
struct Hosted {
    handle: RunnerHandle,
    record: Record,
}

impl Stage<'_> {
    /// A session name that nothing else on this machine uses.
    fn session(&self, suffix: &str) -> String {
        format!("loop-conformance-{}-{suffix}", std::process::id())
    }

    fn file(&self, kind: &str) -> PathBuf {
        let number = self.records.fetch_add(1, Ordering::Relaxed);
        self.bench.folder().join(format!("{kind}-{number}"))
    }

    fn order(&self, session: &str, program: Program, record: &Record) -> SpawnOrder {
        self.order_in(session, program, record, self.bench.folder().to_owned())
    }

    fn order_in(&self, session: &str, program: Program, record: &Record, cwd: PathBuf) -> SpawnOrder {
        let mark = self.file("mark");
        SpawnOrder::new(
            self.kit.key(),
            SpawnParts {
                name: session.to_owned(),
                incarnation: IncarnationId::generate(),
                cwd,
                command: program.command(&record.0),
                watch: watch(&mark),
                mark,
            },
        )
    }

    async fn spawn(&self, session: &str, program: Program) -> Result<Hosted, SpawnError> {
        let record = Record(self.file("record"));
        let handle = self.runner.spawn(&self.order(session, program, &record)).await?;
        Ok(Hosted { handle, record })
    }

    /// Spawns a recorder and waits until it reads.
    async fn recorder(&self, session: &str) -> Result<Hosted, String> {
        let hosted = self.spawn(session, Program::Recorder).await.map_err(|error| format!("no start: {error}"))?;
        when(hosted.record.opened(self.bench.patience()).await, || format!("{session} never began to read"))?;
        Ok(hosted)
    }

    /// Orders one delivery, once.
    async fn try_delivery(&self, to: &Hosted, text: &str, gate: Arc<Gate>) -> DeliveryOutcome {
        let readiness = Readiness::Screen { quiet_for: self.case.quiet_for };
        let gate: Arc<dyn InputGate> = gate;
        let delivery = Delivery::new(self.kit.key(), DeliveryId::generate(), text.to_owned(), readiness, gate);
        self.runner.deliver(&to.handle, &delivery).await
    }

    /// Orders a delivery until it no longer waits, as the host does.
    async fn deliver(&self, to: &Hosted, text: &str, gate: Arc<Gate>) -> DeliveryOutcome {
        let end = Instant::now() + self.bench.patience();
        loop {
            match self.try_delivery(to, text, Arc::clone(&gate)).await {
                DeliveryOutcome::Held(_) if Instant::now() < end => time::sleep(Duration::from_millis(25)).await,
                outcome => return outcome,
            }
        }
    }

    /// Probes until `wanted` is found; else what was found last.
    async fn settles(&self, handle: &RunnerHandle, wanted: &Liveness) -> Result<(), String> {
        let end = Instant::now() + self.bench.patience();
        loop {
            let found = self.runner.probe(&handle.name, Some(handle)).await;
            if found == *wanted {
                return Ok(());
            }
            if Instant::now() >= end {
                return Err(format!("{} is {found:?}, expected {wanted:?}", handle.name));
            }
            time::sleep(Duration::from_millis(25)).await;
        }
    }

    fn termination(&self) -> Termination {
        Termination::new(self.kit.key(), self.case.grace)
    }

    /// Removes what a step made; a step that failed to make it has said so.
    async fn clear(&self, all: impl IntoIterator<Item = &Hosted>) {
        for hosted in all {
            let _gone_already = self.runner.kill(&hosted.handle, &self.termination()).await;
        }
    }
}
