//! GitHub's public example payloads.

use std::{collections::BTreeMap, fs, path::Path};

use serde_json::Value;
use the_loop_plugin_api::event::{Actor, Content};

use super::super::{super::config::WebhookConfig, Happening, read};

/// What became of every public example, by kind: events that the host judges, and deliveries that are acknowledged and
/// ignored. None fails to parse.
const EXAMPLES: &str = "\
check_run: 18 parsed, 5 mapped, 5 about an item
check_suite: 20 parsed, 11 mapped, 10 about an item
issue_comment: 20 parsed, 20 mapped, 20 about an item
issues: 50 parsed, 50 mapped, 50 about an item
ping: 11 parsed, 11 mapped, 0 about an item
pull_request: 46 parsed, 46 mapped, 46 about an item
pull_request_review: 11 parsed, 0 mapped, 0 about an item
pull_request_review_comment: 12 parsed, 12 mapped, 12 about an item
repository: 26 parsed, 4 mapped, 0 about an item
status: 11 parsed, 11 mapped, 0 about an item
workflow_run: 10 parsed, 8 mapped, 0 about an item
other kinds: 491 parsed, 0 mapped
";

#[test]
fn ghw_5_every_public_example_payload_is_read_as_the_table_says() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../node_modules/@octokit/webhooks-examples");
    if !folder.exists() {
        // Read at build time: what is built for a plugin reads no environment.
        if option_env!("THE_LOOP_REQUIRE_EXAMPLES") == Some("1") {
            panic!("{} is missing; run `make setup`", folder.display());
        }
        eprintln!("NOT CHECKED: GitHub's public example payloads are not installed; run `make setup`");
        return;
    }
    let mut table: BTreeMap<String, [usize; 3]> = BTreeMap::new();
    let mut sets = 0;
    for set in fs::read_dir(&folder).unwrap().flatten().map(|set| set.path().join("index.json")) {
        let Ok(text) = fs::read_to_string(&set) else { continue };
        let kinds: Vec<Value> = serde_json::from_str(&text).unwrap();
        for kind in &kinds {
            let name = kind["name"].as_str().unwrap();
            let counts = table.entry(name.to_owned()).or_default();
            for example in kind["examples"].as_array().unwrap() {
                let happened = read(name, example.as_object().unwrap());
                let happened = happened.unwrap_or_else(|error| panic!("{set:?}: {error}: {example}"));
                counts[0] += 1;
                counts[1] += usize::from(happened.is_some());
                counts[2] += usize::from(happened.as_ref().is_some_and(|happened| happened.item.is_some()));
                if let Some(Happening { actor, content: Content::Item { .. } | Content::Comment { .. }, .. }) = happened
                {
                    assert_ne!(actor, Actor::Missing, "{set:?}: {example}");
                }
            }
        }
        sets += 1;
    }
    assert!(sets >= 6, "only {sets} sets of examples were found in {}", folder.display());
    let taken = |name: &str| WebhookConfig::default().takes(name);
    let rest: usize = table.iter().filter(|(name, _)| !taken(name)).map(|(_, counts)| counts[0]).sum();
    let mut lines: String = table
        .iter()
        .filter(|(name, _)| taken(name))
        .map(|(name, [all, mapped, about])| format!("{name}: {all} parsed, {mapped} mapped, {about} about an item\n"))
        .collect();
    lines.push_str(&format!("other kinds: {rest} parsed, 0 mapped\n"));
    assert_eq!(lines, EXAMPLES);
}
