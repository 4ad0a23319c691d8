//! Tracker and ingress source over files in the state root (GHT-4), so that everything can be tried with no network and no
//! account.
//!
//! People use the tracker's desk where they would use another tracker's web page. Whatever they do is written to the item's
//! file and to a journal of activity, and the ingress source reads that journal as a poller reads a tracker's listing. The
//! two objects share files and no memory: a desk in a short-lived process reaches a host that runs, or that runs later.
//!
//! ```text
//! lock                      held by whoever writes items or the journal
//! pending.json              a change that is being made; the next holder of the lock completes it
//! items/OWNER/REPO/N.json   one item with its comments
//! activity.jsonl            what happened, oldest first
//! cursor.json               how far the ingress source has come
//! ```

mod cursor;
mod files;
mod ingress;
mod input;
mod item;
mod journal;
mod lock;
mod store;
#[cfg(test)]
mod tests;
mod tracker;

use std::sync::Arc;

use the_loop_plugin_api::{
    IngressSource, PluginContext, Tracker, register,
    registry::{ConfigFragment, PluginError},
};

/// The plugin's name, and the provider of its refs.
const PROVIDER: &str = "local";

register!(
    TrackerKind,
    "local",
    "items kept as files, with the-loop items as their desk",
    ConfigFragment::none(),
    tracker
);
register!(IngressKind, "local", "the activity of the local tracker", ConfigFragment::none(), ingress);

#[expect(clippy::unnecessary_wraps, reason = "a factory's signature")]
fn tracker(context: PluginContext) -> Result<Arc<dyn Tracker>, PluginError> {
    Ok(Arc::new(tracker::LocalTracker::new(&context)))
}

#[expect(clippy::unnecessary_wraps, reason = "a factory's signature")]
fn ingress(context: PluginContext) -> Result<Arc<dyn IngressSource>, PluginError> {
    Ok(Arc::new(ingress::LocalIngress::new(&context)))
}
