//! A plugin makes a host's key of its own.

use the_loop_plugin_api::registry::HostKey;

fn main() {
    let _ = HostKey(());
}
