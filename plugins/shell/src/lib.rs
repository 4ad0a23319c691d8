//! Harness `shell`: the operator's shell, or any program that reads its terminal (HAR-1). It needs nothing installed.
//!
//! * **Program.** `harnessArgs.shell` is the whole command, program first; without it, `/bin/sh` replaces itself with the
//!   shell that the session's own `SHELL` names, or goes on as it is when that is not set. A program without `/` is looked
//!   up in the session's `PATH`.
//! * **Conversation.** The id that the host chose is handed over as `THE_LOOP_CONVERSATION`. For a resumed conversation the
//!   same id is handed over with `THE_LOOP_RESUME=1`: a program that keeps its conversation by that id takes it up (the demo
//!   agent does); a bare shell knows neither variable and starts afresh.
//! * **Transcript.** The file in which a program may keep its conversation is handed over as `THE_LOOP_TRANSCRIPT`. One that
//!   writes every prompt there before it acts on it lets the host settle, after a crash, whether a text arrived (REL-3); a
//!   program that does not know the variable has no transcript, and such a text stays uncertain.
//! * **Turns.** It has no turn signals, so a text is pasted when bracketed paste is on and the screen has been quiet
//!   (DEL-5), and receipts end at `delivered`. A shell that never switches bracketed paste on, such as `dash`, gets none.
//! * **A bare shell runs what it reads**, line by line, and the texts of tickets are no exception. Give `harnessArgs.shell`
//!   a program that treats its input as text, unless that is what you want of everyone who may write to the session.

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

register!(
    HarnessKind,
    "shell",
    "the operator's shell, or any program that reads its terminal",
    ConfigFragment::none(),
    build
);

/// The variable that hands the program its conversation id.
pub const CONVERSATION: &str = "THE_LOOP_CONVERSATION";

/// The variable that says, with the value `1`, that the conversation is an earlier one.
pub const RESUME: &str = "THE_LOOP_RESUME";

/// The variable that names the file in which the program may keep its conversation.
pub const TRANSCRIPT: &str = "THE_LOOP_TRANSCRIPT";

/// How long a screen must have been quiet before it takes a text (DEL-5).
const QUIET: Duration = Duration::from_secs(1);

/// Becomes the shell that the session's own environment names. No text from outside is in it.
const OPERATORS_SHELL: [&str; 3] = ["/bin/sh", "-c", "exec \"${SHELL:-/bin/sh}\""];

struct Shell {
    /// Where transcripts are.
    folder: PathBuf,
}

impl Shell {
    fn transcript_of(&self, conversation: &str) -> PathBuf {
        self.folder.join(format!("{conversation}.jsonl"))
    }
}

#[expect(clippy::unnecessary_wraps, reason = "the shape of every factory: another one can fail")]
fn build(context: PluginContext) -> Result<Arc<dyn Harness>, PluginError> {
    Ok(Arc::new(Shell { folder: context.folder().to_owned() }))
}

#[async_trait]
impl Harness for Shell {
    fn capabilities(&self) -> Capabilities {
        Capabilities { assignable_conversation: true, resume: true, transcript: true, ..Capabilities::default() }
    }

    async fn prepare(&self, _cwd: &Path, _environment: &BTreeMap<String, String>) -> Result<Prepared, HarnessError> {
        Ok(Prepared::default())
    }

    fn launch(&self, request: &LaunchRequest) -> Result<LaunchPlan, HarnessError> {
        let (id, resumed) = match &request.conversation {
            Conversation::New { id } => (id, false),
            Conversation::Resume { id } => (id, true),
        };
        if !is_conversation(id) {
            return Err(HarnessError::InvalidConversation { id: id.chars().take(80).collect() });
        }
        let mut env = BTreeMap::from([
            (CONVERSATION.to_owned(), id.clone()),
            (TRANSCRIPT.to_owned(), self.transcript_of(id).display().to_string()),
        ]);
        if resumed {
            env.insert(RESUME.to_owned(), "1".to_owned());
        }
        let argv =
            if request.args.is_empty() { OPERATORS_SHELL.map(str::to_owned).to_vec() } else { request.args.clone() };
        Ok(LaunchPlan {
            argv,
            env,
            cwd: request.cwd.clone(),
            first_prompt: FirstPrompt::Delivered,
            conversation: Some(id.clone()),
            files: BTreeMap::new(),
        })
    }

    fn readiness(&self) -> Readiness {
        Readiness::Screen { quiet_for: QUIET }
    }

    async fn observe(&self, _process: &ProcessFacts) -> Option<ObservedState> {
        None
    }

    fn transcript(&self, conversation: &str, _process: &ProcessFacts) -> Option<PathBuf> {
        is_conversation(conversation).then(|| self.transcript_of(conversation)).filter(|file| file.is_file())
    }

    fn signal(&self, _payload: &Value) -> Option<TurnSignal> {
        None
    }
}

/// `^[A-Za-z0-9-]{8,64}$`, and no option (TMX-6): the id ends up in a file name of whatever program runs.
fn is_conversation(id: &str) -> bool {
    (8..=64).contains(&id.len()) && !id.starts_with('-') && id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
}
