//! The whole address of a pane (TMX-12), as it stands in records.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use the_loop_plugin_api::RunnerHandle;

use crate::facts::PaneFacts;

/// Where a pane is, and what tells it from another that has its ids: those start again with a new server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Address {
    pub(crate) socket: String,
    pub(crate) server_pid: u32,
    pub(crate) session_id: String,
    pub(crate) pane_id: String,
    pub(crate) pane_pid: u32,
    /// When the pane's process started, in the system's own spelling: a process id comes round again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) pane_started: Option<String>,
    /// The file that says that bracketed paste is on (DEL-5).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) mark: Option<PathBuf>,
}

/// A handle that holds no address of a pane.
#[derive(Debug, thiserror::Error)]
#[error("the record of session {name} does not hold the address of a tmux pane")]
pub(crate) struct AddressError {
    name: String,
}

impl Address {
    /// Reads a handle. Ids are checked: they go into tmux commands.
    pub(crate) fn of(handle: &RunnerHandle) -> Result<Self, AddressError> {
        Self::deserialize(&handle.data)
            .ok()
            .filter(|address| is_id(&address.session_id, '$') && is_id(&address.pane_id, '%'))
            .ok_or_else(|| AddressError { name: handle.name.clone() })
    }

    /// The pane as a target that fails unless the pane is in that very session.
    pub(crate) fn target(&self) -> String {
        format!("{}:.{}", self.session_id, self.pane_id)
    }

    /// A filter that leaves only this pane.
    pub(crate) fn only(&self) -> String {
        format!("#{{==:#{{pane_id}},{}}}", self.pane_id)
    }

    /// A condition that tmux itself evaluates in the moment of acting: the pane is this one, it lives, and it takes input.
    pub(crate) fn takes_input(&self) -> String {
        all(&[
            format!("#{{==:#{{pid}},{}}}", self.server_pid),
            format!("#{{==:#{{session_id}},{}}}", self.session_id),
            format!("#{{==:#{{pane_pid}},{}}}", self.pane_pid),
            "#{==:#{pane_dead},0}".to_owned(),
            "#{==:#{pane_in_mode},0}".to_owned(),
            "#{!=:#{pane_input_off},1}".to_owned(),
        ])
    }

    /// Whether these facts are of this pane.
    pub(crate) fn is(&self, facts: &PaneFacts) -> bool {
        self.is_of(facts) && self.pane_id == facts.pane_id && self.pane_pid == facts.pane_pid
    }

    /// Whether these facts are of a pane in this session. A server never uses a session id twice.
    pub(crate) fn is_of(&self, facts: &PaneFacts) -> bool {
        self.server_pid == facts.server_pid && self.session_id == facts.session_id
    }
}

fn is_id(text: &str, sigil: char) -> bool {
    text.strip_prefix(sigil).is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()))
}

/// A condition that holds when all of `conditions` do; `&&` of tmux before 3.6 takes two.
pub(crate) fn all(conditions: &[String]) -> String {
    match conditions {
        [] => "1".to_owned(),
        [one] => one.clone(),
        [first, rest @ ..] => format!("#{{&&:{first},{}}}", all(rest)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use the_loop_plugin_api::IncarnationId;

    use super::*;

    fn handle(session: &str, pane: &str) -> RunnerHandle {
        RunnerHandle {
            runner: "tmux".to_owned(),
            name: "loop-a".to_owned(),
            incarnation: IncarnationId::generate(),
            data: json!({"socket": "/s", "serverPid": 1, "sessionId": session, "paneId": pane, "panePid": 2}),
        }
    }

    #[test]
    fn tmx_2_only_ids_become_targets() {
        assert_eq!(Address::of(&handle("$3", "%5")).unwrap().target(), "$3:.%5");
        for (session, pane) in [("loop-a", "%5"), ("$3", "%5' ; kill-server"), ("$", "%5"), ("$3", "5")] {
            assert!(Address::of(&handle(session, pane)).is_err(), "{session} {pane}");
        }
    }

    #[test]
    fn conditions_nest() {
        assert_eq!(all(&["a".to_owned(), "b".to_owned(), "c".to_owned()]), "#{&&:a,#{&&:b,c}}");
    }
}
