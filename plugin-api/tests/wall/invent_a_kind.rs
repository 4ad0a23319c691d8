//! A plugin invents a kind of plugin.

use the_loop_plugin_api::{Runner, registry::Kind};

enum Mine {}

impl Kind for Mine {
    type Object = dyn Runner;
    const NAME: &'static str = "mine";
}

fn main() {}
