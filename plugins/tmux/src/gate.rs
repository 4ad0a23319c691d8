//! The runner's own gates: what must hold before a byte is written (DEL-5). The harness's gate is the host's.

use std::time::Duration;

use the_loop_plugin_api::delivery::{HoldReason, Readiness};

use crate::{
    address::Address,
    facts::{ClientFacts, PaneFacts},
    memory::Pane,
    process,
};

/// What tmux says: is it our pane, does it take input, is a person at it?
pub(crate) fn judge(
    address: &Address,
    pane: &Pane,
    facts: &PaneFacts,
    clients: &[ClientFacts],
    client_idle: Duration,
) -> Result<(), Verdict> {
    if !address.is(facts) {
        return Err(Verdict::Gone(
            "another pane has its address: the tmux server or the process is a new one".to_owned(),
        ));
    }
    if facts.dead {
        return Err(Verdict::Gone("its process has exited".to_owned()));
    }
    if facts.in_mode {
        return Err(Verdict::Hold(HoldReason::CopyMode));
    }
    if facts.input_off {
        return Err(Verdict::Hold(HoldReason::NotReady));
    }
    let may_type = |client: &&ClientFacts| {
        !client.read_only && (client.session_id == facts.session_id || client.window_id == facts.window_id)
    };
    if clients.iter().filter(may_type).any(|client| pane.age(&client.name, client.activity) < client_idle) {
        return Err(Verdict::Hold(HoldReason::ClientActive));
    }
    Ok(())
}

/// What a runner's gate says against writing.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Hold(HoldReason),
    Gone(String),
}

/// What the system says: bracketed paste is on, and for a harness without signals, the agent has the terminal and its screen
/// is quiet. Looks at files, so it runs off the async threads.
pub(crate) async fn look(
    address: &Address,
    pane: &Pane,
    facts: &PaneFacts,
    readiness: Readiness,
) -> Result<(), HoldReason> {
    let quiet = match readiness {
        Readiness::Signals => true,
        Readiness::Screen { quiet_for } => {
            pane.is_own_echo(facts.activity) || pane.age("output", facts.activity) >= quiet_for
        }
    };
    let (mark, pane_pid) = (address.mark.clone(), address.pane_pid);
    let needs_terminal = matches!(readiness, Readiness::Screen { .. });
    let looked = tokio::task::spawn_blocking(move || {
        let bracketed = mark.is_some_and(|mark| mark.exists());
        let foreground =
            !needs_terminal || process::agent(pane_pid).is_some_and(|agent| agent.group == agent.foreground);
        (bracketed, foreground)
    });
    // The task can only fail when the runtime stops, and then nothing is to be written.
    match looked.await.unwrap_or((false, false)) {
        (false, _) => Err(HoldReason::NotReady),
        (true, false) => Err(HoldReason::NotForeground),
        (true, true) if !quiet => Err(HoldReason::ScreenBusy),
        (true, true) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::time::{SystemTime, UNIX_EPOCH};

    use super::*;

    fn address() -> Address {
        Address {
            socket: "/s".to_owned(),
            server_pid: 1,
            session_id: "$3".to_owned(),
            pane_id: "%5".to_owned(),
            pane_pid: 2,
            pane_started: None,
            mark: None,
        }
    }

    fn facts() -> PaneFacts {
        PaneFacts::read("pane|1|$3|@4|%5|2|0|0|0|0").unwrap().0
    }

    #[test]
    fn del_5_a_recent_client_holds_only_where_it_may_type() {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        let judged = |read_only: u8, ago: u64, session: &str, window: &str| {
            let line = format!("client|{read_only}|{}|{session}|{window}|tty", now - ago);
            let clients = [ClientFacts::read(&line).unwrap()];
            judge(&address(), &Pane::default(), &facts(), &clients, Duration::from_secs(15))
        };
        let held = Err(Verdict::Hold(HoldReason::ClientActive));
        assert_eq!(judged(0, 5, "$3", "@4"), held);
        assert_eq!(judged(0, 5, "$9", "@4"), held, "a grouped session shows the same window");
        assert_eq!(judged(1, 5, "$3", "@4"), Ok(()), "a read-only client cannot type");
        assert_eq!(judged(0, 5, "$9", "@9"), Ok(()), "it looks at something else");
        assert_eq!(judged(0, 17, "$3", "@4"), Ok(()), "it was idle for long enough");
    }

    #[test]
    fn tmx_12_ids_of_another_server_or_process_are_not_ours() {
        for line in ["pane|9|$3|@4|%5|2|0|0|0|0", "pane|1|$3|@4|%5|9|0|0|0|0", "pane|1|$3|@4|%5|2|1|0|0|0"] {
            let facts = PaneFacts::read(line).unwrap().0;
            let judged = judge(&address(), &Pane::default(), &facts, &[], Duration::ZERO);
            assert!(matches!(judged, Err(Verdict::Gone(_))), "{line}");
        }
    }
}
