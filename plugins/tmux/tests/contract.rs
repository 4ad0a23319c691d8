//! The contract of `docs/plugin-contract.md`, kept by this runner with a real tmux on a server of the test's own.

use serde_json::json;
use the_loop_conformance::{Bench, Kit, runner};
use the_loop_plugin_tmux as _;

#[tokio::test(flavor = "multi_thread")]
async fn har_8_tmux_keeps_the_contract() {
    let bench = Bench::new(json!({"socketName": format!("conformance-{}", std::process::id())}));
    let socket = Kit::get().runner("tmux", &bench).describe().await.address;
    let report = runner::check(Kit::get(), "tmux", &bench, &runner::Case::default()).await;
    // The server ended with its last session; tmux leaves its socket behind.
    let _never_made = std::fs::remove_file(socket);
    report.assert();
}
