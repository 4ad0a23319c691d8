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
mod screen;
mod scope;
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
