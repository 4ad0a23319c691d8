//! Which keys differ between two configs, and which of those need a restart (CFG-3, CFG-4). Values are never part of it.

use serde_json::Value;

use super::error::dotted;
use super::yaml::escape;

/// Keys whose change takes effect only at the next start: what is bound, opened or locked once.
const AT_START: &[&str] = &[
    "/state",
    "/service",
    "/webhooks",
    "/polling/enabled",
    "/eventLog",
    "/routing/registryDir",
    "/routing/tmux/socketName",
    "/channels",
    "/loops/enabled",
];

/// Keys that differ.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// All of them, as people write keys.
    pub changed: Vec<String>,
    /// Those of them that need a restart.
    pub restart: Vec<String>,
}

impl Changes {
    pub(super) fn of_pointers(pointers: Vec<String>) -> Self {
        let restart = pointers.iter().filter(|pointer| needs_restart(pointer)).map(|pointer| dotted(pointer)).collect();
        Self { changed: pointers.iter().map(|pointer| dotted(pointer)).collect(), restart }
    }
}

/// Compares two configs in force.
pub(super) fn changes(before: &Value, after: &Value) -> Changes {
    let mut pointers = Vec::new();
    compare(before, after, "", &mut pointers);
    Changes::of_pointers(pointers)
}

fn needs_restart(pointer: &str) -> bool {
    AT_START.iter().any(|key| pointer.strip_prefix(key).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')))
}

fn compare(before: &Value, after: &Value, pointer: &str, found: &mut Vec<String>) {
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => {
            let null = Value::Null;
            for (key, value) in before {
                compare(value, after.get(key).unwrap_or(&null), &format!("{pointer}/{}", escape(key)), found);
            }
            for (key, value) in after.iter().filter(|(key, _)| !before.contains_key(*key)) {
                compare(&null, value, &format!("{pointer}/{}", escape(key)), found);
            }
        }
        (before, after) if before == after => {}
        _ => found.push(pointer.to_owned()),
    }
}
