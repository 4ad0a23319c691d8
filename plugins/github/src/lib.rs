//! GitHub: webhook ingress.
//!
//! [`webhook`] is the ingress source `gh-webhook`: it proves where a delivery came from, reads it into an event and
//! acknowledges it only once the host holds it.

pub mod webhook;
