//! Runs the written contract of the plugin traits against an implementation (HAR-8).
//!
//! The contract itself is `docs/plugin-contract.md`; every finding names the rule there that it checks. A plugin's crate
//! has this one as a dev-dependency and a test of about ten lines:
//!
//! ```ignore
//! use my_harness as _; // a crate that is never named registers nothing
//! use the_loop_conformance::{Bench, Kit, harness};
//!
//! #[tokio::test]
//! async fn har_8_keeps_the_contract() {
//!     let bench = Bench::new(serde_json::json!({}));
//!     harness::check(Kit::get(), "my-harness", &bench, &harness::Case::default()).await.assert();
//! }
//! ```
//!
//! The kit stands in the host's place: [`Kit::get`] makes the one claim of the process, so a test binary that runs the kit
//! cannot also start a host. It is a dev-dependency only; a test of the workspace refuses any other use.

pub mod bench;
pub mod channel;
mod descriptor;
pub mod harness;
pub mod ingress;
pub mod kit;
pub mod report;
pub mod runner;
pub mod sink;
pub mod tracker;

pub use bench::Bench;
pub use kit::Kit;
pub use report::{Finding, Level, Report};
pub use sink::RecordingSink;
