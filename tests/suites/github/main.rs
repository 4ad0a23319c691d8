//! The GitHub tracker against a GitHub on loopback that can misbehave. What was written is counted there.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod credentials;
mod reads;
mod writes;

use std::{sync::Arc, time::Duration};

use serde_json::json;
use the_loop_conformance::{Bench, Kit, tracker};
use the_loop_plugin_api::{Post, Tracker, WorkItemRef, tracker::Reaction};
use the_loop_plugin_github as _;
use the_loop_tests::github::{FakeGithub, TOKEN};

const TOKEN_ENV: &str = "CASE_TOKEN";

/// A tracker for a fake, with a pace in milliseconds.
fn bench(fake: &FakeGithub, pace: u64) -> Bench {
    let api = json!({"baseUrl": fake.base(), "tokenEnv": [TOKEN_ENV], "writeIntervalMilliseconds": pace});
    Bench::new(json!({"api": api})).with_secret(TOKEN_ENV, TOKEN)
}

fn on(bench: &Bench) -> Arc<dyn Tracker> {
    Kit::get().tracker("github", bench)
}

fn item(number: u64) -> WorkItemRef {
    WorkItemRef::new("github", None, "octo", "hello", number).unwrap()
}

fn post(number: u64, key: &str, body: &str) -> Post {
    Post::new(Kit::get().key(), item(number), key.to_owned(), body.to_owned())
}

fn reaction(comment: &str, content: &str) -> Reaction {
    Reaction::new(Kit::get().key(), item(7), comment.to_owned(), content.to_owned())
}

/// Looks at a fact until it is so, with a deadline.
async fn until(fact: impl Fn() -> bool) {
    let looked = async {
        while !fact() {
            tokio::time::sleep(Duration::from_millis(2)).await; // poll interval, with a deadline around it
        }
    };
    tokio::time::timeout(Duration::from_secs(30), looked).await.unwrap();
}

#[tokio::test]
async fn har_8_the_tracker_passes_the_conformance_suite() {
    let fake = FakeGithub::start();
    fake.item(7, &["auto"], None);
    let case = tracker::Case { item: Some(item(7)), ..tracker::Case::default() };
    let bench = bench(&fake, 1).with_patience(Duration::from_secs(60));
    tracker::check(Kit::get(), "github", &bench, &case).await.assert();
}
