//! The host of the-loop, as a library: the binary, the REST API and an embedding program all call it, so no surface can
//! behave differently from another (ARC-2). The library never prints, never exits and reads neither home nor environment:
//! what it needs of them is passed in.

pub mod admission;
pub mod api;
pub mod ask;
pub mod attention;
pub mod cli;
pub mod clock;
pub mod config;
pub mod db;
pub mod demo;
pub mod dispatch;
pub mod drills;
pub mod eventlog;
pub mod fanout;
pub mod hooks;
pub mod launcher;
pub mod plugins;
pub mod service;
pub mod sessions;
pub mod state;
pub mod workspace;

pub use service::{OpenOptions, TheLoop};
