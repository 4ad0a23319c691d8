//! What warns and does not stop a start.

use serde_json::json;

use super::{good, interpret, problems};
use crate::config::{Consent, Interaction, LoopsConfig, SlackRead};

fn warned(text: &str) -> Vec<(String, Option<u64>)> {
    let line = |warning: &crate::config::Warning| warning.position.map(|at| at.line);
    good(text).warnings.iter().map(|warning| (warning.key.clone(), line(warning))).collect()
}

#[test]
fn cfg_2_keys_of_the_predecessor_warn_by_name_and_are_ignored() {
    let text = "version: \"11\"
collaborators: [ada]
notifications:
  desktop: {enabled: true}
selfDiagnosis: {enabled: true}
webhooks: {ghWebhook: {pidfile: a.pid}}
polling: {pidfile: b.pid}
integrations: {jira: {url: x}, github: {transport: gh}}
routing:
  runner: tmux
  graph: {nodes: [a]}
  harnessPlugins: {x: y}
  webTerminal: {host: h, port: 1}
  control: {keywords: {execute: the-loop start, contribute: x, do: y}}
";
    let loaded = good(text);
    let named: Vec<_> = loaded.warnings.iter().filter(|warning| warning.what.contains("version 11")).collect();
    let mut keys: Vec<&str> = named.iter().map(|warning| warning.key.as_str()).collect();
    keys.sort_unstable();
    let expected = [
        "collaborators",
        "integrations.github.transport",
        "integrations.jira",
        "notifications",
        "polling.pidfile",
        "routing.control.keywords.contribute",
        "routing.control.keywords.do",
        "routing.control.keywords.execute",
        "routing.graph",
        "routing.harnessPlugins",
        "routing.runner",
        "routing.webTerminal.host",
        "routing.webTerminal.port",
        "selfDiagnosis",
        "webhooks.ghWebhook.pidfile",
    ];
    assert_eq!(keys, expected);
    let graph = named.iter().find(|warning| warning.key == "routing.graph").unwrap();
    assert_eq!(graph.position.map(|at| (at.line, at.column)), Some((11, 3)));
    assert_eq!(loaded.config.version, Some(json!("11")));
    assert!(loaded.raw.pointer("/routing/graph").is_none());
}

#[test]
fn cfg_2_keys_of_parts_to_come_say_so_only_when_they_are_set() {
    assert_eq!(warned("routing: {shadow: true}\n"), []);
    let text =
        "routing:\n  limits: off\n  permissions: remote\nloops: {idle: pane}\nstandingSessions: {enabled: true}\n";
    let expected = [
        ("routing.limits".to_owned(), Some(2)),
        ("routing.permissions".to_owned(), Some(3)),
        ("loops".to_owned(), Some(4)),
        ("standingSessions".to_owned(), Some(5)),
    ];
    assert_eq!(warned(text), expected);
    assert!(good(text).warnings.iter().all(|warning| warning.what.contains("does nothing yet")));
}

#[test]
fn cfg_2_numbers_of_loops_fall_back_to_their_defaults_with_one_warning_each() {
    let text = "loops:\n  maxOpenLoops: unlimited\n  busyBackoffSeconds: -5\n  agentCreate: maybe\n  restrictedAgents: [1, 2]\n  maxLoopAgeDays: 3\n";
    let loaded = good(text);
    let defaults = LoopsConfig::default();
    assert_eq!(loaded.config.loops, LoopsConfig { max_loop_age_days: 3, ..defaults });
    assert_eq!(loaded.config.loops.agent_create, Consent::Allow);
    let keys =
        ["loops", "loops.maxOpenLoops", "loops.busyBackoffSeconds", "loops.agentCreate", "loops.restrictedAgents"];
    assert_eq!(warned(text).iter().map(|(key, _)| key.as_str()).collect::<Vec<_>>(), keys);
    let said = loaded.warnings[1].to_string();
    assert_eq!(
        said,
        "line 2: loops.maxOpenLoops: found the text \"unlimited\", expected a whole number; the default is used"
    );
}

#[test]
fn cfg_2_loop_numbers_that_contradict_each_other_fall_back_together() {
    let loaded = good("loops: {minIntervalSeconds: 600, maxIntervalSeconds: 60, leaseHeartbeatSeconds: 120}\n");
    assert_eq!(loaded.config.loops, LoopsConfig::default());
    assert!(loaded.raw.pointer("/loops/minIntervalSeconds").is_none());
    assert_eq!(loaded.warnings.iter().filter(|warning| warning.what.contains("contradict")).count(), 2);
}

#[test]
fn cfg_2_the_interaction_mode_falls_back_to_the_ticket() {
    let text = "routing:\n  interaction:\n    mode: slack\n";
    assert_eq!(good(text).config.routing.interaction.mode, Interaction::WorkItem);
    assert!(warned(text).contains(&("routing.interaction.mode".to_owned(), Some(3))));
    assert_eq!(problems("routing: {interaction: {mod: cli}}")[0].key, "routing.interaction.mod");
}

#[test]
fn cfg_2_slack_falls_back_to_off_and_to_disabled() {
    let text = "channels:\n  slack:\n    enabled: true\n    channel: C1\n    read: {mode: carrier-pigeon}\n";
    let slack = good(text).config.channels.slack;
    assert!(slack.enabled && slack.channel == "C1");
    assert_eq!(slack.read.mode, SlackRead::Off);
    assert!(warned(text).contains(&("channels.slack.read.mode".to_owned(), Some(5))));
    for broken in ["chanel: C1", "channel: 5", "authorizedUsers: ['U1 ']", "read: {intervalSeconds: 0}"] {
        let text = format!("channels:\n  slack:\n    enabled: true\n    {broken}\n");
        let loaded = good(&text);
        assert!(!loaded.config.channels.slack.enabled, "{text}");
        let warning = loaded.warnings.iter().find(|warning| warning.what.contains("Slack is disabled")).unwrap();
        assert_eq!(warning.position.map(|at| at.line), Some(4), "{warning}");
    }
    assert!(!good("channels: {slack: [nonsense]}").config.channels.slack.enabled);
    // One section's fall is not another's.
    assert!(interpret("channels: {slack: [nonsense]}\nrouting: {enabled: 1}\n").is_err());
}

#[test]
fn adm_2_an_empty_list_of_people_is_warned_about_where_it_matters() {
    assert_eq!(warned("routing: {enabled: true}"), [("routing.authorizedUsers".to_owned(), None)]);
    assert_eq!(warned("routing: {enabled: true, authorizedUsers: [ada]}"), []);
}

#[test]
fn a_section_with_everything_commented_out_is_an_empty_one() {
    let loaded = good("routing:\n  control:\n    #enabled: false\nservice:\n");
    assert!(loaded.config.routing.control.enabled);
    assert_eq!(loaded.raw, json!({"routing": {"control": {}}, "service": {}}));
}

#[test]
fn api_1_too_few_subscribers_count_as_one() {
    for (given, expected) in [("0", 1), ("-7", 1), ("3", 3)] {
        let text = format!("service: {{stream: {{maxSubscribers: {given}}}}}");
        assert_eq!(good(&text).config.service.stream.max_subscribers, expected);
    }
}
