//! What a start of the host makes of what an earlier process left (REL-1, REL-2): no session is doubled, no live agent is
//! killed, and what was asked for is carried out.

use std::sync::Arc;

use the_loop_plugin_api::{RunnerHandle, SessionKey, runner::Occupant};

use super::{core::Core, registry::Phase, spawn};
use crate::{
    admission::{Admission, Command, HostAct, Inbound},
    dispatch::Dispatch,
    state::{SessionRecord, SessionStatus},
};

/// Takes up what an earlier process left.
pub async fn take_up(core: &Arc<Core>, admission: &Admission, dispatch: &Dispatch) {
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
