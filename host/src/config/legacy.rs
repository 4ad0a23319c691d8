//! What does not stop a start: keys of the predecessor, keys of parts still to come, and the few values that fall back
//! instead of failing (CFG-2).

use serde_json::{Value, json};

use super::{
    check::Finding,
    error::{Warning, dotted},
    suggest,
    yaml::Document,
};

/// Keys of version 11 of the predecessor that this product does not have.
const PREDECESSOR: &[&str] = &[
    "/webhooks/ghWebhook/pidfile",
    "/polling/pidfile",
    "/routing/graph",
    "/routing/harnessPlugins",
    "/routing/control/keywords/execute",
    "/routing/control/keywords/contribute",
    "/routing/control/keywords/do",
    "/routing/webTerminal/host",
    "/routing/webTerminal/port",
    "/routing/runner",
    "/collaborators",
    "/notifications",
    "/integrations/jira",
    "/integrations/github/transport",
    "/selfDiagnosis",
];

/// Keys that validate and do nothing in this version.
const NOT_YET: &[&str] = &[
    "/service/mcp",
    "/service/stream",
    "/polling",
    "/routing/tmux/sessionPerPr",
    "/routing/permissions",
    "/routing/limits",
    "/routing/webTerminal",
    "/standingSessions",
    "/channels/slack",
    "/loops",
];

/// Takes the predecessor's keys out of a config and warns of each by name.
pub(super) fn take_predecessor_keys(value: &mut Value, document: &Document) -> Vec<Warning> {
    let mut warnings = Vec::new();
    for pointer in PREDECESSOR {
        if remove(value, pointer) {
            warnings.push(Warning {
                position: document.key_position(pointer),
                key: dotted(pointer),
                what: "is a key of version 11 that this product does not have; it is ignored".to_owned(),
            });
        }
    }
    warnings
}

/// Warns of each key that is set and does nothing yet.
pub(super) fn not_yet(value: &Value, document: &Document) -> Vec<Warning> {
    let set = NOT_YET.iter().filter(|pointer| value.pointer(pointer).is_some());
    let warning = |pointer: &&str| Warning {
        position: document.key_position(pointer),
        key: dotted(pointer),
        what: "is valid and does nothing yet in this version".to_owned(),
    };
    set.map(warning).collect()
}

/// A section whose keys are all commented out stands for an empty one.
pub(super) fn fill_empty_sections(value: &mut Value, schema: &Value) {
    if value.is_null() && schema.get("properties").is_some() {
        *value = json!({});
    }
    match value {
        Value::Object(map) => {
            for (key, below) in map {
                if let Some(schema) = suggest::at(schema, &format!("/{}", super::yaml::escape(key))) {
                    fill_empty_sections(below, schema);
                }
            }
        }
        Value::Array(items) => {
            for item in items {
                fill_empty_sections(item, &schema["items"]);
            }
        }
        _ => {}
    }
}

/// Puts the default in the place of a value that may be wrong without stopping a start, and says so. False when the finding
/// is one that must stop it.
pub(super) fn fall_back(
    value: &mut Value,
    finding: &Finding,
    document: &Document,
    warnings: &mut Vec<Warning>,
) -> bool {
    let pointer = finding.pointer.as_str();
    let (at, instead) = if pointer.starts_with("/channels/slack/read/mode") {
        ("/channels/slack/read/mode".to_owned(), "off is used")
    } else if pointer == "/channels/slack" || pointer.starts_with("/channels/slack/") {
        ("/channels/slack".to_owned(), "Slack is disabled until it is corrected")
    } else if pointer.starts_with("/routing/interaction/mode") {
        ("/routing/interaction/mode".to_owned(), "the default is used")
    } else if let Some(key) = pointer.strip_prefix("/loops/").filter(|_| !finding.unknown) {
        (format!("/loops/{}", key.split('/').next().unwrap_or(key)), "the default is used")
    } else {
        return false;
    };
    // Several findings may be about one value; the first speaks for it.
    let already = warnings.iter().any(|warning| warning.key == dotted(&at));
    match at.as_str() {
        "/channels/slack/read/mode" => {
            if let Some(mode) = value.pointer_mut(&at) {
                *mode = json!("off");
            }
        }
        "/channels/slack" => {
            if let Some(slack) = value.pointer_mut(&at) {
                *slack = json!({});
            }
        }
        other => {
            remove(value, other);
        }
    }
    if !already {
        let problem = finding.clone().place(document);
        let what = format!("{}: {}; {instead}", problem.key, finding.sentence());
        let what = what.strip_prefix(&format!("{}: ", dotted(&at))).map_or(what.clone(), str::to_owned);
        warnings.push(Warning { position: problem.position, key: dotted(&at), what });
    }
    true
}

/// Takes what a pointer names out of a value; false when it was not there.
pub(super) fn remove(value: &mut Value, pointer: &str) -> bool {
    let Some((parent, key)) = pointer.rsplit_once('/') else { return false };
    match value.pointer_mut(parent) {
        Some(Value::Object(map)) => map.shift_remove(&super::yaml::unescape(key)).is_some(),
        _ => false,
    }
}
