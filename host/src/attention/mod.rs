//! What waits for a person (ATT-1): one function, which the command line, REST and an embedding program all read (ATT-3).

mod board;

pub(crate) use self::board::look;
pub use self::board::{Board, GivenUp, Open, OpenQuestion};

use std::collections::HashMap;

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use the_loop_plugin_api::{HarnessState, WorkItemRef};

use crate::{
    TheLoop,
    db::{DeliveryFilter, DeliveryRow, Receipt},
    sessions::operations::Look,
    state::{SessionRecord, SessionStatus},
};

/// How long a text may wait before a person is told of it, where its bound is longer.
const HELD_FOR: SignedDuration = SignedDuration::from_secs(30);
/// How long a text in doubt is shown.
const DOUBTED_FOR: SignedDuration = SignedDuration::from_hours(24);
/// How many of the newest texts are looked at.
const LOOKED_AT: u32 = 500;

/// Why something waits for a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// An agent asked a question.
    AwaitingInput,
    /// An agent shows a permission prompt.
    AwaitingPermission,
    /// A session that should run does not.
    SessionDead,
    /// A session could not be brought up and is not tried again.
    CrashLoop,
    /// A text has waited for long.
    DeliveryHeld,
    /// A text was given up.
    DeliveryFailed,
    /// Nobody knows whether a text arrived.
    DeliveryUncertain,
    /// Something of the host that should run does not.
    DaemonMisconfigured,
}

/// Something that waits for a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AttentionRow {
    /// The item, or `standing:<name>`; empty for the host itself.
    pub work_item: String,
    /// Why it waits.
    pub kind: Kind,
    /// What it waits for, in words: the question, the permission, the reason. May be an agent's own text.
    pub detail: String,
    /// Since when, as far as that is known.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub since: Option<Timestamp>,
    /// Where a person can answer or act: `ticket`, `cli`, `api`, `terminal`.
    pub surfaces: Vec<&'static str>,
    /// The question's id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub question_id: Option<String>,
    /// Answers to choose from.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<String>,
    /// What the agent does if nobody answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    /// Where the question's comment is.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub comment_url: String,
    /// The text's id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delivery_id: Option<String>,
}

impl AttentionRow {
    fn new(work_item: impl Into<String>, kind: Kind, detail: impl Into<String>, since: Option<Timestamp>) -> Self {
        Self {
            work_item: work_item.into(),
            kind,
            detail: detail.into(),
            since,
            surfaces: vec!["cli", "api"],
            question_id: None,
            choices: Vec::new(),
            default: None,
            comment_url: String::new(),
            delivery_id: None,
        }
    }
}

impl TheLoop {
    /// What waits for a person, newest first (ATT-1).
    ///
    /// # Errors
    /// When the event log cannot be read: an empty answer would say that nobody waits.
    pub async fn attention(&self) -> Result<Vec<AttentionRow>, String> {
        let core = &self.core;
        core.log.flush().await;
        look(&core.board, core.config.current().event_log_path()).await?;
        let mut rows: Vec<AttentionRow> = core.board.questions().into_iter().map(|open| self.asked(open)).collect();
        rows.extend(core.board.given_up().into_iter().map(|(item, given_up)| {
            let detail = format!("it could not be started and is not tried again: {}", given_up.error);
            AttentionRow::new(item, Kind::CrashLoop, detail, given_up.since)
        }));
        self.sessions_in_need(&mut rows).await;
        self.texts_in_need(&mut rows).await;
        let status = self.status().await;
        rows.extend(status.services.iter().filter(|row| row.enabled && !row.running).map(|row| {
            AttentionRow::new("", Kind::DaemonMisconfigured, format!("{}: {}", row.name, row.detail), None)
        }));
        rows.sort_by(|left, right| right.since.cmp(&left.since).then_with(|| left.work_item.cmp(&right.work_item)));
        Ok(rows)
    }

    fn asked(&self, (subject, question): (String, OpenQuestion)) -> AttentionRow {
        let mut row = AttentionRow::new(subject, Kind::AwaitingInput, question.question, question.since);
        let item = row.work_item.parse::<WorkItemRef>();
        if item.is_ok_and(|item| self.core.tracker(&item).is_some()) && !question.comment_url.is_empty() {
            row.surfaces.insert(0, "ticket");
        }
        row.question_id = Some(question.id).filter(|id| !id.is_empty());
        row.choices = question.choices;
        row.default = question.default;
        row.comment_url = question.comment_url;
        row
    }

