//! GitHub: webhook ingress and tracker.
//!
//! [`webhook`] is the ingress source `gh-webhook`: it proves where a delivery came from, reads it into an event and
//! acknowledges it only once the host holds it. [`tracker`] is the tracker `github`: it reads issues and pull requests, and
//! writes comments and reactions once each, at the pace that GitHub asks for.

mod links;
mod payload;
pub mod tracker;
pub mod webhook;
