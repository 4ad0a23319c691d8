//! The harness suite finds each fault that it is there to find, and none in a harness that keeps the contract.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;
use jiff::Timestamp;
use serde_json::{Value, json};
use the_loop_conformance::{Bench, Kit, Report, harness};
use the_loop_plugin_api::{
    Harness, HarnessState, LaunchPlan, PluginContext, TurnSignal,
    delivery::Readiness,
    harness::{Capabilities, HarnessError, Prepared, ProcessFacts},
    launch::{Conversation, FirstPrompt, LaunchRequest},
    register,
    registry::{ConfigFragment, PluginError},
    signal::{Evidence, ObservedState},
};

register!(HarnessKind, "fake", "a harness with a fault", ConfigFragment::new("/test/fake", schema), build);

fn schema() -> Value {
    json!({"type": "object", "additionalProperties": false, "properties": {"fault": {"type": "string"}}})
}

/// Behaves well but for one fault.
struct Fake {
    fault: String,
}

fn build(context: PluginContext) -> Result<Arc<dyn Harness>, PluginError> {
    let config: BTreeMap<String, String> =
        context.config().map_err(|error| PluginError::new("the config of the fake", error))?;
    Ok(Arc::new(Fake { fault: config.get("fault").cloned().unwrap_or_default() }))
}

impl Fake {
    fn has(&self, fault: &str) -> bool {
        self.fault == fault
    }
}

#[async_trait]
impl Harness for Fake {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            assignable_conversation: true,
            resume: true,
            turn_signals: true,
            transcript: true,
            ..Capabilities::default()
        }
    }

    async fn prepare(&self, _cwd: &Path, _environment: &BTreeMap<String, String>) -> Result<Prepared, HarnessError> {
        let applied = if self.has("prepares twice") { vec!["trusted the folder".to_owned()] } else { Vec::new() };
        Ok(Prepared { applied })
    }

    fn launch(&self, request: &LaunchRequest) -> Result<LaunchPlan, HarnessError> {
        let (flag, id) = match &request.conversation {
            Conversation::New { id } => ("--new", id),
            Conversation::Resume { id } => ("--resume", id),
        };
        let flag = if self.has("resumes as new") { "--new" } else { flag };
        if !self.has("takes any id") && !is_conversation(id) {
            return Err(HarnessError::InvalidConversation { id: id.clone() });
        }
        let mut argv = vec!["fake".to_owned(), flag.to_owned(), id.clone(), request.prompt.clone()];
        if self.has("prompt twice") {
            argv.push(request.prompt.clone());
        }
        let mut env = BTreeMap::new();
        if self.has("sets the terminal") {
            env.insert("TERM".to_owned(), "dumb".to_owned());
        }
        let recorded = if self.has("records another id") { "another" } else { id };
        Ok(LaunchPlan {
            argv: if self.has("no program") { Vec::new() } else { argv },
            env,
            cwd: request.cwd.clone(),
            first_prompt: FirstPrompt::InArguments,
            conversation: Some(recorded.to_owned()),
            files: BTreeMap::new(),
        })
    }

    fn readiness(&self) -> Readiness {
        if self.has("reads the screen") {
            Readiness::Screen { quiet_for: Duration::from_secs(1) }
        } else {
            Readiness::Signals
        }
    }

    async fn observe(&self, _process: &ProcessFacts) -> Option<ObservedState> {
        let state = if self.has("idle when gone") { HarnessState::Idle } else { HarnessState::Gone };
        Some(ObservedState { state, evidence: Evidence::StateFile, since: Timestamp::UNIX_EPOCH, detail: None })
    }

    fn transcript(&self, conversation: &str, _process: &ProcessFacts) -> Option<PathBuf> {
        (self.has("any transcript") || is_conversation(conversation))
            .then(|| Path::new("/transcripts").join(conversation))
    }

    fn signal(&self, payload: &Value) -> Option<TurnSignal> {
        let said = payload.get("turn").is_some() || self.has("hears noise");
        said.then_some(TurnSignal { state: HarnessState::Busy, conversation: None, prompt: None, detail: None })
    }
}

fn is_conversation(id: &str) -> bool {
    id.len() == 36 && id.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-')
}

async fn found(config: Value) -> Report {
    let case = harness::Case { signals: vec![json!({"turn": "started"})], ..harness::Case::default() };
    harness::check(Kit::get(), "fake", &Bench::new(config), &case).await
}

#[tokio::test]
async fn har_8_a_harness_that_keeps_the_contract_passes() {
    found(json!({})).await.assert();
}

#[tokio::test]
async fn har_8_each_fault_of_a_harness_is_found_under_its_rule() {
    for (fault, rules) in [
        ("takes any id", vec!["TMX-6"]),
        ("resumes as new", vec!["HAR-1"]),
        ("records another id", vec!["HAR-1"]),
        ("no program", vec!["DEL-4", "HAR-1"]),
        ("prompt twice", vec!["DEL-4"]),
        ("sets the terminal", vec!["TMX-7"]),
        ("prepares twice", vec!["HAR-4"]),
        ("reads the screen", vec!["DEL-5"]),
        ("hears noise", vec!["HAR-2"]),
        ("idle when gone", vec!["SES-3"]),
        ("any transcript", vec!["HAR-7"]),
    ] {
        assert_eq!(found(json!({"fault": fault})).await.broken(), rules, "{fault}");
    }
}

#[tokio::test]
async fn har_8_a_config_that_the_schema_refuses_and_a_name_that_nobody_has_are_found() {
    assert_eq!(found(json!({"fault": "", "other": 1})).await.broken(), ["ARC-3", "CFG-2"]);
    let nobody = harness::check(Kit::get(), "nobody", &Bench::new(json!({})), &harness::Case::default()).await;
    assert_eq!(nobody.broken(), ["ARC-3"]);
}

#[test]
#[should_panic(expected = "[ARC-3] MUST be registered under its name")]
fn har_8_a_broken_rule_is_named_when_it_fails() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(harness::check(Kit::get(), "nobody", &Bench::new(json!({})), &harness::Case::default())).assert();
}