    /// Sessions whose process is gone although they should run, and those that show a permission prompt.
    async fn sessions_in_need(&self, rows: &mut Vec<AttentionRow>) {
        let running = |record: &SessionRecord| record.status.is_live() && record.runner.is_some();
        let records: Vec<SessionRecord> = self.core.registry.sessions().into_iter().filter(running).collect();
        if records.is_empty() {
            return;
        }
        // A runner that does not answer proves nothing against a session.
        let Some(look) = self.look().await else { return };
        for record in records {
            let item = record.reference.to_string();
            let state = self.observed(&record, Some(&look)).await;
            match state.state {
                HarnessState::AwaitingPermission => {
                    let detail = state.detail.unwrap_or_else(|| "it shows a permission prompt".to_owned());
                    let mut row = AttentionRow::new(item, Kind::AwaitingPermission, detail, Some(state.since));
                    row.surfaces = vec!["terminal"];
                    rows.push(row);
                }
                HarnessState::Gone if record.status != SessionStatus::Paused && is_gone(&record, &look) => {
                    let detail = format!(
                        "its process is gone; the next text for it brings it up again, and so does `the-loop sessions start --work-item {item}`"
                    );
                    rows.push(AttentionRow::new(item, Kind::SessionDead, detail, Some(record.last_event_at)));
                }
                _ => {}
            }
        }
    }

    /// Texts that wait for long, were given up, or are in doubt. One that was given up is done with once a text that was said
    /// after that has arrived: the recovery is to post it again (DEL-7). One in doubt is shown for a day (REL-3), since nothing
    /// that comes later tells whether anybody looked.
    async fn texts_in_need(&self, rows: &mut Vec<AttentionRow>) {
        let filter = DeliveryFilter { target: None, receipt: None, limit: LOOKED_AT };
        let Ok(texts) = self.core.db.deliveries(filter).await else { return };
        let now = self.core.clock.now();
        let mut said_last: HashMap<&str, Timestamp> = HashMap::new();
        // Newest first, so that whatever was said later was seen before.
        for text in &texts {
            if text.receipt.has_arrived() {
                said_last.entry(text.target.as_str()).or_insert(text.created_at);
                continue;
            }
            let Some(kind) = needs_a_person(text, now) else { continue };
            let said = said_last.get(text.target.as_str());
            let is_done_with = match kind {
                Kind::DeliveryFailed => said.is_some_and(|said| *said > text.changed_at),
                Kind::DeliveryUncertain => now.duration_since(text.changed_at) > DOUBTED_FOR,
                _ => false,
            };
            if is_done_with || !self.is_live(&text.target) {
                continue;
            }
            let reason = text.reason.as_deref().unwrap_or("unknown");
            let detail = match kind {
                Kind::DeliveryHeld => format!("a text from {} waits: {reason}", text.source),
                Kind::DeliveryFailed => format!("a text from {} was given up: {reason}; post it again", text.source),
                _ => format!("a text from {} may have arrived: {reason}; look, and post it again if not", text.source),
            };
            let mut row = AttentionRow::new(&text.target, kind, detail, Some(text.changed_at));
            row.surfaces.insert(0, "terminal");
            row.delivery_id = Some(text.id.to_string());
            rows.push(row);
        }
    }

    fn is_live(&self, target: &str) -> bool {
        let session = target.parse().ok().and_then(|item| self.core.registry.session(&item));
        session.is_some_and(|record| record.status.is_live() || record.status == SessionStatus::Starting)
    }
}

fn is_gone(record: &SessionRecord, look: &Look) -> bool {
    look.occupant(record).is_none_or(|occupant| occupant.dead)
}

fn needs_a_person(text: &DeliveryRow, now: Timestamp) -> Option<Kind> {
    match text.receipt {
        Receipt::Queued => {
            let waits = text.reason.is_some() && now.duration_since(text.created_at) > HELD_FOR;
            // A pause is what somebody wanted, and so is routing that is off.
            let wanted = matches!(text.reason.as_deref(), Some("paused" | "routing-off"));
            (waits && !wanted).then_some(Kind::DeliveryHeld)
        }
        // A first prompt that gave way to a newer one, and texts of a session that was ended, need nobody.
        Receipt::Failed => {
            matches!(text.reason.as_deref(), Some("hold-expired" | "submit-unconfirmed" | "session-dead"))
                .then_some(Kind::DeliveryFailed)
        }
        Receipt::Uncertain => Some(Kind::DeliveryUncertain),
        Receipt::Delivered | Receipt::Submitted | Receipt::Answered | Receipt::Unknown => None,
    }
}
