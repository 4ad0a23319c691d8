//! The suite for a [`Harness`] (HAR-1, HAR-2, HAR-4, HAR-7, TMX-6, TMX-7).

use std::{collections::BTreeMap, path::Path, sync::Arc, time::Duration};

use serde_json::{Value, json};
use the_loop_plugin_api::{
    Harness, HarnessState, IncarnationId, LaunchPlan, SessionKey,
    delivery::Readiness,
    harness::{Capabilities, HarnessError, ProcessFacts},
    launch::{Conversation, FirstPrompt, LaunchRequest, Surroundings},
};

use crate::{
    bench::Bench,
    descriptor,
    kit::Kit,
    report::{Report, same, when},
};

/// What the suite needs to know of a harness.
#[derive(Clone, Debug)]
pub struct Case {
    /// Arguments that an operator might configure for it.
    pub args: Vec<String>,
    /// A conversation id in its own form.
    pub conversation: String,
    /// Payloads of its hooks, each of which says something of a turn; empty for a harness without turn signals.
    pub signals: Vec<Value>,
}

impl Default for Case {
    fn default() -> Self {
        Self { args: Vec::new(), conversation: "3f2b8c1e-7d5a-4c9b-9e21-0a6d4f8b2c77".to_owned(), signals: Vec::new() }
    }
}

/// Texts that are no conversation id of any harness, each a way to become an option, a path or a second word.
const HOSTILE_IDS: [&str; 12] = [
    "",
    "-p",
    "--dangerously-skip-permissions",
    "../../etc/passwd",
    "/etc/passwd",
    "two words",
    "a;reboot",
    "$(reboot)",
    "line\nbreak",
    "nul\0byte",
    "esc\u{1b}[201~",
    "caf\u{e9}-caf\u{e9}-caf\u{e9}",
];

/// A prompt that can be found wherever it went.
const PROMPT: &str = "from the-loop\ndelivery: dlv_01JCONFORMANCEKITPROMPT0000\n\n`quoted` \"text\" $HOME\nlast line";

/// Runs the suite against the registered harness `name`.
pub async fn check(kit: &Kit, name: &str, bench: &Bench, case: &Case) -> Report {
    let mut report = Report::new(format!("harness {name}"));
    let Some(harness) = descriptor::build(kit, &kit.claim().harnesses, name, bench, &mut report) else {
        return report;
    };
    let suite = Suite { capabilities: harness.capabilities(), harness, cwd: bench.folder(), case };
    suite.new_conversation(&mut report);
    suite.resumed_conversation(&mut report);
    suite.hostile_conversations(&mut report);
    suite.preparation(&mut report).await;
    suite.turns(&mut report).await;
    suite.transcripts(&mut report);
    report
}

struct Suite<'a> {
    harness: Arc<dyn Harness>,
    capabilities: Capabilities,
    cwd: &'a Path,
    case: &'a Case,
}

