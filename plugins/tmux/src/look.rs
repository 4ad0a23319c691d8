//! What stands where (TMX-3): one `list-panes -a` for everything (TMX-9).

use the_loop_plugin_api::{IncarnationId, Liveness, RunnerHandle, runner::Occupant};

use crate::{
    address::Address,
    client::{Server, Tmux},
    facts::{INCARNATION, PANE, PaneFacts, says_empty, says_no_server},
    quote::Sequence,
};

/// One pane with the name of its session.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) facts: PaneFacts,
    pub(crate) socket: String,
    pub(crate) name: String,
    incarnation: Option<IncarnationId>,
}

/// What a look at a server found.
#[derive(Debug)]
pub(crate) enum Look {
    /// tmux said that no server runs.
    NoServer,
    /// All its panes.
    Panes(Vec<Row>),
    /// No answer, or none that can be read: that is not "nothing".
    Silent(String),
}

/// Looks at all panes of a server.
pub(crate) async fn look(tmux: &Tmux, server: Server<'_>) -> Look {
    let format = format!("{PANE}|#{{socket_path}}|#{{session_name}}|#{{{INCARNATION}}}");
    let sequence = Sequence::default().then(["list-panes", "-a", "-F", &format]);
    let answer = match tmux.query(server, &sequence).await {
        Ok(answer) => answer,
        Err(failure) => return Look::Silent(failure.to_string()),
    };
    if !answer.success {
        return match answer.stderr {
            complaint if says_empty(&complaint) => Look::Panes(Vec::new()),
            complaint if says_no_server(&complaint) => Look::NoServer,
            complaint => Look::Silent(complaint),
        };
    }
    match answer.text().lines().map(read).collect::<Option<Vec<_>>>() {
        Some(rows) => Look::Panes(rows),
        None => Look::Silent(format!("tmux answered something else than was asked: {:?}", answer.text())),
    }
}

fn read(line: &str) -> Option<Row> {
    let (facts, rest) = PaneFacts::read(line)?;
    let (socket, rest) = rest.split_once('|')?;
    let (name, incarnation) = rest.rsplit_once('|')?;
    Some(Row { facts, socket: socket.to_owned(), name: name.to_owned(), incarnation: incarnation.parse().ok() })
}

/// What stands under `name`, or, where the handle's own session lives on under another name, what became of that.
pub(crate) async fn probe(tmux: &Tmux, name: &str, handle: Option<&RunnerHandle>) -> Liveness {
    let address = handle.and_then(|handle| Address::of(handle).ok());
    let server = address.as_ref().map_or(Server::Configured, |address| Server::At(&address.socket));
    match look(tmux, server).await {
        Look::Silent(reason) => Liveness::Unknown { reason },
        Look::NoServer => Liveness::Absent,
        Look::Panes(rows) => judge(&rows, name, address.as_ref()),
    }
}

fn judge(rows: &[Row], name: &str, address: Option<&Address>) -> Liveness {
    if let Some(row) = address.and_then(|address| rows.iter().find(|row| address.is(&row.facts))) {
        return if row.facts.dead { Liveness::Dead { ours: true } } else { Liveness::Live { ours: true } };
    }
    let mut under_name = rows.iter().filter(|row| row.name == name).peekable();
    if under_name.peek().is_none() {
        Liveness::Absent
    } else if under_name.all(|row| row.facts.dead) {
        Liveness::Dead { ours: false }
    } else {
        Liveness::Live { ours: false }
    }
}

/// Everything on the configured server: an entry a pane, since a person may have split one.
pub(crate) async fn survey(tmux: &Tmux) -> Option<Vec<Occupant>> {
    match look(tmux, Server::Configured).await {
        Look::Silent(_) => None,
        Look::NoServer => Some(Vec::new()),
        Look::Panes(rows) => Some(rows.into_iter().map(occupant).collect()),
    }
}

fn occupant(row: Row) -> Occupant {
    let address = Address {
        socket: row.socket,
        server_pid: row.facts.server_pid,
        session_id: row.facts.session_id,
        pane_id: row.facts.pane_id,
        pane_pid: row.facts.pane_pid,
        pane_started: None,
        mark: None,
    };
    let data = serde_json::to_value(address).unwrap_or_default();
    Occupant { name: row.name, dead: row.facts.dead, incarnation: row.incarnation, data }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(lines: &[&str]) -> Vec<Row> {
        lines.iter().map(|line| read(line).unwrap()).collect()
    }

    #[test]
    fn tmx_3_live_dead_and_absent_are_told_apart() {
        let rows = rows(&[
            "pane|1|$1|@1|%1|11|0|0|0|0|/s|loop-a|",
            "pane|1|$2|@2|%2|12|1|0|0|0|/s|loop-b|",
            "pane|1|$3|@3|%3|13|1|0|0|0|/s|loop-c|",
            "pane|1|$3|@3|%4|14|0|0|0|0|/s|loop-c|",
        ]);
        assert_eq!(judge(&rows, "loop-a", None), Liveness::Live { ours: false });
        assert_eq!(judge(&rows, "loop-b", None), Liveness::Dead { ours: false });
        assert_eq!(judge(&rows, "loop-c", None), Liveness::Live { ours: false });
        assert_eq!(judge(&rows, "loop", None), Liveness::Absent);
    }

    #[test]
    fn tmx_12_a_renamed_session_is_still_ours_and_a_namesake_is_not() {
        let rows = rows(&["pane|1|$1|@1|%1|11|0|0|0|0|/s|renamed|", "pane|1|$2|@2|%2|12|0|0|0|0|/s|loop-a|"]);
        let address = |pane_pid| Address {
            socket: "/s".to_owned(),
            server_pid: 1,
            session_id: "$1".to_owned(),
            pane_id: "%1".to_owned(),
            pane_pid,
            pane_started: None,
            mark: None,
        };
        assert_eq!(judge(&rows, "loop-a", Some(&address(11))), Liveness::Live { ours: true });
        assert_eq!(judge(&rows, "loop-a", Some(&address(99))), Liveness::Live { ours: false });
    }
}
