//! `the-loop hook`: run by a harness's hook inside a session, with the payload on standard input (HAR-2). It hands the
//! payload to the host within a bounded time or spools it, and always succeeds: an agent must never fail because of it.

use std::{io::Read, path::PathBuf, process::ExitCode, time::Duration};

use http::Method;

use super::client;
use crate::{
    hooks::{self, MAX_PAYLOAD},
    state,
};

/// How long the host may take to answer before the payload is spooled.
const HAND_OVER: Duration = Duration::from_millis(250);

pub(super) fn run() -> ExitCode {
    if let Some(problem) = hand_over() {
        // The harness may show it to whoever debugs its hooks.
        super::output::note(format_args!("the-loop hook: {problem}"));
    }
    ExitCode::SUCCESS
}

/// What stood in the way, if anything did.
fn hand_over() -> Option<String> {
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let root = PathBuf::from(variable("THE_LOOP_STATE_ROOT"));
    if root.as_os_str().is_empty() {
        return Some("THE_LOOP_STATE_ROOT is not set: this is no session of the-loop".to_owned());
    }
    let mut bytes = Vec::new();
    let read = std::io::stdin().take(MAX_PAYLOAD as u64 + 1).read_to_end(&mut bytes);
    if let Err(error) = read {
        return Some(format!("the payload cannot be read: {error}"));
    }
    if bytes.len() > MAX_PAYLOAD {
        return Some(format!("the payload is over {MAX_PAYLOAD} bytes"));
    }
    let hook = match hooks::payload(&variable("THE_LOOP_INCARNATION"), &bytes) {
        Ok(hook) => hook,
        Err(problem) => return Some(problem),
    };
    let handed = super::block_on(async {
        let body = serde_json::to_value(&hook).unwrap_or_default();
        let socket = state::find_socket(&root);
        let sent = async {
            match &socket {
                Some(socket) => client::send(socket, Method::POST, "/hook", Some(&body), "hook").await.ok(),
                None => None,
            }
        };
        Ok(tokio::time::timeout(HAND_OVER, sent).await.ok().flatten())
    });
    match handed {
        Ok(Some(answer)) if answer.status.is_success() => None,
        _ => hooks::spool(&root.join("local/spool"), &hook).err().map(|error| format!("not spooled: {error}")),
    }
}
