//! The nearest key or word to one that is not known.

use serde_json::Value;

use super::error::dotted;

/// The nearest of some words, if any is near.
pub(super) fn nearest<'a>(word: &str, among: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let folded = word.to_lowercase();
    let among: Vec<&str> = among.into_iter().collect();
    // A word cut short, such as `socket` for `socketName`, is far off by letters and near by meaning.
    let mut longer = among.iter().filter(|candidate| candidate.to_lowercase().starts_with(&folded));
    if let (4.., Some(only), None) = (word.len(), longer.next(), longer.next()) {
        return Some(only);
    }
    among
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(&folded, &candidate.to_lowercase()), candidate))
        .filter(|(distance, candidate)| *distance <= candidate.len().max(word.len()) / 3)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// What to do about a key that is not known: the nearest of its siblings, or the place where such a key belongs.
pub(super) fn for_key(schema: &Value, parent: &str, key: &str) -> Option<String> {
    let siblings = at(schema, parent).map(properties).unwrap_or_default();
    if let Some(near) = nearest(key, siblings.iter().map(String::as_str)) {
        return Some(format!("did you mean {near}?"));
    }
    let mut elsewhere = Vec::new();
    collect(schema, "", key, &mut elsewhere);
    let places: Vec<String> = elsewhere.iter().map(|pointer| dotted(pointer)).collect();
    // A word that many sections have says nothing about which one was meant.
    (1..=3).contains(&places.len()).then(|| format!("did you mean {}?", places.join(" or ")))
}

/// The schema of the value at a JSON pointer of the config.
pub(super) fn at<'a>(schema: &'a Value, pointer: &str) -> Option<&'a Value> {
    pointer.split('/').skip(1).try_fold(schema, |schema, token| {
        let by_name = schema.get("properties").and_then(|properties| properties.get(super::yaml::unescape(token)));
        by_name.or_else(|| schema.get("items")).or_else(|| schema.get("additionalProperties"))
    })
}

/// The names of the keys an object may have.
pub(super) fn properties(schema: &Value) -> Vec<String> {
    let branches = schema.get("anyOf").and_then(Value::as_array).into_iter().flatten();
    let keys = |schema: &Value| {
        schema.get("properties").and_then(Value::as_object).map(|map| map.keys().cloned().collect::<Vec<_>>())
    };
    keys(schema).or_else(|| branches.filter_map(keys).next()).unwrap_or_default()
}

fn collect(schema: &Value, pointer: &str, key: &str, found: &mut Vec<String>) {
    for (name, below) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        let pointer = format!("{pointer}/{}", super::yaml::escape(name));
        if name == key {
            found.push(pointer.clone());
        }
        collect(below, &pointer, key, found);
    }
}
