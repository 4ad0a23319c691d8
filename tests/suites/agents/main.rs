//! The built binary with the real agents, in real tmux, against a model on loopback. What arrived is counted at the model.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]

mod broken;
mod claude;
mod conversation;
#[path = "../host/rig.rs"]
#[expect(dead_code, reason = "the suite `host` uses more of it")]
mod rig;
mod session;
