//! The contract of `docs/plugin-contract.md`, kept by this harness.

use example_harness_plugin as _;
use serde_json::json;
use the_loop_conformance::{Bench, Kit, harness};

#[tokio::test]
async fn har_8_the_example_keeps_the_contract() {
    harness::check(Kit::get(), "cat", &Bench::new(json!(null)), &harness::Case::default()).await.assert();
}
