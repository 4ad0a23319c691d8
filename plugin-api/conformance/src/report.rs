//! What a suite found: one finding a requirement, each with the tag of its rule.

use std::fmt;

/// How binding a requirement is, in the words of `docs/plugin-contract.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// The host relies on it.
    Must,
    /// A plugin may have a reason not to; it is shown and fails nothing.
    Should,
}

/// One requirement, and whether it was met.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The rule's tag.
    pub rule: &'static str,
    /// How binding it is.
    pub level: Level,
    /// What is required, in words.
    pub requirement: &'static str,
    /// What was seen instead; `None` when it was met.
    pub problem: Option<String>,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let level = match self.level {
            Level::Must => "MUST",
            Level::Should => "SHOULD",
        };
        write!(f, "[{}] {level} {}", self.rule, self.requirement)?;
        match &self.problem {
            Some(problem) => write!(f, ": {problem}"),
            None => f.write_str(": met"),
        }
    }
}

/// Everything that a suite found about one plugin.
#[derive(Clone, Debug)]
#[must_use = "a report that nobody asserts proves nothing"]
pub struct Report {
    subject: String,
    findings: Vec<Finding>,
}

impl Report {
    /// An empty report about `subject`.
    pub fn new(subject: impl Into<String>) -> Self {
        Self { subject: subject.into(), findings: Vec::new() }
    }

    /// Every finding, in the order in which it was looked for.
    #[must_use]
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// What must hold and does not.
    pub fn failures(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|finding| finding.level == Level::Must && finding.problem.is_some())
    }

    /// The tags of the rules that are broken, sorted, each once.
    #[must_use]
    pub fn broken(&self) -> Vec<&'static str> {
        let mut tags: Vec<_> = self.failures().map(|finding| finding.rule).collect();
        tags.sort_unstable();
        tags.dedup();
        tags
    }

    /// Panics with every broken requirement.
    ///
    /// # Panics
    /// When something that must hold does not, or when nothing was looked at.
    pub fn assert(&self) {
        assert!(!self.findings.is_empty(), "nothing was looked at for {}", self.subject);
        let broken: Vec<String> = self.failures().map(|finding| format!("  {finding}")).collect();
        assert!(
            broken.is_empty(),
            "{} breaks {} of {} requirements of docs/plugin-contract.md:\n{}",
            self.subject,
            broken.len(),
            self.findings.len(),
            broken.join("\n")
        );
    }

    pub(crate) fn must(&mut self, rule: &'static str, requirement: &'static str, met: Result<(), String>) {
        self.findings.push(Finding { rule, level: Level::Must, requirement, problem: met.err() });
    }

    pub(crate) fn should(&mut self, rule: &'static str, requirement: &'static str, met: Result<(), String>) {
        self.findings.push(Finding { rule, level: Level::Should, requirement, problem: met.err() });
    }
}

/// `Ok` when `met`, else the problem.
pub(crate) fn when(met: bool, problem: impl FnOnce() -> String) -> Result<(), String> {
    if met { Ok(()) } else { Err(problem()) }
}

/// `Ok` when both are equal, else both.
pub(crate) fn same<T: PartialEq + fmt::Debug>(found: &T, expected: &T) -> Result<(), String> {
    when(found == expected, || format!("found {found:?}, expected {expected:?}"))
}
