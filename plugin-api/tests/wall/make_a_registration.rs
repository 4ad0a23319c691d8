//! A plugin makes of a descriptor what the host builds plugins from.

use the_loop_plugin_api::{
    inventory,
    registry::{Descriptor, Registration, RunnerKind},
};

fn main() {
    for descriptor in inventory::iter::<Descriptor<RunnerKind>>() {
        let _ = Registration(descriptor);
    }
}
