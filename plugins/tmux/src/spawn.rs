//! Starting a process under a name (TMX-4).

use the_loop_plugin_api::{RunnerHandle, SpawnOrder, runner::SpawnError};

use crate::{
    address::{Address, all},
    client::{Answer, Failure, Server, Tmux},
    facts::{INCARNATION, says_ended},
    look::{Look, Row, look},
    process,
    quote::{Sequence, format_literal, shell_word, timed_format_literal, tmux_word},
    scope,
};

/// Large enough that an agent lays out its screen as it would for a person.
const SIZE: [&str; 4] = ["-x", "200", "-y", "50"];

/// Asked of the new session: its pane, and that the settings took.
const CREATED: &str = "#{pid}|#{session_id}|#{pane_id}|#{pane_pid}|#{socket_path}";
const SETTINGS: &str = "settings|#{pane_id}|#{pane_pipe}|#{remain-on-exit}|#{pane_in_mode}";

/// Starts a process. `attach` spells the command with which a person looks at an occupant.
pub(crate) async fn spawn(
    tmux: &Tmux,
    order: &SpawnOrder,
    attach: impl Fn() -> String,
) -> Result<RunnerHandle, SpawnError> {
    check(order).await?;
    remove_mark(order).await?;
    let server_runs = clear(tmux, order.name(), &attach).await?;
    if let Some(handle) = create(tmux, order, server_runs).await?.done() {
        return Ok(handle);
    }
    // Someone was faster, or the server went away under us: look and decide again, once.
    let server_runs = clear(tmux, order.name(), &attach).await?;
    match create(tmux, order, server_runs).await? {
        Creation::Done(handle) => Ok(handle),
        Creation::Taken => Err(SpawnError::Occupied { name: order.name().to_owned(), attach: attach() }),
        Creation::ServerEnded(reason) => Err(SpawnError::Silent { reason }),
    }
}

async fn check(order: &SpawnOrder) -> Result<(), SpawnError> {
    let name = order.name();
    // `.` and `:` are rewritten by some versions of tmux and refused by others (TMX-1); `=`, `$`, `@` and `%` mean something.
    if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_') {
        let reason = format!("{name:?} cannot be the name of a tmux session: use letters, digits, - and _");
        return Err(SpawnError::Failed { reason });
    }
    if order.command().is_empty() {
        return Err(SpawnError::Failed { reason: format!("there is no command to start in {name}") });
    }
    // tmux itself would start in the home folder instead, without a word.
    match tokio::fs::metadata(order.cwd()).await {
        Ok(found) if found.is_dir() => Ok(()),
        _ => Err(SpawnError::NoFolder { path: order.cwd().to_owned() }),
    }
}

async fn remove_mark(order: &SpawnOrder) -> Result<(), SpawnError> {
    match tokio::fs::remove_file(order.mark()).await {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            let reason = format!("the old mark {} could not be removed: {error}", order.mark().display());
            Err(SpawnError::Failed { reason })
        }
        _ => Ok(()),
    }
}

/// Makes the name free, if only the dead hold it, and says whether a server runs.
async fn clear(tmux: &Tmux, name: &str, attach: &impl Fn() -> String) -> Result<bool, SpawnError> {
    let occupied = || SpawnError::Occupied { name: name.to_owned(), attach: attach() };
    let rows = match look(tmux, Server::Configured).await {
        Look::Silent(reason) => return Err(SpawnError::Silent { reason }),
        Look::NoServer => return Ok(false),
        Look::Panes(rows) => rows,
    };
    let holders: Vec<&Row> = rows.iter().filter(|row| row.name == name).collect();
    let Some(holder) = holders.first() else { return Ok(true) };
    if holders.iter().any(|row| !row.facts.dead) {
        return Err(occupied());
    }
    // The condition is tmux's own, in the moment of clearing: someone may have respawned the pane.
    let session = &holder.facts.session_id;
    let target = format!("{session}:.{}", holder.facts.pane_id);
    let kill = format!("kill-session -t '{session}'");
    let sequence = Sequence::default().then(["if-shell", "-F", "-t", &target, "#{pane_dead}", &kill, ""]);
    tmux.ask(Server::Configured, sequence).await.map_err(silent)?;
    match look(tmux, Server::Configured).await {
        Look::Silent(reason) => Err(SpawnError::Silent { reason }),
        Look::NoServer => Ok(false),
        Look::Panes(rows) if rows.iter().any(|row| row.name == name) => Err(occupied()),
        Look::Panes(_) => Ok(true),
    }
}

enum Creation {
    Done(RunnerHandle),
    /// tmux says `duplicate session`.
    Taken,
    /// The server went away under us; what tmux said.
    ServerEnded(String),
}

impl Creation {
    fn done(self) -> Option<RunnerHandle> {
        match self {
            Self::Done(handle) => Some(handle),
            Self::Taken | Self::ServerEnded(_) => None,
        }
    }
}

async fn create(tmux: &Tmux, order: &SpawnOrder, server_runs: bool) -> Result<Creation, SpawnError> {
    let answer = start(tmux, creation(order), server_runs).await.map_err(|failure| match silent(failure) {
        SpawnError::Silent { reason } => {
            let reason = format!("{reason}; should tmux come back, it may start {} after all", order.name());
            SpawnError::Silent { reason }
        }
        other => other,
    })?;
    let Some(address) = read_created(&answer.text(), order) else {
        if answer.stderr.contains("duplicate session") {
            return Ok(Creation::Taken);
        }
        if says_ended(&answer.stderr) {
            return Ok(Creation::ServerEnded(answer.stderr));
        }
        let reason = format!("tmux did not start {}: {}", order.name(), answer.stderr);
        return Err(SpawnError::Failed { reason });
    };
    settle(tmux, order, &address, &answer.text()).await?;
    let address = with_start(address).await;
    let data = serde_json::to_value(&address).map_err(|error| SpawnError::Failed { reason: error.to_string() })?;
    Ok(Creation::Done(RunnerHandle {
        runner: "tmux".to_owned(),
        name: order.name().to_owned(),
        incarnation: order.incarnation(),
        data,
    }))
}

