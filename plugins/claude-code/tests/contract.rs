//! The harness for Claude Code keeps the contract of `docs/plugin-contract.md`.

use serde_json::json;
use the_loop_conformance::{Bench, Kit, harness};
use the_loop_plugin_claude_code as _;

#[tokio::test]
async fn har_8_claude_keeps_the_contract() {
    let bench = Bench::new(json!(null));
    let id = "3f2b8c1e-7d5a-4c9b-9e21-0a6d4f8b2c77";
    let signals = ["UserPromptSubmit", "PermissionRequest", "PostToolUse", "Stop", "StopFailure", "SessionEnd"];
    let signals = signals.map(|event| json!({"hook_event_name": event, "session_id": id, "cwd": "/work"})).to_vec();
    let case = harness::Case { args: vec!["--model".to_owned(), "opus".to_owned()], signals, ..Default::default() };
    harness::check(Kit::get(), "claude", &bench, &case).await.assert();
}