impl Suite<'_> {
    fn launch(&self, conversation: Conversation) -> Result<LaunchPlan, HarnessError> {
        self.harness.launch(&LaunchRequest {
            session: SessionKey::Server { harness: "conformance".to_owned(), id: "kit".to_owned() },
            incarnation: IncarnationId::generate(),
            cwd: self.cwd.to_owned(),
            args: self.case.args.clone(),
            conversation,
            prompt: PROMPT.to_owned(),
            surroundings: Surroundings {
                environment: self.environment(),
                folder: self.cwd.join("launch"),
                hook: vec!["/usr/bin/the-loop".to_owned(), "hook".to_owned()],
                accepts_bypass: false,
            },
        })
    }

    fn new_conversation(&self, report: &mut Report) {
        let id = &self.case.conversation;
        let plan = match self.launch(Conversation::New { id: id.clone() }) {
            Ok(plan) => plan,
            Err(error) => return report.must("HAR-1", "plan a new conversation", Err(error.to_string())),
        };
        report.must("HAR-1", "plan a new conversation", Ok(()));
        self.sound(&plan, report);
        let recorded = plan.conversation.as_ref();
        report.must(
            "HAR-1",
            "record the id that the host chose exactly when it takes one",
            when(self.capabilities.assignable_conversation == (recorded == Some(id)), || {
                format!("assignable: {}, recorded: {recorded:?}", self.capabilities.assignable_conversation)
            }),
        );
    }

    fn resumed_conversation(&self, report: &mut Report) {
        let id = &self.case.conversation;
        let met = match (self.capabilities.resume, self.launch(Conversation::Resume { id: id.clone() })) {
            (true, Ok(plan)) => {
                self.sound(&plan, report);
                let fresh = self.launch(Conversation::New { id: id.clone() }).ok();
                let told = fresh.is_none_or(|fresh| (fresh.argv, fresh.env) != (plan.argv.clone(), plan.env.clone()));
                report.must(
                    "HAR-1",
                    "start a resumed conversation otherwise than a new one",
                    when(told, || "both plans have the same arguments and variables".to_owned()),
                );
                same(&plan.conversation.as_ref(), &Some(id))
            }
            (false, Err(HarnessError::Unsupported { .. })) => Ok(()),
            (able, other) => Err(format!("resume: {able}, and it answers {other:?}")),
        };
        report.must("HAR-1", "resume a recorded conversation, or say that it cannot", met);
    }

    /// What holds of every plan.
    fn sound(&self, plan: &LaunchPlan, report: &mut Report) {
        let words = || plan.argv.iter().chain(plan.env.keys()).chain(plan.env.values());
        report.must(
            "HAR-1",
            "name a program",
            when(plan.argv.first().is_some_and(|program| !program.is_empty()), || format!("argv is {:?}", plan.argv)),
        );
        report.must(
            "HAR-1",
            "hold no NUL in arguments or variables",
            when(words().all(|word| !word.contains('\0')), || format!("{:?} {:?}", plan.argv, plan.env)),
        );
        report.must("HAR-1", "start in the folder that was asked for", same(&plan.cwd.as_path(), &self.cwd));
        let legal = |name: &String| {
            name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
                && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
                && !["TERM", "TMUX", "TMUX_PANE"].contains(&name.as_str())
        };
        let illegal: Vec<_> = plan.env.keys().filter(|name| !legal(name)).collect();
        report.must(
            "TMX-7",
            "declare variables by legal names, and none of the terminal's own",
            when(illegal.is_empty(), || format!("{illegal:?}")),
        );
        let carried = plan.argv.iter().filter(|word| word.contains(PROMPT)).count();
        let in_env = plan.env.values().any(|value| value.contains(PROMPT));
        report.must(
            "DEL-4",
            "carry the first prompt whole and once, where it says that it does",
            match plan.first_prompt {
                FirstPrompt::InArguments => {
                    when(carried == 1 && !in_env, || format!("{carried} arguments carry it, in a variable: {in_env}"))
                }
                FirstPrompt::Delivered => {
                    when(carried == 0 && !in_env, || "it is delivered and stands in the plan as well".to_owned())
                }
            },
        );
    }

    fn hostile_conversations(&self, report: &mut Report) {
        let long = "a".repeat(4096);
        let mut taken = Vec::new();
        for id in HOSTILE_IDS.into_iter().chain([long.as_str()]) {
            if self.capabilities.resume && !refused(&self.launch(Conversation::Resume { id: id.to_owned() })) {
                taken.push(format!("resume {:.40}", format!("{id:?}")));
            }
            if self.capabilities.assignable_conversation
                && !refused(&self.launch(Conversation::New { id: id.to_owned() }))
            {
                taken.push(format!("new {:.40}", format!("{id:?}")));
            }
        }
        report.must(
            "TMX-6",
            "refuse whatever is not the form of its conversation ids",
            when(taken.is_empty(), || format!("it takes {}", taken.join(", "))),
        );
    }

    async fn preparation(&self, report: &mut Report) {
        if let Err(error) = self.harness.prepare(self.cwd, &self.environment()).await {
            return report.must("HAR-4", "prepare an empty folder", Err(error.to_string()));
        }
        report.must("HAR-4", "prepare an empty folder", Ok(()));
        let again = self.harness.prepare(self.cwd, &self.environment()).await;
        report.must(
            "HAR-4",
            "change nothing where all is right already",
            match again {
                Ok(prepared) => when(prepared.applied.is_empty(), || format!("again: {:?}", prepared.applied)),
                Err(error) => Err(error.to_string()),
            },
        );
    }

    async fn turns(&self, report: &mut Report) {
        let readiness = self.harness.readiness();
        let signals = matches!(readiness, Readiness::Signals);
        report.must(
            "DEL-5",
            "be asked for its state exactly when it tells it",
            when(signals == self.capabilities.turn_signals, || {
                format!("turn signals: {}, readiness: {readiness:?}", self.capabilities.turn_signals)
            }),
        );
        let noise = [Value::Null, json!([]), json!("busy"), json!(7), json!({}), json!({"state": {"idle": [true]}})];
        let heard: Vec<_> = noise.iter().filter(|payload| self.harness.signal(payload).is_some()).collect();
        report.must(
            "HAR-2",
            "take no turn from a payload that says nothing of one",
            when(heard.is_empty(), || format!("it takes one from {heard:?}")),
        );
        let deaf: Vec<_> = self.case.signals.iter().filter(|payload| self.harness.signal(payload).is_none()).collect();
        report.must(
            "HAR-2",
            "understand the payloads of its own hooks",
            when(deaf.is_empty() && self.capabilities.turn_signals != self.case.signals.is_empty(), || {
                format!(
                    "turn signals: {}, payloads in the case: {}, not understood: {deaf:?}",
                    self.capabilities.turn_signals,
                    self.case.signals.len()
                )
            }),
        );
        let observed = self.harness.observe(&self.gone()).await.map(|seen| seen.state);
        report.must(
            "SES-3",
            "never call a process that is gone idle, busy or waiting",
            when(matches!(observed, None | Some(HarnessState::Unknown | HarnessState::Gone)), || {
                format!("it says {observed:?}")
            }),
        );
    }

    fn transcripts(&self, report: &mut Report) {
        let facts = self.gone();
        let own = self.harness.transcript(&self.case.conversation, &facts);
        report.must(
            "HAR-7",
            "name a transcript only when it keeps one",
            when(self.capabilities.transcript || own.is_none(), || format!("it names {own:?}")),
        );
        let hostile: Vec<_> = HOSTILE_IDS.iter().filter_map(|id| self.harness.transcript(id, &facts)).collect();
        report.must(
            "HAR-7",
            "name no transcript for what is no conversation id of its own",
            when(hostile.is_empty(), || format!("it names {hostile:?}")),
        );
    }

    /// A process that is not there any more.
    fn gone(&self) -> ProcessFacts {
        ProcessFacts {
            pid: None,
            cwd: self.cwd.to_owned(),
            conversation: Some(self.case.conversation.clone()),
            age: Duration::from_secs(60),
            environment: self.environment(),
        }
    }

    /// A session's environment whose home is the bench's own.
    fn environment(&self) -> BTreeMap<String, String> {
        BTreeMap::from([
            ("HOME".to_owned(), self.cwd.join("home").display().to_string()),
            ("PATH".to_owned(), "/usr/bin:/bin".to_owned()),
        ])
    }
}

fn refused(answer: &Result<LaunchPlan, HarnessError>) -> bool {
    matches!(answer, Err(HarnessError::InvalidConversation { .. }))
}
