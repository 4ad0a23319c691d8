//! What a start of the host makes of what an earlier process left (REL-1, REL-2): no session is doubled, no live agent is
//! killed, and what was asked for is carried out.

use std::{collections::HashSet, sync::Arc};

use the_loop_plugin_api::{RunnerHandle, SessionKey, runner::Occupant};

use super::{answers, checkouts, core::Core, deliver, registry::Phase, spawn};
use crate::{
    admission::{Admission, Command, HostAct, Inbound},
    db::{DeliveryFilter, DeliveryRow, Receipt},
    dispatch::Dispatch,
    eventlog::{self, Query, TypeGlob},
    state::{SessionRecord, SessionStatus},
};

/// Takes up what an earlier process left.
pub async fn take_up(core: &Arc<Core>, admission: &Admission, dispatch: &Dispatch) {
    checkouts::sweep(core).await;
    let starting: Vec<SessionRecord> =
        core.registry.sessions().into_iter().filter(|record| record.status == SessionStatus::Starting).collect();
    if !starting.is_empty() {
        adopt(core, &starting).await;
    }
    for record in core.registry.sessions() {
        let standing = core.registry.standing(&record.reference);
        let unfinished = record.status == SessionStatus::Starting || record.runner.is_none();
        if unfinished && standing.phase == Phase::Live && standing.control == Some(Command::Start) {
            let act = HostAct::RetryStart { item: record.reference.clone() };
            if let Err(error) = admission.submit(Inbound::Host(act)).await {
                core.warn(&record.reference, format!("an unfinished start could not be queued: {error}"));
            }
        }
    }
    tell_receipts(core).await;
    match core.db.open_deliveries().await {
        Ok(rows) => {
            for row in rows {
                match row.target.parse() {
                    Ok(item) => dispatch.wake(&item),
                    Err(error) => core.warn(row.id, format!("a waiting text names no session: {error}")),
                }
            }
        }
        Err(error) => core.warn("deliveries", format!("waiting texts cannot be read: {error}")),
    }
}

/// How many of the newest receipts are compared with the log. A process that dies leaves at most one of each session
/// untold.
const COMPARED: u32 = 500;

/// Tells the log what a process that died wrote down as a receipt and had no time to tell.
async fn tell_receipts(core: &Arc<Core>) {
    let filter = DeliveryFilter { target: None, receipt: None, limit: COMPARED };
    let rows = match core.db.deliveries(filter).await {
        Ok(rows) => rows,
        Err(error) => return core.warn("deliveries", format!("receipts cannot be compared with the log: {error}")),
    };
    let ended = |row: &&DeliveryRow| row.receipt != Receipt::Queued;
    let Some(oldest) = rows.iter().filter(ended).map(|row| row.created_at).min() else { return };
    let path = core.config.current().event_log_path();
    let types = ["delivery.delivered", "delivery.failed", "delivery.uncertain", "session.reply_sent"];
    let types = types.map(TypeGlob::new).to_vec();
    let told = tokio::task::spawn_blocking(move || {
        eventlog::query(&path, &Query { types, since: Some(oldest), ..Query::default() })
    });
    // A log that cannot be read is told of in `status`; nothing is told twice because of it.
    let Ok(Ok(told)) = told.await else { return };
    let mut receipts: HashSet<&str> = HashSet::new();
    let mut answers: HashSet<&str> = HashSet::new();
    for record in &told.records {
        let set = if record["event"] == "session.reply_sent" { &mut answers } else { &mut receipts };
        set.extend(record["delivery"].as_str());
    }
    for row in rows.iter().filter(ended).rev() {
        let id = row.id.to_string();
        if !receipts.contains(id.as_str()) {
            let evidence = row.history.last().map_or("none", |entry| entry.evidence.as_str());
            core.log.emit(deliver::settled(&row.target, row.id, row.receipt, row.reason.as_deref(), evidence));
        }
        let quoted = row.answer.as_ref().is_some_and(|answer| answer.surface != answers::TICKET);
        if quoted
            && row.receipt.has_arrived()
            && !answers.contains(id.as_str())
            && let Ok(item) = row.target.parse()
        {
            answers::arrived(core, &item, row).await;
        }
    }
}

/// A process that was spawned and not yet put on record is known by its incarnation. A runner that does not answer adopts
/// nothing, and its silence starts nothing either.
async fn adopt(core: &Arc<Core>, starting: &[SessionRecord]) {
    let Some((name, runner)) = core.runner() else { return };
    let Some(occupants) = runner.survey().await else {
        core.warn(name, "the runner did not answer at the start; sessions that were starting are looked at again when something is due");
        return;
    };
    for record in starting {
        let Some(incarnation) = record.incarnation else { continue };
        let target = SessionKey::work_item(record.reference.clone()).terminal_name();
        let ours = |occupant: &&Occupant| {
            occupant.name == target && !occupant.dead && occupant.incarnation == Some(incarnation)
        };
        if let Some(occupant) = occupants.iter().find(ours) {
            let mut data = occupant.data.clone();
            data["mark"] = core.root.launch().join(format!("{incarnation}.ready")).display().to_string().into();
            let handle = RunnerHandle { runner: name.to_owned(), name: target, incarnation, data };
            if let Err(error) = spawn::handled(core, &record.reference, handle).await {
                core.warn(
                    &record.reference,
                    format!("a session that was starting could not be put on record: {error}"),
                );
            }
        }
    }
}
