//! The tmux runner against a real tmux, each test on a server of its own.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests, which fail by it")]

mod clients;
mod deliver;
mod end;
mod gates;
mod load;
mod rig;
mod silence;
mod spawn;
mod targets;
