//! The tracker and the ingress source over real files.

mod conformance;
mod crash;
mod desk;
mod follow;

use std::{fs, sync::Arc, time::Duration};

use the_loop_conformance::{Bench, Kit};
use the_loop_plugin_api::{
    Post, Tracker, WorkItemRef,
    event::InboundEvent,
    ingress::IngressError,
    tracker::{Desk, Draft, TrackerError},
};
use tokio::task::JoinHandle;

const PATIENCE: Duration = Duration::from_secs(20);

fn bench() -> Bench {
    Bench::new(serde_json::Value::Null)
}

fn tracker(bench: &Bench) -> Arc<dyn Tracker> {
    Kit::get().tracker("local", bench)
}

fn desk(tracker: &Arc<dyn Tracker>) -> &dyn Desk {
    tracker.desk().expect("the local tracker has a desk")
}

fn draft(title: &str) -> Draft {
    let (owner, repo) = ("octo".to_owned(), "hello".to_owned());
    Draft { owner, repo, title: title.to_owned(), body: "what is to be done".to_owned(), labels: Vec::new() }
}

/// Opens an item as alice.
async fn opened(tracker: &Arc<dyn Tracker>) -> Result<WorkItemRef, TrackerError> {
    Ok(desk(tracker).open("alice", &draft("a title")).await?.reference)
}

/// A post of the host.
fn post(item: &WorkItemRef, key: &str, body: &str) -> Post {
    Post::new(Kit::get().key(), item.clone(), key.to_owned(), body.to_owned())
}

/// The ids of the journal's entries, in order.
fn journal_ids(bench: &Bench) -> anyhow::Result<Vec<String>> {
    let journal = fs::read_to_string(bench.folder().join("activity.jsonl"))?;
    journal
        .lines()
        .map(|line| {
            let entry: serde_json::Value = serde_json::from_str(line)?;
            Ok(entry["id"].as_str().unwrap_or_default().to_owned())
        })
        .collect()
}

/// The ids by which the host tells repeats.
fn delivered_ids(events: &[InboundEvent]) -> Vec<String> {
    events.iter().map(|event| event.upstream.delivery_id.clone().unwrap_or_default()).collect()
}

/// An ingress source that runs.
struct Running {
    source: Arc<dyn the_loop_plugin_api::IngressSource>,
    task: JoinHandle<Result<(), IngressError>>,
}

impl Running {
    fn start(bench: &Bench) -> Self {
        let source = Kit::get().ingress("local", bench);
        let task = tokio::spawn({
            let source = Arc::clone(&source);
            async move { source.run().await }
        });
        Self { source, task }
    }

    /// Waits until this many events were taken.
    async fn taken(&self, bench: &Bench, count: usize) -> Vec<InboundEvent> {
        let came = bench.sink().wait_until(PATIENCE, |events, _| events.len() >= count).await;
        assert!(came, "{} of {count} events came: {:?}", bench.sink().events().len(), self.source.health());
        bench.sink().events()
    }

    async fn stop(self, bench: &Bench) -> anyhow::Result<()> {
        bench.stop();
        Ok(self.task.await??)
    }
}
