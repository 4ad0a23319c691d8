//! [`TmuxRunner`]: the parts put together.

use async_trait::async_trait;
use the_loop_plugin_api::{
    Delivery, Liveness, Runner, RunnerHandle, SpawnOrder, Termination,
    delivery::DeliveryOutcome,
    runner::{CaptureOptions, Occupant, RunnerDescription, RunnerError, Screen, SpawnError, Terminated},
};

use crate::{
    address::Address,
    client::{Server, Tmux},
    deliver, end,
    look::{self, Look},
    memory::Panes,
    options::TmuxOptions,
    process, scope, screen, spawn,
};

/// Hosts programs in tmux panes.
pub struct TmuxRunner {
    tmux: Tmux,
    panes: Panes,
}

impl TmuxRunner {
    /// A runner; it starts nothing by itself.
    #[must_use]
    pub fn new(options: TmuxOptions) -> Self {
        Self { tmux: Tmux::new(options), panes: Panes::default() }
    }

    /// What is wrong with tmux here, and what to do.
    async fn problem(&self) -> Option<String> {
        match look::look(&self.tmux, Server::Configured).await {
            Look::Silent(reason) => Some(reason),
            Look::NoServer if self.tmux.options().under_systemd && scope::prefix(self.tmux.options()).is_none() => Some(
                "the host is a systemd service and systemd-run is not in PATH: a tmux server that it starts ends with \
                     it; start a tmux server before the host, or set KillMode=process in its unit"
                    .to_owned(),
            ),
            Look::NoServer | Look::Panes(_) => None,
        }
    }
}

#[async_trait]
impl Runner for TmuxRunner {
    async fn describe(&self) -> RunnerDescription {
        let words = [self.tmux.options().program.to_string_lossy().into_owned(), "-V".to_owned()];
        let (version, problem) = match self.tmux.ask_words(&words, &[]).await {
            Ok(answer) => {
                let version = answer.text().trim().trim_start_matches("tmux ").to_owned();
                let problem = if is_too_old(&version) {
                    Some(format!("tmux {version} is too old; install tmux 3.2 or newer"))
                } else {
                    self.problem().await
                };
                (Some(version), problem)
            }
            Err(failure) => (None, Some(failure.to_string())),
        };
        RunnerDescription { version, address: self.tmux.options().socket_path().display().to_string(), problem }
    }

    async fn survey(&self) -> Option<Vec<Occupant>> {
        look::survey(&self.tmux).await
    }

    async fn probe(&self, name: &str, handle: Option<&RunnerHandle>) -> Liveness {
        look::probe(&self.tmux, name, handle).await
    }

    async fn spawn(&self, order: &SpawnOrder) -> Result<RunnerHandle, SpawnError> {
        spawn::spawn(&self.tmux, order, || self.attach(order.name(), true).join(" ")).await
    }

    async fn deliver(&self, handle: &RunnerHandle, delivery: &Delivery) -> DeliveryOutcome {
        deliver::deliver(&self.tmux, &self.panes, handle, delivery).await
    }

    async fn capture(&self, handle: &RunnerHandle, options: CaptureOptions) -> Result<Screen, RunnerError> {
        screen::capture(&self.tmux, handle, options).await
    }

    async fn terminate(&self, handle: &RunnerHandle, order: &Termination) -> Result<Terminated, RunnerError> {
        end::terminate(&self.tmux, handle, order).await
    }

    async fn kill(&self, handle: &RunnerHandle, order: &Termination) -> Result<(), RunnerError> {
        end::kill(&self.tmux, handle, order).await?;
        if let Ok(address) = Address::of(handle) {
            self.panes.forget(&address);
        }
        Ok(())
    }

    fn agent_pid(&self, handle: &RunnerHandle) -> Option<u32> {
        let address = Address::of(handle).ok()?;
        let leader = process::find(address.pane_pid)?;
        let same = address.pane_started.as_ref().is_none_or(|started| *started == leader.started);
        same.then(|| process::agent(address.pane_pid)).flatten().map(|agent| agent.pid)
    }

    fn attach(&self, name: &str, read_only: bool) -> Vec<String> {
        let mut words = vec!["tmux".to_owned()];
        if !self.tmux.options().socket_name.is_empty() {
            words.extend(["-L".to_owned(), self.tmux.options().socket_name.clone()]);
        }
        words.push("attach".to_owned());
        if read_only {
            words.push("-r".to_owned());
        }
        words.extend(["-t".to_owned(), format!("={name}")]);
        words
    }
}

/// Whether a version (`3.3a`, `next-3.7`, `master`) lacks what the runner asks of tmux: filters of lists came with 3.2.
fn is_too_old(version: &str) -> bool {
    let number: String = version.chars().filter(|c| c.is_ascii_digit() || *c == '.').collect();
    let parts: Option<Vec<u32>> = number.split('.').map(|part| part.parse().ok()).collect();
    parts.is_some_and(|parts| parts.as_slice() < [3, 2].as_slice())
}
