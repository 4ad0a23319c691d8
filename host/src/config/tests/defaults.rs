//! Every key of the reference has its documented default.

use std::path::Path;

use serde_json::{Value, json};

use super::{effective, fragments, good, options};
use crate::config::{load_with, schema};

/// The reference, line by line.
fn reference() -> Vec<(&'static str, Value)> {
    vec![
        ("state.root", json!(".the-loop")),
        ("service.enabled", json!(true)),
        ("service.host", json!("127.0.0.1")),
        ("service.port", json!(4114)),
        ("service.exposed", json!(false)),
        ("service.behindGateway", json!(false)),
        ("service.tokenEnv", json!([])),
        ("service.autoStart", json!(true)),
        ("service.hostIngresses", json!(true)),
        ("service.mcp.enabled", json!(true)),
        ("service.stream.enabled", json!(true)),
        ("service.stream.maxSubscribers", json!(100)),
        ("service.stream.keepAliveSeconds", json!(15)),
        ("service.cors.allowOrigins", json!([])),
        ("service.cors.allowMethods", json!(["GET", "POST", "OPTIONS"])),
        ("service.cors.allowHeaders", json!(["Accept", "Content-Type"])),
        ("service.cors.allowCredentials", json!(false)),
        ("service.cors.allowPrivateNetwork", json!(true)),
        ("webhooks.ghWebhook.enabled", json!(false)),
        ("webhooks.ghWebhook.host", json!("127.0.0.1")),
        ("webhooks.ghWebhook.port", json!(8787)),
        ("webhooks.ghWebhook.path", json!("/gh-webhook")),
        ("webhooks.ghWebhook.secretEnv", json!("THE_LOOP_GH_WEBHOOK_SECRET")),
        ("webhooks.ghWebhook.events", Value::Null),
        ("webhooks.ghWebhook.allowUnsigned", json!(false)),
        ("polling.enabled", json!(false)),
        ("polling.intervalSeconds", json!(60)),
        ("polling.maxRetries", json!(3)),
        ("polling.sources", json!([])),
        ("integrations.github.api.baseUrl", json!("https://api.github.com")),
        ("integrations.github.api.tokenEnv", json!(["GITHUB_TOKEN", "GH_TOKEN"])),
        ("integrations.github.api.app", Value::Null),
        ("integrations.github.cli.binary", json!("gh")),
        ("routing.enabled", json!(false)),
        ("routing.shadow", json!(false)),
        ("routing.authorizedUsers", json!([])),
        ("routing.autoExecuteLabel", json!("the-loop: auto-execute")),
        ("routing.spawnOnUnmatched", json!("never")),
        ("routing.control.enabled", json!(true)),
        ("routing.control.requireStartCommand", json!(true)),
        ("routing.control.keywords.start", json!(["the-loop:start-execution", "the-loop start"])),
        ("routing.control.keywords.stop", json!(["the-loop:stop-execution", "the-loop stop"])),
        ("routing.control.keywords.pause", json!(["the-loop:pause-execution", "the-loop pause"])),
        ("routing.control.keywords.resume", json!(["the-loop:resume-execution", "the-loop resume"])),
        ("routing.control.keywords.cleanup", json!(["the-loop:cleanup", "the-loop cleanup"])),
        ("routing.interaction.mode", json!("work-item")),
        ("routing.defaultHarness", json!("claude")),
        ("routing.harnessArgs", json!({})),
        ("routing.spawnWorkdir", json!(".")),
        ("routing.workspace.root", json!("")),
        ("routing.workspace.strategy", json!("worktree")),
        ("routing.workspace.cloneProtocol", json!("https")),
        ("routing.workspace.defaultHost", json!("github.com")),
        ("routing.workspace.keepCheckoutOnClose", json!(false)),
        ("routing.workspace.gitBinary", json!("git")),
        ("routing.tmux.socketName", json!("")),
        ("routing.tmux.keepSessionOnClose", json!(true)),
        ("routing.tmux.remainOnExit", json!(true)),
        ("routing.tmux.resumeOnRespawn", json!(true)),
        ("routing.tmux.killHarnessOnClose", json!(true)),
        ("routing.tmux.harnessKillGraceSeconds", json!(5)),
        ("routing.tmux.resumeProbeSeconds", json!(2)),
        ("routing.tmux.sessionPerPr", json!("cross-repository")),
        ("routing.maxConcurrentDispatches", json!(4)),
        ("routing.maxQueuePerSession", json!(1000)),
        ("routing.maxDeliveryBytes", json!(65536)),
        ("routing.deliveryHoldSeconds", json!(3600)),
        ("routing.dispatchTimeoutSeconds", json!(1800)),
        ("routing.dedupCacheSize", Value::Null),
        ("routing.unsignalled", json!("hold")),
        ("routing.registryDir", json!("/srv/op/.the-loop/local")),
        ("routing.promptTemplate", Value::Null),
        ("routing.spawnPromptTemplate", Value::Null),
        ("routing.harnessTrust.enabled", json!(true)),
        ("routing.harnessTrust.scope", json!("workspace-root")),
        ("routing.harnessTrust.acceptBypassPermissions", json!("auto")),
        ("routing.permissions", json!("local")),
        ("routing.limits", json!("park")),
        ("routing.reactions.enabled", json!(true)),
        ("routing.reactions.started", json!("eyes")),
        ("routing.reactions.completed", json!("hooray")),
        ("routing.reactions.error", json!("confused")),
        ("routing.announce.enabled", json!(true)),
        ("routing.webTerminal.enabled", json!(false)),
        ("routing.webTerminal.writable", json!(false)),
        ("env.file", json!("")),
        ("env.sessionPassthrough", json!([])),
        ("standingSessions.enabled", json!(false)),
        ("standingSessions.sessions", json!([])),
        ("channels.slack.enabled", json!(false)),
        ("channels.slack.botTokenEnv", json!(["THE_LOOP_SLACK_BOT_TOKEN"])),
        ("channels.slack.appTokenEnv", json!(["THE_LOOP_SLACK_APP_TOKEN"])),
        ("channels.slack.apiBaseUrl", json!("https://slack.com/api")),
        ("channels.slack.channel", json!("")),
        ("channels.slack.events", json!(["session.awaiting_input"])),
        ("channels.slack.verbosity", json!("normal")),
        ("channels.slack.authorizedUsers", json!([])),
        ("channels.slack.read.mode", json!("poll")),
        ("channels.slack.read.intervalSeconds", json!(30)),
        ("loops.enabled", json!(true)),
        ("loops.idle", json!("signals")),
        ("loops.minIntervalSeconds", json!(30)),
        ("loops.maxIntervalSeconds", json!(604_800)),
        ("loops.maxLoopsPerSession", json!(5)),
        ("loops.maxOpenLoops", json!(100)),
        ("loops.promptMaxChars", json!(4000)),
        ("loops.reasonMaxChars", json!(400)),
        ("loops.busyBackoffSeconds", json!(60)),
        ("loops.failureBackoffSeconds", json!(60)),
        ("loops.maxFailureBackoffSeconds", json!(3600)),
        ("loops.maxConsecutiveFailures", json!(5)),
        ("loops.maxLoopAgeDays", json!(7)),
        ("loops.dynamicMaxDelaySeconds", json!(86_400)),
        ("loops.restrictedAgents", json!(["plan"])),
        ("loops.restrictedModes", json!(["plan"])),
        ("loops.sessionLeaseSeconds", json!(90)),
        ("loops.leaseHeartbeatSeconds", json!(30)),
        ("loops.runClaimSeconds", json!(60)),
        ("loops.deliveryTimeoutSeconds", json!(20)),
        ("loops.confirmTimeoutSeconds", json!(15)),
        ("loops.settleSeconds", json!(5)),
        ("loops.humanHoldSeconds", json!(15)),
        ("loops.maxSleepSeconds", json!(15)),
        ("loops.recoveryRetrySeconds", json!(30)),
        ("loops.agentCreate", json!("allow")),
        ("loops.agentKeepAlive", json!("allow")),
        ("loops.closedRetentionDays", json!(30)),
        ("loops.maxUnproductiveRuns", json!(0)),
        ("eventLog.enabled", json!(true)),
        ("eventLog.path", json!("/srv/op/.the-loop/logs/events.jsonl")),
        ("eventLog.maxBytes", json!(268_435_456)),
        ("eventLog.keep", json!(4)),
    ]
}

