//! The written contract of both traits.

use std::sync::Arc;

use async_trait::async_trait;
use axum::Router;
use the_loop_conformance::{
    Kit,
    ingress::{self, Answer, Outside},
    tracker::{self, Case},
};
use the_loop_plugin_api::{Tracker, WorkItemRef};

use super::{bench, desk, opened, tracker as built};

#[tokio::test]
async fn har_8_the_tracker_keeps_its_contract() {
    tracker::check(Kit::get(), "local", &bench(), &Case::default()).await.assert();
}

struct Person {
    tracker: Arc<dyn Tracker>,
    item: WorkItemRef,
}

#[async_trait]
impl Outside for Person {
    async fn happen(&self, number: u32, _: Option<Router>) -> Answer {
        let said = desk(&self.tracker).comment_as("alice", &self.item, &format!("no. {number}")).await;
        said.expect("a comment is written");
        Answer::Unasked
    }
}

#[tokio::test]
async fn har_8_the_ingress_source_keeps_its_contract() -> anyhow::Result<()> {
    let bench = bench();
    let tracker = built(&bench);
    let item = opened(&tracker).await?;
    ingress::check(Kit::get(), "local", &bench, &Person { tracker, item }).await.assert();
    Ok(())
}
