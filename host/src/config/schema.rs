//! The JSON Schema of the config: generated from the Rust types, joined with what plugins describe (CFG-2).

use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};
use the_loop_plugin_api::registry::{Claim, ConfigFragment, Registration};

use super::types::Config;

/// The part of the config that a plugin owns: a pointer such as `/webhooks/ghWebhook`, and the schema of its object.
#[derive(Clone, Debug, PartialEq)]
pub struct Fragment {
    /// Where it stands.
    pub pointer: &'static str,
    /// What it may hold.
    pub schema: Value,
}

impl Fragment {
    /// What a registered plugin describes, if it has any config.
    #[must_use]
    pub fn of(config: ConfigFragment) -> Option<Self> {
        (!config.pointer().is_empty()).then(|| Self { pointer: config.pointer(), schema: config.schema() })
    }

    /// What all registered plugins describe, each once: a plugin of several kinds may describe the same part for each.
    #[must_use]
    pub fn of_claim(claim: &Claim) -> Vec<Self> {
        let harnesses = claim.harnesses.iter().map(Registration::config);
        let runners = claim.runners.iter().map(Registration::config);
        let channels = claim.channels.iter().map(Registration::config);
        let ingresses = claim.ingresses.iter().map(Registration::config);
        let trackers = claim.trackers.iter().map(Registration::config);
        let all = harnesses.chain(runners).chain(channels).chain(ingresses).chain(trackers);
        let mut fragments: Vec<Self> = all.filter_map(Self::of).collect();
        fragments.sort_by_key(|fragment| fragment.pointer);
        fragments.dedup();
        fragments
    }

    /// The fragment with references resolved and gaps closed, as it is joined.
    pub(super) fn prepared(&self) -> Value {
        let definitions = self.schema.get("$defs").cloned().unwrap_or_default();
        let mut schema = inline(&self.schema, &definitions, 0);
        for key in ["$defs", "$schema", "title", "default"] {
            schema.as_object_mut().and_then(|object| object.remove(key));
        }
        tidy(&mut schema, "");
        schema
    }
}

/// Sections whose keys a plugin describes. In a build without that plugin they are open, so that a file still loads.
pub(super) const PLUGIN_SECTIONS: &[&str] = &["/webhooks/ghWebhook", "/routing/tmux"];

/// The schema of the whole config, in one piece, without references.
#[must_use]
pub fn schema(fragments: &[Fragment]) -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let mut schema = settings.into_generator().into_root_schema_for::<Config>().to_value();
    tidy(&mut schema, "");
    if let Some(root) = schema.as_object_mut() {
        root.insert("title".to_owned(), json!("the-loop CLI config"));
        // Editors are told about the schema by this key; nothing reads it.
        if let Some(properties) = root.get_mut("properties").and_then(Value::as_object_mut) {
            properties.insert("$schema".to_owned(), json!({"type": "string"}));
        }
    }
    for pointer in PLUGIN_SECTIONS {
        if !fragments.iter().any(|fragment| fragment.pointer == *pointer)
            && let Some(section) = section_mut(&mut schema, pointer)
        {
            section.insert("additionalProperties".to_owned(), json!(true));
        }
    }
    for fragment in fragments {
        join(&mut schema, fragment);
    }
    // Closes the sections that only fragments have.
    tidy(&mut schema, "");
    schema
}

/// The schema as it is written to `.the-loop/cli-config.schema.json` and committed.
#[must_use]
pub fn schema_text(fragments: &[Fragment]) -> String {
    format!("{:#}\n", schema(fragments))
}

fn join(schema: &mut Value, fragment: &Fragment) {
    let described = fragment.prepared();
    let Some(section) = section_mut(schema, fragment.pointer) else { return };
    section.entry("type").or_insert_with(|| json!("object"));
    section.entry("additionalProperties").or_insert_with(|| described["additionalProperties"].clone());
    let own = section.entry("properties").or_insert_with(|| json!({}));
    if let (Some(own), Some(described)) = (own.as_object_mut(), described["properties"].as_object()) {
        for (name, property) in described {
            own.insert(name.clone(), property.clone());
        }
    }
}

