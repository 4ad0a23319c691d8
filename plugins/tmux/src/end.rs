//! Ending an agent and removing its terminal (TMX-5). Signals go to processes of that session's own terminal only, each
//! checked to be still the one that it was.

use std::{collections::HashSet, time::Duration};

use nix::sys::signal::Signal;
use the_loop_plugin_api::{
    RunnerHandle, Termination,
    runner::{RunnerError, Terminated},
};
use tokio::time::{Instant, sleep_until};

use crate::{
    address::Address,
    client::{Server, Tmux},
    facts::{PANE, PaneFacts, says_no_server, says_no_target},
    process::{self, Process},
    quote::Sequence,
};

/// How often the system is asked whether a process has ended.
const LOOK_AGAIN: Duration = Duration::from_millis(20);
/// How long the pane's own process, which records how the agent ended, may take after it.
const RECORD: Duration = Duration::from_secs(2);

/// Asks the agent to end, and ends what is left by force after the grace.
pub(crate) async fn terminate(
    tmux: &Tmux,
    handle: &RunnerHandle,
    order: &Termination,
) -> Result<Terminated, RunnerError> {
    let Ok(address) = Address::of(handle) else { return Ok(Terminated::AlreadyGone) };
    let (unknown, nothing) = match facts(tmux, handle, &address).await? {
        Some(facts) if !address.is(&facts) => {
            (address.pane_started.is_none(), Err(RunnerError::NotOurs { name: handle.name.clone() }))
        }
        Some(facts) => (facts.dead, Ok(Terminated::AlreadyGone)),
        None => (address.pane_started.is_none(), Ok(Terminated::AlreadyGone)),
    };
    // An agent can outlive its tmux server. The pane's process is then known by its id and the time of its start.
    if unknown {
        return nothing;
    }
    match Family::of(&address).await {
        Some(family) => Ok(family.end(order.grace()).await),
        None => nothing,
    }
}

/// Removes the session with all that is in it.
pub(crate) async fn kill(tmux: &Tmux, handle: &RunnerHandle, order: &Termination) -> Result<(), RunnerError> {
    // Agents are known that live on after their terminal is gone, so they are ended first.
    terminate(tmux, handle, order).await?;
    let Ok(address) = Address::of(handle) else { return Ok(()) };
    let session = &address.session_id;
    let ours = format!("#{{==:#{{pid}},{}}}", address.server_pid);
    let here = format!("{session}:");
    let (kill, refuse) = (format!("kill-session -t '{session}'"), format!("list-panes -t '{here}' -F not-ours"));
    let sequence = Sequence::default().then(["if-shell", "-F", "-t", &here, &ours, &kill, &refuse]);
    let answer = tmux.ask(Server::At(&address.socket), sequence).await.map_err(|failure| silent(&failure))?;
    if answer.text().contains("not-ours") {
        return Err(RunnerError::NotOurs { name: handle.name.clone() });
    }
    if answer.success || says_no_server(&answer.stderr) || says_no_target(&answer.stderr) {
        return Ok(());
    }
    // The last session takes the server with it, which can end before it has answered.
    match facts(tmux, handle, &address).await? {
        Some(_) => Err(RunnerError::Silent { reason: answer.stderr }),
        None => Ok(()),
    }
}

/// How the handle's pane is; `None` when tmux says that it is not there.
async fn facts(tmux: &Tmux, handle: &RunnerHandle, address: &Address) -> Result<Option<PaneFacts>, RunnerError> {
    let sequence = Sequence::default().then(["list-panes", "-t", &address.target(), "-f", &address.only(), "-F", PANE]);
    let answer = tmux.query(Server::At(&address.socket), &sequence).await.map_err(|failure| silent(&failure))?;
    if says_no_server(&answer.stderr) || says_no_target(&answer.stderr) {
        return Ok(None);
    }
    let found = answer.text().lines().find_map(|line| PaneFacts::read(line).map(|(facts, _)| facts));
    match found {
        Some(facts) => Ok(Some(facts)),
        None => {
            let reason = format!("tmux did not tell how session {} is: {}", handle.name, answer.stderr);
            Err(RunnerError::Silent { reason })
        }
    }
}

fn silent(failure: &crate::client::Failure) -> RunnerError {
    RunnerError::Silent { reason: failure.to_string() }
}

/// The processes of a pane.
struct Family {
    /// The pane's own process: the launcher, which writes down how the agent ended.
    leader: Process,
    /// The agent; the leader itself where there is no launcher.
    agent: Process,
}

impl Family {
    async fn of(address: &Address) -> Option<Self> {
        let (pid, started) = (address.pane_pid, address.pane_started.clone());
        blocking(move || {
            let leader = process::find(pid)?;
            // The number may have come round to a stranger.
            if started.is_some_and(|started| started != leader.started) {
                return None;
            }
            let agent = process::agent(pid)?;
            Some(Self { leader, agent })
        })
        .await
        .flatten()
    }

    async fn end(&self, grace: Duration) -> Terminated {
        let deadline = Instant::now() + grace;
        let agent = self.agent.clone();
        blocking(move || {
            process::signal(&agent, Signal::SIGTERM);
            // A stopped process takes note only when it goes on.
            process::signal(&agent, Signal::SIGCONT);
        })
        .await;
        let graceful = gone_by(std::slice::from_ref(&self.agent), deadline).await;
        // What the agent left behind in its terminal has the rest of the grace.
        let rest = self.others().await;
        if !gone_by(&rest, deadline).await {
            force(self.others().await).await;
        }
        let leader = [self.leader.clone()];
        if !gone_by(&leader, Instant::now() + RECORD).await {
            force(leader.to_vec()).await;
            gone_by(&leader, Instant::now() + RECORD).await;
        }
        if graceful { Terminated::Gracefully } else { Terminated::Forced }
    }

    /// Everything in the terminal's session but its leader; the agent even where it is the leader.
    async fn others(&self) -> Vec<Process> {
        let (session, leader, agent) = (self.leader.session.clone(), self.leader.pid, self.agent.clone());
        let mut found = blocking(move || {
            let in_session = |process: &Process| process.session == session && process.pid != leader;
            process::all().into_iter().filter(in_session).collect::<Vec<_>>()
        })
        .await
        .unwrap_or_default();
        let listed: HashSet<u32> = found.iter().map(|process| process.pid).collect();
        if !listed.contains(&agent.pid) {
            found.push(agent);
        }
        found
    }
}

async fn force(processes: Vec<Process>) {
    blocking(move || {
        for process in &processes {
            process::signal(process, Signal::SIGKILL);
        }
    })
    .await;
}

/// Waits until none of the processes runs; `false` when the deadline came first.
async fn gone_by(processes: &[Process], deadline: Instant) -> bool {
    loop {
        let waiting = processes.to_vec();
        if blocking(move || !waiting.iter().any(process::runs)).await == Some(true) {
            return true;
        }
        if Instant::now() >= deadline {
            return false;
        }
        sleep_until((Instant::now() + LOOK_AGAIN).min(deadline)).await;
    }
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    tokio::task::spawn_blocking(work).await.ok()
}
