//! Harness `claude`: Claude Code (HAR-1).
//!
//! * **Start.** `claude` with a conversation id of the host's, an explicit permission mode, a settings file of the session's
//!   own and the first prompt as an argument. `harnessArgs.claude` comes last and may choose another permission mode.
//! * **State.** Claude Code keeps a file a process, which says whether it is idle, busy or waits at a dialog; its hooks, in the
//!   session's own settings file, say so as they happen. A text is pasted, and a return sent, only while it takes input: at a
//!   permission prompt a paste is swallowed and the return approves (DEL-5).
//! * **Dialogs.** Onboarding and trust are answered ahead, in Claude Code's own config, by the keys that are needed and no
//!   other (HAR-4).
//! * **Where.** `CLAUDE_CONFIG_DIR`, where `env.sessionPassthrough` hands it to sessions, else the session's home.

mod config;
mod files;
mod hooks;
mod launch;
mod state;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use async_trait::async_trait;
use serde_json::Value;
use the_loop_plugin_api::{
    Harness, LaunchPlan, PluginContext, TurnSignal,
    delivery::Readiness,
    harness::{Capabilities, HarnessError, Prepared, ProcessFacts},
    launch::LaunchRequest,
    register,
    registry::{ConfigFragment, PluginError},
    signal::ObservedState,
};

register!(HarnessKind, "claude", "Claude Code", ConfigFragment::none(), build);

struct ClaudeCode;

#[expect(clippy::unnecessary_wraps, reason = "the shape of every factory: another one can fail")]
fn build(_context: PluginContext) -> Result<Arc<dyn Harness>, PluginError> {
    Ok(Arc::new(ClaudeCode))
}

#[async_trait]
impl Harness for ClaudeCode {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            assignable_conversation: true,
            resume: true,
            turn_signals: true,
            transcript: true,
            mcp: true,
            permission_prompts: true,
        }
    }

    async fn prepare(&self, cwd: &Path, environment: &BTreeMap<String, String>) -> Result<Prepared, HarnessError> {
        let Some(file) = files::own_config(environment) else { return Ok(Prepared::default()) };
        let (cwd, key) = (cwd.to_owned(), environment.get("ANTHROPIC_API_KEY").cloned());
        let merged = tokio::task::spawn_blocking(move || config::merge(&file, &cwd, key.as_deref())).await;
        match merged {
            Ok(applied) => applied.map(|applied| Prepared { applied }),
            Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
        }
    }

    fn launch(&self, request: &LaunchRequest) -> Result<LaunchPlan, HarnessError> {
        launch::plan(request)
    }

    fn readiness(&self) -> Readiness {
        Readiness::Signals
    }

    async fn observe(&self, process: &ProcessFacts) -> Option<ObservedState> {
        let file = files::state(&process.environment, process.pid?)?;
        let pid = process.pid?;
        tokio::task::spawn_blocking(move || state::read(&file, pid)).await.ok().flatten()
    }

    fn transcript(&self, conversation: &str, process: &ProcessFacts) -> Option<PathBuf> {
        files::transcript(&process.environment, conversation)
    }

    fn signal(&self, payload: &Value) -> Option<TurnSignal> {
        hooks::signal(payload)
    }
}

/// A UUID in its usual spelling. Anything else opens a picker or becomes an option: it must never reach the arguments (TMX-6).
fn is_conversation(id: &str) -> bool {
    let groups: Vec<&str> = id.split('-').collect();
    let lengths: Vec<usize> = groups.iter().map(|group| group.len()).collect();
    lengths == [8, 4, 4, 4, 12] && groups.iter().all(|group| group.bytes().all(|byte| byte.is_ascii_hexdigit()))
}
