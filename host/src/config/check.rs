//! Validation against the schema: all errors, each in words (CFG-2). The only file that knows the validator.

use jsonschema::{
    ValidationError, Validator,
    error::{TypeKind, ValidationErrorKind as Kind},
};
use serde_json::Value;

use super::{
    error::{ConfigError, Problem, describe, dotted},
    suggest,
    types::ENV_PATTERNS,
    yaml::{Document, escape},
};

/// A schema, ready to validate with.
pub(super) struct Checker {
    schema: Value,
    validator: Validator,
}

/// What the schema says is wrong at a pointer.
#[derive(Clone, Debug)]
pub(super) struct Finding {
    pub(super) pointer: String,
    /// Whether the key at the pointer is not known at all.
    pub(super) unknown: bool,
    found: String,
    expected: String,
    hint: Option<String>,
}

impl Finding {
    /// A finding of a rule that no schema can say.
    pub(super) fn rule(pointer: &str, found: impl Into<String>, expected: impl Into<String>) -> Self {
        Self { pointer: pointer.to_owned(), unknown: false, found: found.into(), expected: expected.into(), hint: None }
    }

    /// The same with a way out.
    pub(super) fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// The finding where it stands in a file.
    pub(super) fn place(self, document: &Document) -> Problem {
        let nearest = |find: &dyn Fn(&str) -> Option<super::yaml::Position>| {
            let ends = self.pointer.rmatch_indices('/').map(|(end, _)| &self.pointer[..end]);
            std::iter::once(self.pointer.as_str()).chain(ends).find_map(find)
        };
        let position = if self.unknown {
            nearest(&|pointer| document.key_position(pointer))
        } else {
            nearest(&|pointer| document.value_position(pointer))
        };
        Problem { position, key: dotted(&self.pointer), found: self.found, expected: self.expected, hint: self.hint }
    }

    /// In one line, for a warning.
    pub(super) fn sentence(&self) -> String {
        let hint = self.hint.as_ref().map(|hint| format!("; {hint}")).unwrap_or_default();
        format!("found {}, expected {}{hint}", self.found, self.expected)
    }
}

impl Checker {
    pub(super) fn new(schema: Value) -> Result<Self, ConfigError> {
        let build = jsonschema::options().should_validate_formats(true).build(&schema);
        match build {
            Ok(validator) => Ok(Self { schema, validator }),
            Err(error) => {
                Err(ConfigError::Schema { pointer: error.instance_path().to_string(), what: error.to_string() })
            }
        }
    }

    pub(super) fn schema(&self) -> &Value {
        &self.schema
    }

    /// Everything that the schema finds wrong.
    pub(super) fn findings(&self, value: &Value) -> Vec<Finding> {
        let mut findings = Vec::new();
        for error in self.validator.iter_errors(value) {
            self.explain(&error, &mut findings);
        }
        findings
    }

    fn explain(&self, error: &ValidationError<'_>, findings: &mut Vec<Finding>) {
        let pointer = error.instance_path().to_string();
        let found = describe(&pointer, error.instance());
        let expected = match error.kind() {
            Kind::AdditionalProperties { unexpected } => {
                findings.extend(unexpected.iter().map(|key| self.unknown_key(&pointer, key)));
                return;
            }
            Kind::AnyOf { context } | Kind::OneOfNotValid { context } => {
                match fitting_branch(context, &pointer) {
                    Some(branch) => branch.iter().for_each(|error| self.explain(error, findings)),
                    None => {
                        let expected = wanted_types(context);
                        findings.push(type_finding(&pointer, error.instance(), found, &expected));
                    }
                }
                return;
            }
            Kind::Type { kind } => {
                findings.push(type_finding(&pointer, error.instance(), found, &type_words(kind)));
                return;
            }
            Kind::Enum { options } => {
                let words: Vec<&str> = options.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
                let near = error.instance().as_str().and_then(|text| suggest::nearest(text, words.iter().copied()));
                let finding = Finding::rule(&pointer, found, format!("one of {}", words.join(", ")));
                findings.push(match near {
                    Some(near) => finding.hint(format!("did you mean {near}?")),
                    None => finding,
                });
                return;
            }
            Kind::Minimum { limit } => format!("a number not below {limit}"),
            Kind::Maximum { limit } => format!("a number not above {limit}"),
            Kind::MinLength { .. } => "a text that is not empty".to_owned(),
            Kind::Pattern { pattern } => pattern_words(pattern),
            Kind::Required { property } => format!("the key {} in it", property.as_str().unwrap_or_default()),
            other => format!("what the schema's {} allows", other.keyword()),
        };
        findings.push(Finding::rule(&pointer, found, expected));
    }

