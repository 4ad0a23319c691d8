//! The built binary with real tmux, as a person runs it. What arrived is counted in the agent's own file.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]

mod ask;
mod cases;
mod claude;
mod cli;
mod demo;
mod disk;
mod documented;
mod drill;
mod faults;
mod github;
mod injection;
mod main_job;
mod pending;
mod recorders;
mod rig;
mod screen;
mod webhook;
mod wire;
mod workspaces;
