//! A plugin makes a context, or reaches into its own.

use the_loop_plugin_api::{PluginContext, context::ContextParts};

fn forge(parts: ContextParts) -> PluginContext {
    PluginContext { ..parts }
}

fn reach(context: &PluginContext) {
    let _ = &context.secrets;
}

fn main() {
    let _ = (forge, reach);
}