#[test]
fn cfg_2_every_key_of_the_reference_has_its_default() {
    let value = effective(&good(""));
    for (key, expected) in reference() {
        assert_eq!(crate::config::get(&value, key).unwrap_or_default(), expected, "{key}");
    }
}

/// The other way round: a key that the schema has is one that the reference lists.
#[test]
fn cfg_2_the_schema_has_the_keys_of_the_reference_and_no_others() {
    let mut known: Vec<String> = reference().into_iter().map(|(key, _)| key.to_owned()).collect();
    known.extend(["version", "$schema"].map(str::to_owned));
    let mut leaves = Vec::new();
    collect(&schema(&fragments()), String::new(), &mut leaves);
    let mut found: Vec<String> = leaves.into_iter().filter(|key| !key.contains(".app.")).collect();
    found.push("integrations.github.api.app".to_owned());
    known.sort();
    found.sort();
    assert_eq!(found, known);
}

fn collect(schema: &Value, key: String, leaves: &mut Vec<String>) {
    match schema.get("properties").and_then(Value::as_object) {
        Some(properties) => {
            for (name, below) in properties {
                let key = if key.is_empty() { name.clone() } else { format!("{key}.{name}") };
                collect(below, key, leaves);
            }
        }
        None => leaves.push(key),
    }
}

