//! Errors as a command line tells them: what was wrong, where, and what to do next (CLI-2).

use std::{error::Error, process::ExitCode};

use super::output::{self, OutputError};
use crate::service::{OpenError, RunError};

/// What an exit code says (CLI-1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Failed,
    Usage,
    Unreachable,
    /// Whoever read the output has seen enough, as `| head` does: nothing failed and nobody is told.
    Unread,
}

/// An error of a verb.
#[derive(Debug)]
pub struct CliError {
    pub(super) kind: Kind,
    text: String,
    /// Nearest first. The library puts causes in `source` and not in the text.
    causes: Vec<String>,
}

impl CliError {
    fn new(kind: Kind, text: impl Into<String>) -> Self {
        Self { kind, text: text.into(), causes: Vec::new() }
    }

    /// It was refused, or it failed.
    pub(super) fn failed(text: impl Into<String>) -> Self {
        Self::new(Kind::Failed, text)
    }

    /// It was asked wrongly.
    pub(super) fn usage(text: impl Into<String>) -> Self {
        Self::new(Kind::Usage, text)
    }

    /// The service does not answer.
    pub(super) fn unreachable(text: impl Into<String>) -> Self {
        Self::new(Kind::Unreachable, text)
    }

    pub(super) fn because(mut self, cause: impl Error) -> Self {
        self.add(&cause);
        self
    }

    fn add(&mut self, cause: &dyn Error) {
        let mut next = Some(cause);
        while let Some(error) = next {
            let text = error.to_string();
            // A transparent wrapper says the same as what it wraps.
            if !self.causes.last().unwrap_or(&self.text).ends_with(&text) {
                self.causes.push(text);
            }
            next = error.source();
        }
    }

    /// One line, with the nearest cause; all causes with `-v`.
    pub(super) fn print(&self, verbose: bool) {
        if self.kind != Kind::Unread {
            output::note(self.told(verbose));
        }
    }

    fn told(&self, verbose: bool) -> String {
        let mut told = format!("the-loop: {}", self.text);
        if verbose {
            self.causes.iter().for_each(|cause| told.push_str(&format!("\n  because: {cause}")));
        } else if let Some(cause) = self.causes.first() {
            told.push_str(&format!(": {cause}"));
        }
        told
    }

    pub(super) fn exit_code(&self) -> ExitCode {
        match self.kind {
            Kind::Unread => ExitCode::SUCCESS,
            Kind::Failed => ExitCode::from(1),
            Kind::Usage => ExitCode::from(2),
            Kind::Unreachable => ExitCode::from(3),
        }
    }
}

impl From<OpenError> for CliError {
    fn from(error: OpenError) -> Self {
        chained(error)
    }
}

impl From<RunError> for CliError {
    fn from(error: RunError) -> Self {
        chained(error)
    }
}

impl From<crate::eventlog::EventLogError> for CliError {
    fn from(error: crate::eventlog::EventLogError) -> Self {
        chained(error)
    }
}

impl From<OutputError> for CliError {
    fn from(OutputError(error): OutputError) -> Self {
        match error.kind() {
            std::io::ErrorKind::BrokenPipe => Self::new(Kind::Unread, "the output is not read any more"),
            _ => Self::failed("the output could not be written").because(error),
        }
    }
}

/// An error of the library with its causes.
pub(super) fn chained(error: impl Error) -> CliError {
    let mut told = CliError::failed(error.to_string());
    if let Some(cause) = error.source() {
        told.add(cause);
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("the disk is full")]
    struct Disk;

    #[derive(Debug, thiserror::Error)]
    #[error("the record cannot be written")]
    struct Record(#[source] Disk);

    #[derive(Debug, thiserror::Error)]
    enum Outer {
        #[error(transparent)]
        Record(#[from] Record),
        #[error("the session cannot be started; free some space")]
        Session(#[source] Record),
    }

    #[test]
    fn cli_2_the_nearest_cause_is_on_the_line_and_v_tells_the_rest() {
        let error = chained(Outer::Session(Record(Disk)));
        assert_eq!(
            error.told(false),
            "the-loop: the session cannot be started; free some space: the record cannot be written"
        );
        assert_eq!(
            error.told(true),
            "the-loop: the session cannot be started; free some space\n  because: the record cannot be written\n  because: the disk is full"
        );
        let wrapped = chained(Outer::from(Record(Disk)));
        assert_eq!(wrapped.told(false), "the-loop: the record cannot be written: the disk is full");
    }
}
