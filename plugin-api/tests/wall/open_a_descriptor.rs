//! A plugin opens another plugin's descriptor and runs its factory.

use the_loop_plugin_api::{
    PluginContext, inventory,
    registry::{Descriptor, RunnerKind},
};

fn open(context: PluginContext) {
    for descriptor in inventory::iter::<Descriptor<RunnerKind>>() {
        println!("{}", descriptor.name);
        let _ = (descriptor.factory)(context.clone());
    }
}

fn main() {
    let _ = open;
}
