//! An agent that ends by itself right after its start, such as one without a login: a start that failed, although a process
//! was there.

use std::{path::PathBuf, sync::Arc, time::Duration};

use the_loop_plugin_api::{IncarnationId, WorkItemRef};
use tokio::time::Instant;

use super::core::Core;
use crate::{
    eventlog::{Event, EventType, Level},
    launcher::{self, LaunchStatus},
    state::SessionStatus,
};

/// An end within this time tells of the start.
const EARLY: Duration = Duration::from_secs(5);
const LOOK_AGAIN: Duration = Duration::from_millis(100);
/// How a program ends that SIGTERM ended, where it says so itself.
const TERMINATED: i32 = 128 + 15;

/// Looks after a start for a while, aside, so that nothing waits for it.
pub(super) fn watch(core: &Arc<Core>, item: &WorkItemRef, incarnation: IncarnationId, status: PathBuf) {
    let (shared, item) = (Arc::clone(core), item.clone());
    core.tasks.spawn(async move {
        let stop = shared.stop.clone();
        tokio::select! {
            () = stop.cancelled() => {}
            ended = early_end(&status) => if let Some(ended) = ended {
                tell(&shared, &item, incarnation, &ended);
            }
        }
    });
}

async fn early_end(status: &std::path::Path) -> Option<LaunchStatus> {
    let deadline = Instant::now() + EARLY;
    while Instant::now() < deadline {
        // A status that is being written reads as none yet.
        let ended = launcher::read_status(status).ok().flatten().filter(|status| status.exited_at.is_some());
        if ended.is_some() {
            return ended.filter(is_failure);
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
    None
}

/// One that a person or the host ended did not fail.
fn is_failure(status: &LaunchStatus) -> bool {
    status.code.is_some_and(|code| code != 0 && code != TERMINATED)
}

fn tell(core: &Core, item: &WorkItemRef, incarnation: IncarnationId, ended: &LaunchStatus) {
    let record = core.registry.session(item);
    let Some(record) = record.filter(|record| record.incarnation == Some(incarnation)) else { return };
    if !matches!(record.status, SessionStatus::Starting | SessionStatus::Active | SessionStatus::Paused) {
        return;
    }
    let error = format!(
        "the agent ended right after its start, with exit status {}; its terminal shows its last words (`the-loop sessions \
         attach --work-item {item}`); mend that and start the session again",
        ended.code.unwrap_or_default()
    );
    core.log.emit(
        Event::new(EventType::SessionSpawnFailed)
            .with("work_item", item)
            .with("harness", &record.harness)
            .with_some("harness_session_id", record.harness_session_id.as_deref())
            .with("tmux_target", &record.tmux_target)
            .with("error", error)
            .with("will_retry", false)
            .level(Level::Error),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(code: Option<i32>, signal: Option<i32>) -> LaunchStatus {
        let at = jiff::Timestamp::UNIX_EPOCH;
        LaunchStatus { pid: Some(7), started_at: at, exited_at: Some(at), code, signal, problem: None }
    }

    #[test]
    fn tmx_6_only_an_agent_that_ends_by_itself_with_a_failure_is_told_of() {
        assert!(is_failure(&ended(Some(1), None)) && is_failure(&ended(Some(126), None)));
        for end in [ended(Some(0), None), ended(Some(143), None), ended(None, Some(15)), ended(None, Some(9))] {
            assert!(!is_failure(&end), "{end:?}");
        }
    }
}
