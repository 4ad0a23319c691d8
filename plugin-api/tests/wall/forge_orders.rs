//! A plugin makes the orders that a runner obeys.

use std::{path::PathBuf, time::Duration};

use the_loop_plugin_api::{IncarnationId, SpawnOrder, Termination};

fn main() {
    let _ = SpawnOrder {
        name: String::new(),
        incarnation: IncarnationId::generate(),
        cwd: PathBuf::new(),
        command: Vec::new(),
        watch: Vec::new(),
        mark: PathBuf::new(),
    };
    let _ = Termination { grace: Duration::ZERO };
}
