//! Rules that no schema can say: between keys, and about what a text may be.

use std::{collections::BTreeMap, net::IpAddr};

use serde_json::Value;

use super::{
    check::Finding,
    error::{describe, looks_secret},
    types::{AuthorizedUser, Config},
};

type Rule = fn(&Config, &Value, &mut Vec<Finding>);

/// Each rule with the section it judges; one with errors of its own in the schema's eyes is not judged further.
pub(super) const RULES: &[(&str, Rule)] = &[
    ("/routing/control/keywords", keywords),
    ("/routing/authorizedUsers", routing_people),
    ("/channels/slack/authorizedUsers", slack_people),
    ("/service", exposure),
    ("/service/cors", cors),
    ("/standingSessions", standing),
    ("/loops", loops),
    ("", texts),
];

/// Commands must be told apart in any comment (CTL-1).
fn keywords(config: &Config, raw: &Value, findings: &mut Vec<Finding>) {
    let commands = config.routing.control.keywords.commands();
    // The spelling to blame is one that the file has; the other may be a default.
    let pointer = |command: &str, other: &str| {
        let at = |command: &str| format!("/routing/control/keywords/{command}");
        if raw.pointer(&at(command)).is_some() { at(command) } else { at(other) }
    };
    for (command, spellings) in commands {
        for spelling in spellings {
            if spelling.trim() != spelling || spelling.chars().any(char::is_control) {
                let expected = "a spelling without spaces around it, on one line";
                findings.push(Finding::rule(&pointer(command, command), format!("{spelling:?}"), expected));
            }
        }
    }
    for (index, (command, spellings)) in commands.iter().enumerate() {
        for (other, others) in commands.iter().skip(index + 1) {
            for (one, two) in spellings.iter().flat_map(|one| others.iter().map(move |two| (one, two))) {
                let (inner, outer) = if one.len() <= two.len() { (one, two) } else { (two, one) };
                let (folded, within) = (inner.to_lowercase(), outer.to_lowercase());
                let found = if folded == within {
                    format!("{two:?} for {other} and {one:?} for {command}")
                } else if is_token_of(&folded, &within) {
                    format!("{inner:?}, which is a whole part of {outer:?} ({command} and {other})")
                } else {
                    continue;
                };
                let expected = "spellings that tell the commands apart in any comment";
                findings.push(Finding::rule(&pointer(other, command), found, expected));
            }
        }
    }
}

/// Whether a text stands in another as a whole token, by the rule that keywords are found by (CTL-2).
fn is_token_of(inner: &str, outer: &str) -> bool {
    let joins = |neighbour: Option<char>| neighbour.is_some_and(|c| c.is_alphanumeric() || "_:/-".contains(c));
    !inner.is_empty()
        && outer.char_indices().any(|(at, _)| {
            let (before, rest) = outer.split_at(at);
            let after = rest.strip_prefix(inner);
            after.is_some_and(|after| !joins(before.chars().next_back()) && !joins(after.chars().next()))
        })
}

fn routing_people(config: &Config, raw: &Value, findings: &mut Vec<Finding>) {
    people("/routing/authorizedUsers", &config.routing.authorized_users, raw, findings);
}

fn slack_people(config: &Config, raw: &Value, findings: &mut Vec<Finding>) {
    people("/channels/slack/authorizedUsers", &config.channels.slack.authorized_users, raw, findings);
}

/// A name with a space beside it would match nobody, silently (ADM-2).
fn people(list: &str, users: &[AuthorizedUser], raw: &Value, findings: &mut Vec<Finding>) {
    for (index, user) in users.iter().enumerate() {
        let entry = format!("{list}/{index}");
        let plain = raw.pointer(&entry).is_some_and(Value::is_string);
        if user.github.is_none() && user.slack.is_none() {
            findings.push(Finding::rule(&entry, "a person without github or slack", "at least one of them"));
        }
        for (surface, name) in [("github", &user.github), ("slack", &user.slack)] {
            let Some(name) = name else { continue };
            let pointer = if plain { entry.clone() } else { format!("{entry}/{surface}") };
            let expected = match surface {
                "github" => "a login exactly as GitHub shows it",
                _ => "a member id exactly as Slack shows it",
            };
            let finding = Finding::rule(&pointer, format!("{name:?}"), expected);
            if name.is_empty() {
                findings.push(finding);
            } else if name.chars().any(|c| c.is_whitespace() || c.is_control()) {
                findings.push(finding.hint(format!("write {:?}", name.split_whitespace().collect::<String>())));
            } else if let Some(bare) = name.strip_prefix('@') {
                findings.push(finding.hint(format!("write {bare:?}, without the @")));
            }
        }
    }
}