/// Everything in one sequence, so that the watcher sees the first byte of the terminal.
fn creation(order: &SpawnOrder) -> Sequence {
    let cwd = format_literal(&order.cwd().to_string_lossy());
    let mut new = vec!["new-session", "-d", "-s", order.name(), "-c", &cwd, "-P", "-F", CREATED];
    new.extend(SIZE);
    new.push("--");
    // tmux hands a single word to the user's shell; two it runs as they are.
    if order.command().len() == 1 {
        new.push("env");
    }
    new.extend(order.command().iter().map(String::as_str));
    let here = format!("={}:", order.name());
    // A hook of the user's (`after-new-session`) runs in between and can have put another pane in front of ours. Then the
    // settings wait for the pane's id: on another pane they would watch a stranger.
    let alone = all(&["#{==:#{window_panes},1}".to_owned(), "#{==:#{session_windows},1}".to_owned()]);
    let settings = settings(order, &here).join(" ; ");
    Sequence::default().then(new).then(["if-shell", "-F", "-t", &here, &alone, &settings]).then([
        "list-panes",
        "-s",
        "-t",
        &here,
        "-F",
        SETTINGS,
    ])
}

/// The commands that make a pane one of ours: it outlives its process, a person's leaving does not end it, its output is
/// watched, and no mode takes its input (a mistake in the user's configuration is shown in one).
fn settings(order: &SpawnOrder, pane: &str) -> [String; 5] {
    [
        format!("set-option -p -t '{pane}' {INCARNATION} {}", order.incarnation()),
        format!("set-option -t '{pane}' destroy-unattached off"),
        format!("set-option -p -t '{pane}' remain-on-exit on"),
        format!("pipe-pane -t '{pane}' {}", tmux_word(&watch(order))),
        format!("copy-mode -q -t '{pane}'"),
    ]
}

fn watch(order: &SpawnOrder) -> String {
    let words: Vec<String> = order.watch().iter().map(|word| shell_word(word)).collect();
    timed_format_literal(&format!("exec {}", words.join(" ")))
}

/// Runs the creation; where it starts a server under systemd, in a scope of its own (TMX-8).
async fn start(tmux: &Tmux, sequence: Sequence, server_runs: bool) -> Result<Answer, Failure> {
    let scope = if server_runs { None } else { scope::prefix(tmux.options()) };
    let mut tmux_words = tmux.prefix(Server::Configured);
    tmux_words.extend(sequence.into_args());
    if let Some(mut words) = scope {
        words.extend(tmux_words.iter().cloned());
        let bus = tmux.options().bus.as_deref().map(|bus| ("DBUS_SESSION_BUS_ADDRESS", bus));
        let answer = tmux.ask_words(&words, bus.as_slice()).await?;
        if answer.success || !answer.stdout.is_empty() || answer.stderr.contains("duplicate session") {
            return Ok(answer);
        }
        tracing::warn!(
            problem = answer.stderr,
            "systemd-run refused, so the tmux server is started inside the host's own service and ends with it; \
             start a tmux server before the host, or set KillMode=process in its unit"
        );
    }
    tmux.ask_words(&tmux_words, &[]).await
}

fn silent(failure: Failure) -> SpawnError {
    match failure {
        Failure::Missing { .. } => SpawnError::Failed { reason: failure.to_string() },
        Failure::Silent { .. } | Failure::Io { .. } => SpawnError::Silent { reason: failure.to_string() },
    }
}

fn read_created(text: &str, order: &SpawnOrder) -> Option<Address> {
    text.lines().find_map(|line| {
        let mut parts = line.splitn(5, '|');
        let mut next = || parts.next();
        Some(Address {
            server_pid: next()?.parse().ok()?,
            session_id: next()?.to_owned(),
            pane_id: next()?.to_owned(),
            pane_pid: next()?.parse().ok()?,
            pane_started: None,
            socket: next()?.to_owned(),
            mark: Some(order.mark().to_owned()),
        })
    })
}

/// Sees that the settings reached our pane, and makes them by its id where they did not.
async fn settle(tmux: &Tmux, order: &SpawnOrder, address: &Address, report: &str) -> Result<(), SpawnError> {
    let pane = address.target();
    if report.lines().any(|line| line == format!("settings|{}|1|on|0", address.pane_id)) {
        return Ok(());
    }
    let commands = settings(order, &pane).join(" ; ");
    let sequence = Sequence::default().then(["if-shell", "-F", "1", &commands]);
    let answer = tmux.ask(Server::At(&address.socket), sequence).await.map_err(silent)?;
    if answer.success {
        return Ok(());
    }
    // A pane that is not watched never takes a text, and one that does not stay never tells why it ended.
    let kill = Sequence::default().then(["kill-session", "-t", &address.session_id]);
    let cleared = tmux.ask(Server::At(&address.socket), kill).await.is_ok_and(|answer| answer.success);
    let left = if cleared { "" } else { "; it may still run" };
    let reason = format!("tmux could not watch the new session {}: {}{left}", order.name(), answer.stderr);
    Err(SpawnError::Failed { reason })
}

async fn with_start(mut address: Address) -> Address {
    let pid = address.pane_pid;
    let found = tokio::task::spawn_blocking(move || process::find(pid)).await;
    address.pane_started = found.ok().flatten().map(|process| process.started);
    address
}
