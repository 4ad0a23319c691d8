//! Errors as a command line tells them: what was wrong, where, and what to do next (CLI-2).

use std::{error::Error, process::ExitCode};

use crate::service::{OpenError, RunError};

/// What an exit code says (CLI-1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Failed,
    Usage,
    Unreachable,
}

/// An error of a verb.
#[derive(Debug)]
pub struct CliError {
    pub(super) kind: Kind,
    text: String,
    cause: Option<Box<dyn Error + Send + Sync>>,
}

impl CliError {
    /// It was refused, or it failed.
    pub(super) fn failed(text: impl Into<String>) -> Self {
        Self { kind: Kind::Failed, text: text.into(), cause: None }
    }

    /// It was asked wrongly.
    pub(super) fn usage(text: impl Into<String>) -> Self {
        Self { kind: Kind::Usage, text: text.into(), cause: None }
    }

    /// The service does not answer.
    pub(super) fn unreachable(text: impl Into<String>) -> Self {
        Self { kind: Kind::Unreachable, text: text.into(), cause: None }
    }

    pub(super) fn because(mut self, cause: impl Error + Send + Sync + 'static) -> Self {
        self.cause = Some(Box::new(cause));
        self
    }

    /// One line, with the nearest cause; all causes with `-v`.
    pub(super) fn print(&self, verbose: bool) {
        let mut line = format!("the-loop: {}", self.text);
        let mut cause: Option<&(dyn Error + 'static)> =
            self.cause.as_deref().map(|cause| cause as &(dyn Error + 'static));
        let mut told = 0;
        while let Some(error) = cause {
            if told == 0 || verbose {
                line.push_str(&format!("{}{error}", if verbose { "\n  because: " } else { ": " }));
            }
            told += 1;
            cause = error.source();
        }
        anstream::eprintln!("{line}");
    }

    pub(super) fn exit_code(&self) -> ExitCode {
        match self.kind {
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

impl From<std::io::Error> for CliError {
    fn from(error: std::io::Error) -> Self {
        Self::failed("the output could not be written").because(error)
    }
}

/// An error of the library with its whole chain: the library puts causes in `source` and not in the text.
pub(super) fn chained(error: impl Error) -> CliError {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let inner_text = inner.to_string();
        // A transparent wrapper says the same as what it wraps.
        if !text.ends_with(&inner_text) {
            text.push_str(&format!(": {inner_text}"));
        }
        cause = inner.source();
    }
    CliError::failed(text)
}
