//! What `status` says (API-5).

use serde::Serialize;

use super::TheLoop;
use crate::eventlog::LogHealth;

/// One service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServiceRow {
    /// Its name.
    pub name: String,
    /// Whether the config asks for it.
    pub enabled: bool,
    /// Whether it runs.
    pub running: bool,
    /// The process that runs it.
    pub pid: Option<u32>,
    /// Where it listens.
    pub address: Option<String>,
    /// What else there is to say: what is wrong, first of all.
    pub detail: String,
}

/// The whole of `status`.
#[derive(Clone, Debug, PartialEq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// Whether everything that should run does.
    pub ok: bool,
    /// Whether everything is only recorded as it would be (ADM-6).
    pub shadow: bool,
    /// One row a service.
    pub services: Vec<ServiceRow>,
    /// Standing sessions, with their outcome.
    #[schema(value_type = Vec<Object>)]
    pub standing_sessions: Vec<serde_json::Value>,
    /// Loops, armed and dormant.
    pub loops: Loops,
    /// Events that wait for a decision, and texts that wait for a session (REL-7).
    pub queues: Queues,
    /// What the operator should know.
    pub warnings: Vec<String>,
}

/// Loops, armed and dormant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct Loops {
    /// How many are armed.
    pub armed: u64,
    /// How many are not, by reason.
    #[schema(value_type = Vec<Object>)]
    pub dormant: Vec<serde_json::Value>,
}

/// What waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct Queues {
    /// Events that wait for a decision.
    pub inbox: u64,
    /// Texts and acts that wait for a session.
    pub sessions: usize,
}

impl TheLoop {
    /// How the host is doing.
    pub async fn status(&self) -> Status {
        let loaded = self.core.config.current();
        let mut services = vec![self.service_row()];
        services.extend(self.ingress.rows(&self.core));
        let mut warnings: Vec<String> = loaded.warnings.iter().map(ToString::to_string).collect();
        warnings
            .extend(self.core.config.problem().map(|problem| format!("the config on disk is not in force: {problem}")));
        let harness = &loaded.config.routing.default_harness;
        if self.core.harness(harness).is_none() {
            warnings.push(format!(
                "routing.defaultHarness is {harness:?}, which is not linked: nothing can be started; `the-loop plugins` lists what is"
            ));
        }
        warnings.extend(self.core.registry.damaged().iter().map(|file| match &file.set_aside {
            Some(aside) => format!(
                "{} could not be read ({}) and was set aside as {}",
                file.path.display(),
                file.problem,
                aside.display()
            ),
            None => format!("{} could not be read and is left as it is: {}", file.path.display(), file.problem),
        }));
        let LogHealth { writable, failures, last_error, .. } = self.core.log.health();
        if !writable {
            let error = last_error.unwrap_or_default();
            warnings.push(format!(
                "the event log cannot be written ({failures} records lost): {error}; commands are refused until it can"
            ));
        }
        let db = self.core.db.probe().await;
        if let Err(error) = &db {
            warnings.push(format!(
                "{}: {error}; nothing is taken in and nothing acts until it can be written",
                self.core.root.db().display()
            ));
        }
        match self.core.runner() {
            None => warnings.push("no runner is linked: nothing can be started".to_owned()),
            Some((name, runner)) => {
                let description = runner.describe().await;
                warnings.extend(description.problem.map(|problem| format!("{name}: {problem}")));
            }
        }
        Status {
            ok: db.is_ok() && writable && services.iter().all(|row| row.running || !row.enabled),
            shadow: loaded.config.routing.shadow,
            services,
            standing_sessions: Vec::new(),
            loops: Loops::default(),
            queues: Queues { inbox: self.admission.pending(), sessions: self.core.waiting_in_all() },
            warnings,
        }
    }
}
