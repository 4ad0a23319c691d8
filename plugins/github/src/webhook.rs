//! The ingress source `gh-webhook` (GHW-1 to GHW-5).
//!
//! A delivery passes four steps, each in a module of its own, and each may end it: its bytes are read within bounds
//! (`body`), the signature over them is checked before anything looks inside (`signature`), they are decoded (`body`) and
//! what they say is read into an event (`happening`, with the lenient views of [`crate::payload`]). `routes` strings them together
//! and speaks HTTP. Nothing is kept here: what the host did not take is not acknowledged.

mod body;
mod config;
mod happening;
mod routes;
mod signature;
mod source;

pub(crate) use config::EnvNames;
pub use config::WebhookConfig;