/// A bind beyond loopback must be meant and guarded (BND-1).
fn exposure(config: &Config, _: &Value, findings: &mut Vec<Finding>) {
    let service = &config.service;
    if is_loopback(&service.host) {
        return;
    }
    let found = format!("{:?}, which others can reach", service.host);
    if !service.exposed {
        let finding = Finding::rule("/service/host", found, "a loopback address unless service.exposed is true");
        findings.push(finding.hint("write 127.0.0.1"));
    } else if service.token_env.is_empty() && !service.behind_gateway {
        let expected = "service.tokenEnv, or service.behindGateway: true, beside service.exposed";
        findings.push(Finding::rule("/service/host", found, expected));
    }
}

fn is_loopback(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost") || bare.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn cors(config: &Config, _: &Value, findings: &mut Vec<Finding>) {
    let cors = &config.service.cors;
    if cors.allow_credentials && cors.allow_origins.iter().any(|origin| origin == "*") {
        let found = "\"*\" together with allowCredentials";
        findings.push(Finding::rule("/service/cors/allowOrigins", found, "exact origins when credentials are allowed"));
    }
}

/// A duplicate name refuses the whole block and names both places (STD-4); two prompts have no precedence (STD-6).
fn standing(config: &Config, _: &Value, findings: &mut Vec<Finding>) {
    let mut seen = BTreeMap::new();
    for (index, entry) in config.standing_sessions.sessions.iter().enumerate() {
        let at = format!("/standingSessions/sessions/{index}");
        if let Some(first) = seen.insert(entry.name.as_str(), index) {
            let found = format!("{:?} at positions {first} and {index} of the list", entry.name);
            findings.push(Finding::rule(&format!("{at}/name"), found, "a name of its own for each session"));
        }
        if !entry.prompt.is_empty() && !entry.prompt_file.as_os_str().is_empty() {
            findings.push(Finding::rule(&at, "both prompt and promptFile", "one of them"));
        }
    }
}

/// A run must still be claimed when its delivery is confirmed (`loops` §1.4).
fn loops(config: &Config, _: &Value, findings: &mut Vec<Finding>) {
    let loops = &config.loops;
    let sum = loops.delivery_timeout_seconds + loops.confirm_timeout_seconds;
    if sum >= loops.run_claim_seconds {
        let found = format!("{} (runClaimSeconds)", loops.run_claim_seconds);
        let expected = format!("more than deliveryTimeoutSeconds and confirmTimeoutSeconds together, {sum}");
        findings.push(Finding::rule("/loops/runClaimSeconds", found, expected));
    }
}

/// No text holds NUL, which no path, argument or variable can carry, and a name of a variable is not the value itself.
fn texts(_: &Config, raw: &Value, findings: &mut Vec<Finding>) {
    walk(raw, "", &mut |pointer, text| {
        if text.contains('\0') {
            findings.push(Finding::rule(pointer, "a NUL character", "a text without one"));
        }
        let env = pointer.split('/').rfind(|token| token.parse::<usize>().is_err());
        if env.is_some_and(|key| key.ends_with("Env")) && looks_secret(text) {
            let found = describe(pointer, &Value::String(text.to_owned()));
            findings.push(Finding::rule(pointer, found, "the name of an environment variable, never a value"));
        }
    });
}

fn walk(value: &Value, pointer: &str, visit: &mut impl FnMut(&str, &str)) {
    match value {
        Value::String(text) => visit(pointer, text),
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                walk(item, &format!("{pointer}/{index}"), visit);
            }
        }
        Value::Object(map) => {
            for (key, below) in map {
                walk(below, &format!("{pointer}/{}", super::yaml::escape(key)), visit);
            }
        }
        _ => {}
    }
}

/// Pairs of loop numbers that make no sense together; both fall back to their defaults.
pub(super) fn contradicting_loops(config: &Config) -> Vec<[&'static str; 2]> {
    let loops = &config.loops;
    [
        (loops.min_interval_seconds > loops.max_interval_seconds, ["minIntervalSeconds", "maxIntervalSeconds"]),
        (
            loops.failure_backoff_seconds > loops.max_failure_backoff_seconds,
            ["failureBackoffSeconds", "maxFailureBackoffSeconds"],
        ),
        (
            loops.lease_heartbeat_seconds >= loops.session_lease_seconds,
            ["leaseHeartbeatSeconds", "sessionLeaseSeconds"],
        ),
    ]
    .into_iter()
    .filter_map(|(wrong, keys)| wrong.then_some(keys))
    .collect()
}
