//! What holds the key may make these; only the first claim of a process hands one out.

use std::{path::PathBuf, sync::Arc, time::Duration};

use the_loop_plugin_api::{
    Delivery, DeliveryId, IncarnationId, Post, SpawnOrder, Termination, WorkItemRef,
    channel::Message,
    delivery::{InputGate, Readiness},
    registry::HostKey,
    runner::SpawnParts,
    tracker::Reaction,
};

fn make(key: &HostKey, gate: Arc<dyn InputGate>, item: WorkItemRef) {
    Delivery::new(key, DeliveryId::generate(), String::new(), Readiness::Signals, gate);
    let parts = SpawnParts {
        name: String::new(),
        incarnation: IncarnationId::generate(),
        cwd: PathBuf::new(),
        command: Vec::new(),
        watch: Vec::new(),
        mark: PathBuf::new(),
    };
    SpawnOrder::new(key, parts);
    Termination::new(key, Duration::ZERO);
    Post::new(key, item.clone(), String::new(), String::new());
    Reaction::new(key, item, String::new(), String::new());
    Message::new(key, String::new(), String::new(), Vec::new());
}

fn main() {
    let _ = make;
}
