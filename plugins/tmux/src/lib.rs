//! Runner: hosts harness programs in tmux panes.
//!
//! Invariants a reader should know:
//! * A pane is addressed by the ids that its spawn returned, and every act is guarded, inside tmux, by the server's and the
//!   pane's process ids: a name, a renumbered index, a moved focus or a new server never redirects anything (TMX-2, TMX-12).
//! * No answer is never read as "nothing there" (TMX-3).
//! * A text reaches a terminal through one conversation with one tmux process, which hands over the facts first and waits
//!   for the text on its standard input: until that is closed, nothing can have been written.

mod address;
mod client;
mod deliver;
mod end;
mod facts;
mod gate;
mod look;
mod memory;
mod options;
mod process;
mod quote;
mod runner;
mod scope;
mod screen;
mod spawn;

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use the_loop_plugin_api::{
    Runner,
    context::PluginContext,
    register,
    registry::{ConfigFragment, PluginError},
};

pub use crate::{options::TmuxOptions, runner::TmuxRunner};

/// The runner's part of `routing.tmux`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
struct TmuxConfig {
    /// The tmux socket to use, as in `tmux -L NAME`. Empty: the user's default server.
    #[schemars(regex(pattern = r"^[A-Za-z0-9_-]*$"))]
    socket_name: String,
}

fn schema() -> serde_json::Value {
    schemars::schema_for!(TmuxConfig).to_value()
}

fn build(context: PluginContext) -> Result<Arc<dyn Runner>, PluginError> {
    let config: TmuxConfig =
        context.config().map_err(|error| PluginError::new("routing.tmux.socketName must be a text", error))?;
    Ok(Arc::new(TmuxRunner::new(TmuxOptions::from_environment(config.socket_name))))
}

register!(
    RunnerKind,
    "tmux",
    "hosts agents in tmux panes, where a person can watch and type",
    ConfigFragment::new("/routing/tmux", schema),
    build
);

#[cfg(test)]
mod tests {
    use the_loop_plugin_api::registry::claim;

    #[test]
    fn arc_3_the_runner_is_registered_with_its_part_of_the_config() {
        let claim = claim().unwrap();
        let runner = claim.runners.iter().find(|runner| runner.name() == "tmux").unwrap();
        assert_eq!(runner.config().pointer(), "/routing/tmux");
        let schema = runner.config().schema();
        assert_eq!(schema["properties"]["socketName"]["type"], "string");
        assert_eq!(schema["properties"]["socketName"]["default"], "");
    }
}
