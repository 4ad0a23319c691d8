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

/// What fuzz targets may call, and nothing else.
#[cfg(feature = "drills")]
#[doc(hidden)]
pub mod drills {
    use http::HeaderMap;
    use the_loop_plugin_api::WorkItemRef;

    use super::{body, happening};

    /// Reads a delivery as the listener does once its signature is checked, and tells what it is about.
    ///
    /// # Errors
    /// Why it is refused.
    pub fn read(event: &str, headers: &HeaderMap, body: &[u8]) -> Result<Option<WorkItemRef>, String> {
        let payload = body::decode(headers, body).map_err(|error| error.to_string())?;
        let happening = happening::read(event, &payload).map_err(|error| error.to_string())?;
        Ok(happening.and_then(|happening| happening.item).map(|item| item.reference))
    }
}
