//! A harness plugin to copy. It runs `cat -v`, which shows every byte that reaches it, and has no talents: it cannot resume,
//! signals nothing and keeps no transcript. Each method says what a more capable agent would do in its place.
//!
//! To make it yours:
//! 1. Copy the folder to `plugins/NAME`, rename the crate to `the-loop-plugin-NAME`, and list it in the workspace's
//!    `Cargo.toml`.
//! 2. Change the name in [`register!`] below and describe your agent in [`Harness::launch`] and the rest.
//! 3. Link it: an optional dependency and a default feature `NAME` in `host/Cargo.toml`, and two lines in
//!    `host/src/plugins.rs`. Nothing else in the host changes.
//! 4. Run `cargo nextest run -p the-loop-plugin-NAME`: `tests/contract.rs` holds your harness to `docs/plugin-contract.md`.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;
use serde_json::Value;
use the_loop_plugin_api::{
    Harness, LaunchPlan, PluginContext, TurnSignal,
    delivery::Readiness,
    harness::{Capabilities, HarnessError, Prepared, ProcessFacts},
    launch::{Conversation, FirstPrompt, LaunchRequest},
    register,
    registry::{ConfigFragment, PluginError},
    signal::ObservedState,
};

register!(HarnessKind, "cat", "cat -v: shows every byte that reaches it", ConfigFragment::none(), build);

/// A harness with a config of its own would read it here, with `context.config::<MyConfig>()`, and describe it with a
/// [`ConfigFragment`]; one without is made of nothing.
#[expect(clippy::unnecessary_wraps, reason = "the shape of every factory: another one can fail")]
fn build(_context: PluginContext) -> Result<Arc<dyn Harness>, PluginError> {
    Ok(Arc::new(Cat))
}

struct Cat;

#[async_trait]
impl Harness for Cat {
    /// What is true here is promised: the conformance kit checks each, and a start that needs one that is missing fails
    /// saying so.
    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }

    /// An agent with trust dialogs answers them here, ahead, in its own config. `cat` has none.
    async fn prepare(&self, _cwd: &Path, _environment: &BTreeMap<String, String>) -> Result<Prepared, HarnessError> {
        Ok(Prepared::default())
    }

    fn launch(&self, request: &LaunchRequest) -> Result<LaunchPlan, HarnessError> {
        if let Conversation::Resume { .. } = request.conversation {
            return Err(HarnessError::Unsupported { what: "take up a conversation again: cat keeps none" });
        }
        // A program with a composer switches bracketed paste on by itself; for cat the shell does it. What the operator
        // configured is handed over as arguments, never as part of the script.
        let script = "printf '\\033[?2004h'; exec cat -v \"$@\"";
        let argv = ["/bin/sh", "-c", script, "cat"].map(str::to_owned).into_iter().chain(request.args.iter().cloned());
        Ok(LaunchPlan {
            argv: argv.collect(),
            env: BTreeMap::new(),
            cwd: request.cwd.clone(),
            first_prompt: FirstPrompt::Delivered,
            conversation: None,
            files: BTreeMap::new(),
        })
    }

    /// Without turn signals the runner reads the screen; an agent that tells its state says [`Readiness::Signals`].
    fn readiness(&self) -> Readiness {
        Readiness::Screen { quiet_for: Duration::from_secs(1) }
    }

    /// An agent that keeps a state file reads it here.
    async fn observe(&self, _process: &ProcessFacts) -> Option<ObservedState> {
        None
    }

    /// An agent that keeps a transcript names its file here, for ids of its own form only.
    fn transcript(&self, _conversation: &str, _process: &ProcessFacts) -> Option<PathBuf> {
        None
    }

    /// An agent with hooks turns their payloads into turns here.
    fn signal(&self, _payload: &Value) -> Option<TurnSignal> {
        None
    }
}
