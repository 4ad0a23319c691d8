//! The file in which a process of Claude Code says what it does.

use std::path::Path;

use jiff::Timestamp;
use serde::Deserialize;
use the_loop_plugin_api::{
    HarnessState,
    signal::{Evidence, ObservedState},
};

/// What is read of it; it has more.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct StateFile {
    status: String,
    #[serde(default)]
    waiting_for: Option<String>,
    #[serde(default)]
    status_updated_at: Option<At>,
}

/// A time as one version or another writes it.
#[derive(Deserialize)]
#[serde(untagged)]
enum At {
    Millis(i64),
    Text(Timestamp),
}

/// What the file of a process that lives says. It is removed at a clean end and left behind by a kill, so that of a process
/// that is gone says nothing.
pub(crate) fn read(file: &Path, pid: u32) -> Option<ObservedState> {
    let bytes = std::fs::read(file).ok()?;
    if !lives(pid) {
        return None;
    }
    let found: StateFile = serde_json::from_slice(&bytes).ok()?;
    let state = match found.status.as_str() {
        "idle" => HarnessState::Idle,
        "busy" => HarnessState::Busy,
        // Whatever it waits for, a return would answer it.
        "waiting" => HarnessState::AwaitingPermission,
        _ => HarnessState::Unknown,
    };
    let since = match found.status_updated_at {
        Some(At::Millis(millis)) => Timestamp::from_millisecond(millis).ok(),
        Some(At::Text(at)) => Some(at),
        None => None,
    };
    let written = || std::fs::metadata(file).ok()?.modified().ok().and_then(|at| Timestamp::try_from(at).ok());
    Some(ObservedState {
        state,
        evidence: Evidence::StateFile,
        since: since.or_else(written).unwrap_or_else(Timestamp::now),
        detail: found.waiting_for,
    })
}

fn lives(pid: u32) -> bool {
    i32::try_from(pid).is_ok_and(|pid| nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), None).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ses_3_the_state_file_of_a_living_process_speaks() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("7.json");
        let own = std::process::id();
        let says = |content: &str, pid| {
            std::fs::write(&file, content).unwrap();
            read(&file, pid).map(|state| (state.state, state.detail))
        };
        let at = r#""statusUpdatedAt": 1764583200000, "more": {"x": 1}"#;
        assert_eq!(says(&format!(r#"{{"status": "idle", {at}}}"#), own), Some((HarnessState::Idle, None)));
        assert_eq!(says(&format!(r#"{{"status": "busy", {at}}}"#), own), Some((HarnessState::Busy, None)));
        let waits = format!(r#"{{"status": "waiting", "waitingFor": "permission prompt", {at}}}"#);
        let asks = Some((HarnessState::AwaitingPermission, Some("permission prompt".to_owned())));
        assert_eq!(says(&waits, own), asks);
        assert_eq!(says(r#"{"status": "pondering"}"#, own), Some((HarnessState::Unknown, None)), "never idle on doubt");
        assert_eq!(says(r#"{"status": "id"#, own), None, "a torn file says nothing");
        assert_eq!(says(&waits, u32::MAX), None, "a process that is gone says nothing");
        assert_eq!(
            says(r#"{"status": "idle", "statusUpdatedAt": "2026-11-30T10:00:00Z"}"#, own).map(|s| s.0),
            Some(HarnessState::Idle)
        );
        std::fs::remove_file(&file).unwrap();
        assert_eq!(read(&file, own), None);
    }
}