#[test]
fn cfg_2_a_declared_entry_has_its_defaults() {
    let loaded = good(
        "standingSessions: {sessions: [{name: a}, {name: b, harnessArgs: []}]}\npolling: {sources: [{repos: [o/r, h.test/o/r]}]}\n",
    );
    let [first, second] = loaded.config.standing_sessions.sessions.as_slice() else { panic!("two sessions") };
    assert_eq!((first.harness_args.as_ref(), second.harness_args.as_ref()), (None, Some(&Vec::new())), "STD-5");
    assert!(first.auto_start && !first.slack.enabled && first.prompt.is_empty() && first.cwd.is_none());
    let source = serde_json::to_value(&loaded.config.polling.sources[0]).unwrap();
    let monitor = json!({"issues": true, "pullRequests": true});
    assert_eq!(source, json!({"provider": "github", "repos": ["o/r", "h.test/o/r"], "label": "", "monitor": monitor}));
}

#[test]
fn cfg_1_without_a_file_the_defaults_apply_and_paths_resolve_against_the_working_directory() {
    let loaded = load_with(None, &options(Path::new("/somewhere"))).unwrap();
    assert_eq!(loaded.config, crate::config::Config::default());
    assert_eq!(loaded.state_root(), Path::new("/somewhere/.the-loop"));
    assert!(loaded.path.is_none() && loaded.warnings.is_empty());
}

#[test]
fn cfg_1_relative_paths_resolve_against_the_folder_that_holds_the_config() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    std::fs::create_dir_all(root.join(".the-loop")).unwrap();
    let text = "state: {root: ./s}\nrouting: {spawnWorkdir: ~/w}\neventLog: {path: /var/log/e.jsonl}\n";
    for place in [".the-loop/cli-config.yaml", "other.yaml"] {
        std::fs::write(root.join(place), text).unwrap();
        for (cwd, path) in [("", place.to_owned()), (".the-loop", format!("../{place}")), ("", format!("./{place}"))] {
            let mut options = options(&root.join(cwd));
            options.home = Some("/home/ada".into());
            let loaded = load_with(Some(Path::new(&path)), &options).unwrap();
            assert_eq!(loaded.state_root(), root.join("s"), "{path} from {cwd}");
            assert_eq!(loaded.registry_dir(), root.join("s/local"));
            assert_eq!(loaded.spawn_workdir(), Path::new("/home/ada/w"));
            assert_eq!(loaded.event_log_path(), Path::new("/var/log/e.jsonl"));
        }
    }
}
