//! What can be wrong with a config, in words that name file, line, path, what was found and what was expected (CFG-2).

use std::{
    fmt, io,
    path::{Path, PathBuf},
};

use serde_json::Value;

use super::yaml::{Position, unescape};

/// Why there is no config to run with.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("the config {path} cannot be read; check that it exists and is yours, or name another with --config", path = .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The file is no config.
    #[error("the config {path} has more than {limit} bytes; that is no config of the-loop", path = .path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The limit.
        limit: u64,
    },
    /// The file is not UTF-8.
    #[error("{path}:{line}: the config is not UTF-8; save it as UTF-8", path = .path.display())]
    NotUtf8 {
        /// The file.
        path: PathBuf,
        /// The line with the first byte that is not.
        line: u64,
    },
    /// The file is not YAML.
    #[error("{}: not valid YAML: {what}", Where(.path, *.position))]
    Syntax {
        /// The file.
        path: PathBuf,
        /// Where the parser stopped, if it says so.
        position: Option<Position>,
        /// The parser's words.
        what: String,
    },
    /// The file is YAML and not a config.
    #[error("{}", Listed(.path, .problems))]
    Invalid {
        /// The file.
        path: PathBuf,
        /// All that is wrong, in the order of the file.
        problems: Vec<Problem>,
    },
    /// The schema itself cannot be used: a plugin's fragment is wrong.
    #[error("the config schema is not valid at {pointer}: {what}; a plugin of this build describes its config wrongly")]
    Schema {
        /// Where.
        pointer: String,
        /// What the validator says.
        what: String,
    },
}

/// One thing that is wrong with a config.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Where it stands, if it stands anywhere.
    pub position: Option<Position>,
    /// The key, as in `routing.authorizedUsers[0]`; empty for the whole file.
    pub key: String,
    /// What was found.
    pub found: String,
    /// What was expected.
    pub expected: String,
    /// What to do, such as the nearest key.
    pub hint: Option<String>,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = if self.key.is_empty() { "the config" } else { &self.key };
        write!(f, "{key}: found {}, expected {}", self.found, self.expected)?;
        self.hint.as_ref().map_or(Ok(()), |hint| write!(f, "; {hint}"))
    }
}

/// Something that does not stop a start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// Where it stands.
    pub position: Option<Position>,
    /// The key.
    pub key: String,
    /// What it is, and what happens instead.
    pub what: String,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.position {
            Some(at) => write!(f, "line {}: {}: {}", at.line, self.key, self.what),
            None => write!(f, "{}: {}", self.key, self.what),
        }
    }
}

struct Where<'a>(&'a Path, Option<Position>);

impl fmt::Display for Where<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.display())?;
        self.1.map_or(Ok(()), |at| write!(f, ":{}:{}", at.line, at.column))
    }
}

struct Listed<'a>(&'a Path, &'a [Problem]);

impl fmt::Display for Listed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.1.iter().enumerate() {
            let end = if index == 0 { "" } else { "\n" };
            write!(f, "{end}{}: {problem}", Where(self.0, problem.position))?;
        }
        Ok(())
    }
}

/// A JSON pointer as people write keys: `routing.authorizedUsers[0]`.
pub(super) fn dotted(pointer: &str) -> String {
    let mut key = String::new();
    for token in pointer.split('/').skip(1) {
        if !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_digit()) {
            key.push_str(&format!("[{token}]"));
        } else {
            if !key.is_empty() {
                key.push('.');
            }
            key.push_str(&printable(&unescape(token)));
        }
    }
    key
}

/// A text without control characters, which a terminal would obey.
pub(super) fn printable(text: &str) -> String {
    text.chars().flat_map(|c| if c.is_control() { c.escape_default().collect() } else { vec![c] }).collect()
}

/// A value as an error shows it: short, on one line, and never one that may be a secret.
pub(super) fn describe(pointer: &str, value: &Value) -> String {
    /// Longer values are cut.
    const SHOWN: usize = 60;
    let leaf = pointer.split('/').rfind(|token| token.bytes().any(|byte| !byte.is_ascii_digit())).unwrap_or_default();
    match value {
        Value::Null => "nothing".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Number(value) => format!("the number {value}"),
        Value::String(text) if leaf.ends_with("Env") || leaf == "sessionPassthrough" || looks_secret(text) => {
            format!("a text of {} characters, not shown since it may be a secret", text.chars().count())
        }
        Value::String(text) if text.chars().count() > SHOWN => {
            let start: String = text.chars().take(SHOWN).collect();
            format!("the text {start:?}…")
        }
        Value::String(text) => format!("the text {text:?}"),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "a mapping".to_owned(),
    }
}

/// Whether a text has the shape of a known kind of token.
pub(super) fn looks_secret(text: &str) -> bool {
    const PREFIXES: &[&str] =
        &["ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "xoxb-", "xoxp-", "xapp-", "sk-"];
    text.len() >= 16 && PREFIXES.iter().any(|prefix| text.starts_with(prefix))
}
