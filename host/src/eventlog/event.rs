//! One record on its way into the log.

use std::{fmt, str::FromStr};

use jiff::Timestamp;
use serde::Serialize;

use super::EventType;

/// How much a record matters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// For finding faults.
    Debug,
    /// The usual course of things.
    #[default]
    Info,
    /// Something to know about; work goes on.
    Warning,
    /// Something failed.
    Error,
}

/// A text that is no [`Level`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{found:?} is not a level; use debug, info, warning or error")]
pub struct LevelError {
    found: String,
}

impl Level {
    /// As it stands in a record.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Level {
    type Err = LevelError;

    fn from_str(text: &str) -> Result<Self, LevelError> {
        match text {
            "debug" => Ok(Self::Debug),
            "info" => Ok(Self::Info),
            "warning" => Ok(Self::Warning),
            "error" => Ok(Self::Error),
            _ => Err(LevelError { found: text.to_owned() }),
        }
    }
}

/// One record to append (EVT-1). Values are serialised when they are added, on the caller's thread, so that the thread
/// that holds the log's lock has nothing left to do but write.
///
/// A field named `source` or `pid` stands in the place of the envelope's own, since a JSON object must not have a key
/// twice and readers know these types by that field (`control.command` says `source: comment`).
#[derive(Clone, Debug)]
pub struct Event {
    kind: EventType,
    level: Level,
    source: Option<String>,
    pid: Option<String>,
    names: Vec<&'static str>,
    body: Vec<u8>,
}

impl Event {
    /// A record of level info without fields.
    #[must_use]
    pub fn new(kind: EventType) -> Self {
        Self { kind, level: Level::default(), source: None, pid: None, names: Vec::new(), body: Vec::new() }
    }

    /// Sets the level.
    #[must_use]
    pub fn level(mut self, level: Level) -> Self {
        self.level = level;
        self
    }

    /// Adds a field. In a debug build a field that the catalog does not list for the type, or that is there already, is
    /// a panic: the catalog is what readers go by (EVT-2).
    #[must_use]
    pub fn with(mut self, field: &'static str, value: impl Serialize) -> Self {
        debug_assert!(self.kind.fields().contains(&field), "{} has no field {field} in the catalog", self.kind.name());
        debug_assert!(!self.names.contains(&field), "{} was given {field} twice", self.kind.name());
        // Only a map whose keys are no texts cannot be serialised; the record is worth more than the one value.
        let json = serde_json::to_string(&value).unwrap_or_else(|_| "null".to_owned());
        self.names.push(field);
        match field {
            "source" => self.source = Some(json),
            "pid" => self.pid = Some(json),
            _ => {
                self.body.extend_from_slice(b",\"");
                self.body.extend_from_slice(field.as_bytes());
                self.body.extend_from_slice(b"\":");
                self.body.extend_from_slice(json.as_bytes());
            }
        }
        self
    }

    /// Adds a field if there is a value for it.
    #[must_use]
    pub fn with_some(self, field: &'static str, value: Option<impl Serialize>) -> Self {
        match value {
            Some(value) => self.with(field, value),
            None => self,
        }
    }

    /// The record without its number, stamped with `at`.
    pub(super) fn stamp(self, at: Timestamp, source: &str, pid: u32) -> Record {
        // Nothing but the catalog's and the level's own plain names need no escaping; a source is a text like any other.
        let source = self.source.unwrap_or_else(|| serde_json::Value::from(source).to_string());
        let pid = self.pid.unwrap_or_else(|| pid.to_string());
        let mut rest = format!(
            ",\"source\":{source},\"event\":\"{}\",\"level\":\"{}\",\"pid\":{pid}",
            self.kind.name(),
            self.level.as_str()
        )
        .into_bytes();
        rest.extend_from_slice(&self.body);
        rest.extend_from_slice(b"}\n");
        Record { head: format!("{{\"ts\":\"{at:.3}\",\"seq\":"), rest }
    }
}

/// A whole line but for its number, which is known only under the lock.
#[derive(Debug)]
pub(super) struct Record {
    head: String,
    rest: Vec<u8>,
}

impl Record {
    /// Writes the line with number `seq` to `line`.
    pub(super) fn render(&self, seq: u64, line: &mut Vec<u8>) {
        line.extend_from_slice(self.head.as_bytes());
        line.extend_from_slice(seq.to_string().as_bytes());
        line.extend_from_slice(&self.rest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evt_1_a_record_is_the_envelope_then_its_fields() -> anyhow::Result<()> {
        let event = Event::new(EventType::ControlCommand)
            .level(Level::Warning)
            .with("work_item", "github:octo/hello#1")
            .with("source", "comment")
            .with_some("actor", None::<&str>);
        let at: Timestamp = "2026-11-30T10:15:00.1239Z".parse()?;
        let mut line = Vec::new();
        event.stamp(at, "service", 7).render(42, &mut line);
        assert_eq!(
            String::from_utf8(line)?,
            "{\"ts\":\"2026-11-30T10:15:00.123Z\",\"seq\":42,\"source\":\"comment\",\"event\":\"control.command\",\
             \"level\":\"warning\",\"pid\":7,\"work_item\":\"github:octo/hello#1\"}\n"
        );
        Ok(())
    }

    #[test]
    #[should_panic(expected = "has no field colour")]
    fn evt_2_a_field_outside_the_catalog_is_a_bug() {
        let _ = Event::new(EventType::PollCycle).with("colour", 1);
    }

    #[test]
    fn an_unknown_level_is_an_error_that_names_the_values() {
        let problem = "nonsense".parse::<Level>().map_err(|error| error.to_string());
        assert_eq!(problem, Err("\"nonsense\" is not a level; use debug, info, warning or error".to_owned()));
    }
}
