//! The host of the-loop, as a library: the binary, the REST API and an embedding program all call it, so no surface can
//! behave differently from another (ARC-2).

pub mod admission;
pub mod api;
pub mod cli;
pub mod config;
pub mod db;
pub mod demo;
pub mod dispatch;
pub mod eventlog;
pub mod launcher;
mod plugins;
pub mod service;
pub mod sessions;
pub mod state;