    fn unknown_key(&self, parent: &str, key: &str) -> Finding {
        let pointer = format!("{parent}/{}", escape(key));
        let mut known = suggest::at(&self.schema, parent).map(suggest::properties).unwrap_or_default();
        known.retain(|key| !key.starts_with('$'));
        let hint = suggest::for_key(&self.schema, parent, key);
        let expected = match (known.len(), &hint) {
            (0, _) => "no such key".to_owned(),
            // A long list hides the way out.
            (7.., Some(_)) => "a known one".to_owned(),
            _ => format!("one of {}", known.join(", ")),
        };
        Finding { pointer, unknown: true, found: "a key that is not known".to_owned(), expected, hint }
    }
}

/// The branch that was meant: one whose errors are not about the value's own type; the deepest of them.
fn fitting_branch<'a>(
    context: &'a [Vec<ValidationError<'static>>],
    pointer: &str,
) -> Option<&'a [ValidationError<'static>]> {
    let depth = |errors: &[ValidationError<'static>]| {
        errors.iter().map(|error| error.instance_path().to_string().len()).max().unwrap_or_default()
    };
    let misses = |error: &ValidationError<'static>| {
        matches!(error.kind(), Kind::Type { .. } | Kind::Constant { .. })
            && error.instance_path().to_string() == pointer
    };
    let fitting = context.iter().filter(|errors| !errors.iter().any(misses));
    fitting.max_by_key(|errors| depth(errors)).map(Vec::as_slice)
}

fn wanted_types(context: &[Vec<ValidationError<'static>>]) -> String {
    let mut words = Vec::new();
    for error in context.iter().flatten() {
        if let Kind::Type { kind } = error.kind() {
            words.push(type_words(kind));
        }
    }
    words.dedup();
    words.join(" or ")
}

fn type_finding(pointer: &str, instance: &Value, found: String, expected: &str) -> Finding {
    let finding = Finding::rule(pointer, found, expected);
    let text = instance.as_str().unwrap_or_default();
    let lowered = text.to_lowercase();
    let hint = match instance {
        Value::String(_) if expected.contains("true or false") => match lowered.as_str() {
            "true" | "yes" | "on" => Some("write true, without quotes".to_owned()),
            "false" | "no" | "off" => Some("write false, without quotes".to_owned()),
            _ => None,
        },
        Value::String(_) if expected.contains("number") && text.parse::<i64>().is_ok() => {
            Some(format!("write {text}, without quotes"))
        }
        Value::Number(_) | Value::Bool(_) if expected.contains("text") => Some("put it in quotes".to_owned()),
        Value::String(_) if expected == "a list" => Some("write it as a list: [one, another]".to_owned()),
        Value::Null => Some("give it a value, or leave the key out".to_owned()),
        _ => None,
    };
    match hint {
        Some(hint) => finding.hint(hint),
        None => finding,
    }
}

fn type_words(kind: &TypeKind) -> String {
    let words = |kind: &str| match kind {
        "boolean" => "true or false",
        "integer" => "a whole number",
        "number" => "a number",
        "string" => "a text",
        "array" => "a list",
        "object" => "a mapping",
        _ => "nothing",
    };
    match kind {
        TypeKind::Single(kind) => words(kind.as_str()).to_owned(),
        TypeKind::Multiple(kinds) => kinds.iter().map(|kind| words(kind.as_str())).collect::<Vec<_>>().join(" or "),
    }
}

fn pattern_words(pattern: &str) -> String {
    let known = [
        (r"^[a-z0-9][a-z0-9-]{0,39}$", "a name of at most 40 of a-z, 0-9 and -, not beginning with -"),
        (r"^(\*|https?://[^/\s?#]+)$", "an exact origin such as https://board.example, without a path"),
        (r"^https?://[^\s?#]+$", "a URL that begins with http:// or https://"),
    ];
    if ENV_PATTERNS.contains(&pattern) {
        return "the name of an environment variable, never a value".to_owned();
    }
    if pattern.contains("A-Za-z0-9_.-]+/[") {
        return "a repository as owner/name or host/owner/name".to_owned();
    }
    let words = known.iter().find(|(known, _)| *known == pattern).map(|(_, words)| (*words).to_owned());
    words.unwrap_or_else(|| format!("a text that matches {pattern}"))
}