/// The schema object at a pointer of the config, made if it is not there.
fn section_mut<'a>(schema: &'a mut Value, pointer: &str) -> Option<&'a mut Map<String, Value>> {
    pointer.split('/').skip(1).try_fold(schema.as_object_mut()?, |section, token| {
        let properties = section.entry("properties").or_insert_with(|| json!({})).as_object_mut()?;
        properties.entry(token).or_insert_with(|| json!({"type": "object"})).as_object_mut()
    })
}

/// Replaces references by what they name.
fn inline(schema: &Value, definitions: &Value, depth: usize) -> Value {
    /// A schema that names itself would never end; no config nests so deep.
    const DEEPEST: usize = 32;
    match schema {
        Value::Object(object) => {
            let target = object.get("$ref").and_then(Value::as_str).and_then(|name| name.strip_prefix("#/$defs/"));
            if let Some(target) = target.and_then(|name| definitions.get(name)).filter(|_| depth < DEEPEST) {
                let mut target = inline(target, definitions, depth + 1);
                if let Some(merged) = target.as_object_mut() {
                    let beside = object.iter().filter(|(key, _)| *key != "$ref");
                    merged.extend(beside.map(|(key, value)| (key.clone(), value.clone())));
                }
                return target;
            }
            let each = |(key, value): (&String, &Value)| (key.clone(), inline(value, definitions, depth));
            Value::Object(object.iter().map(each).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(|item| inline(item, definitions, depth)).collect()),
        other => other.clone(),
    }
}

/// Makes a generated schema one that gives good errors: no null branches (they swallow the errors of the other branch), no
/// `oneOf` of constants, bounds for what the types bound, and no unknown keys.
fn tidy(schema: &mut Value, name: &str) {
    let Some(object) = schema.as_object_mut() else { return };
    drop_null(object);
    fold_constants(object);
    bound(object, name);
    if object.contains_key("properties") {
        object.entry("additionalProperties").or_insert(json!(false));
        // Each key says its own.
        object.remove("default");
    }
    for (name, below) in object.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten() {
        tidy(below, name);
    }
    for key in ["items", "additionalProperties"] {
        if let Some(below) = object.get_mut(key) {
            tidy(below, name);
        }
    }
    for below in object.get_mut("anyOf").and_then(Value::as_array_mut).into_iter().flatten() {
        tidy(below, name);
    }
}

fn drop_null(object: &mut Map<String, Value>) {
    if let Some(types) = object.get_mut("type")
        && let Some(names) = types.as_array_mut()
    {
        names.retain(|name| name != "null");
        if let [only] = names.as_slice() {
            *types = only.clone();
        }
    }
    if let Some(branches) = object.get_mut("anyOf").and_then(Value::as_array_mut) {
        branches.retain(|branch| branch.get("type").is_none_or(|kind| kind != "null"));
        if let [Value::Object(only)] = branches.as_slice() {
            let only = only.clone();
            object.remove("anyOf");
            for (key, value) in only {
                object.entry(key).or_insert(value);
            }
        }
    }
    if object.get("default").is_some_and(Value::is_null) {
        object.remove("default");
    }
}

/// `oneOf` of documented constants as one `enum`, whose error names all of them.
fn fold_constants(object: &mut Map<String, Value>) {
    let Some(branches) = object.get("oneOf").and_then(Value::as_array) else { return };
    let constants: Option<Vec<Value>> = branches.iter().map(|branch| branch.get("const").cloned()).collect();
    if let Some(constants) = constants {
        object.remove("oneOf");
        object.insert("type".to_owned(), json!("string"));
        object.insert("enum".to_owned(), Value::Array(constants));
    }
}

fn bound(object: &mut Map<String, Value>, name: &str) {
    /// Ten years: longer waits overflow nothing and mean nothing.
    const LONGEST_SECONDS: u64 = 315_360_000;
    let format = object.get("format").and_then(Value::as_str).unwrap_or_default().to_owned();
    if !format.starts_with("uint") {
        return;
    }
    object.remove("format");
    if name.ends_with("Seconds") {
        object.entry("maximum").or_insert(json!(LONGEST_SECONDS));
    } else if format == "uint32" {
        object.entry("maximum").or_insert(json!(u32::MAX));
    }
}
