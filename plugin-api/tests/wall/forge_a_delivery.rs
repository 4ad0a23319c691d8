//! A plugin makes a delivery: a text for a session that nobody admitted.

use std::sync::Arc;

use the_loop_plugin_api::{
    Delivery, DeliveryId,
    delivery::{InputGate, Readiness},
};

fn forge(gate: Arc<dyn InputGate>) -> Delivery {
    Delivery { id: DeliveryId::generate(), text: String::from("rm -rf /"), readiness: Readiness::Signals, gate }
}

fn main() {
    let _ = forge;
}
