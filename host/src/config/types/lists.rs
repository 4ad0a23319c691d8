//! Values with a shape of their own: one text or a list of them, names of environment variables, people.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize};

/// The name of an environment variable, or nothing.
const ENV_OR_EMPTY: &str = "^([A-Za-z_][A-Za-z0-9_]*)?$";
/// The name of an environment variable.
const ENV: &str = "^[A-Za-z_][A-Za-z0-9_]*$";

/// The patterns that stand for names of environment variables.
pub(in crate::config) const ENV_PATTERNS: [&str; 2] = [ENV_OR_EMPTY, ENV];

/// A person who may act, as the surfaces name them (ADM-2). A plain login in the file sets `github` alone; a plain member
/// id under `channels.slack` sets `slack` alone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct AuthorizedUser {
    /// What the log calls them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Their GitHub login; compared without regard to case.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub github: Option<String>,
    /// Their Slack member id; compared exactly.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slack: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Entry {
    Plain(String),
    Person(AuthorizedUser),
}

/// Reads a text or a list of texts; an empty text is an empty list.
pub(super) fn one_or_many<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    Ok(match OneOrMany::deserialize(deserializer)? {
        OneOrMany::One(text) if text.is_empty() => Vec::new(),
        OneOrMany::One(text) => vec![text],
        OneOrMany::Many(texts) => texts,
    })
}

/// Reads people, a plain text being a GitHub login.
pub(super) fn github_users<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<AuthorizedUser>, D::Error> {
    people(deserializer, |login| AuthorizedUser { github: Some(login), ..AuthorizedUser::default() })
}

/// Reads people, a plain text being a Slack member id.
pub(super) fn slack_users<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<AuthorizedUser>, D::Error> {
    people(deserializer, |member| AuthorizedUser { slack: Some(member), ..AuthorizedUser::default() })
}

fn people<'de, D: Deserializer<'de>>(
    deserializer: D,
    plain: fn(String) -> AuthorizedUser,
) -> Result<Vec<AuthorizedUser>, D::Error> {
    let entries = Vec::<Entry>::deserialize(deserializer)?;
    let person = |entry| match entry {
        Entry::Plain(text) => plain(text),
        Entry::Person(person) => person,
    };
    Ok(entries.into_iter().map(person).collect())
}

/// Reads a whole number below one as one.
pub(super) fn at_least_one<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    let number = i64::deserialize(deserializer)?;
    Ok(u32::try_from(number.max(1)).unwrap_or(u32::MAX))
}

/// Reads a text or a number as a text.
pub(super) fn text_or_number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum TextOrNumber {
        Text(String),
        Number(u64),
    }
    Ok(Some(match TextOrNumber::deserialize(deserializer)? {
        TextOrNumber::Text(text) => text,
        TextOrNumber::Number(number) => number.to_string(),
    }))
}

/// Any value at all.
pub(super) fn anything(_: &mut SchemaGenerator) -> Schema {
    Schema::default()
}

/// Any whole number.
pub(super) fn any_integer(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "integer"})
}

/// A text, or a whole number.
pub(super) fn text_or_number_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"anyOf": [{"type": "string", "minLength": 1}, {"type": "integer", "minimum": 1}]})
}

/// Spellings of a command: one, a list, or `""` for none (CTL-1).
pub(super) fn spellings(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string", "minLength": 1}}]})
}

/// Names of environment variables tried in order: one, a list, or `""` for none.
pub(super) fn env_names(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"anyOf": [
        {"type": "string", "pattern": ENV_OR_EMPTY},
        {"type": "array", "items": {"type": "string", "pattern": ENV}},
    ]})
}

/// A list of names of environment variables.
pub(super) fn env_list(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "array", "items": {"type": "string", "pattern": ENV}})
}

/// People: plain names, or objects that name one person on several surfaces.
pub(super) fn people_schema(generator: &mut SchemaGenerator) -> Schema {
    let person = AuthorizedUser::json_schema(generator);
    json_schema!({"type": "array", "items": {"anyOf": [{"type": "string"}, person]}})
}
