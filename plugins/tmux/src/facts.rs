//! What tmux says of panes and clients, in lines that a program can read.

/// Asked of a pane, by every command that looks at one.
pub(crate) const PANE: &str = "pane|#{pid}|#{session_id}|#{window_id}|#{pane_id}|#{pane_pid}|#{pane_dead}|#{pane_in_mode}|#{pane_input_off}|#{window_activity}";

/// The pane option that names the spawn that a pane is, so that a host that died right after a spawn finds it again.
pub(crate) const INCARNATION: &str = "@the-loop-incarnation";

/// Asked of a client.
pub(crate) const CLIENT: &str =
    "client|#{client_readonly}|#{client_activity}|#{session_id}|#{window_id}|#{client_name}";

/// One pane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PaneFacts {
    pub(crate) server_pid: u32,
    pub(crate) session_id: String,
    pub(crate) window_id: String,
    pub(crate) pane_id: String,
    pub(crate) pane_pid: u32,
    /// Its process has exited.
    pub(crate) dead: bool,
    /// It is in copy mode or another mode that takes its input.
    pub(crate) in_mode: bool,
    /// A person switched its input off; tmux drops a paste without a word.
    pub(crate) input_off: bool,
    /// The second of its window's last output.
    pub(crate) activity: i64,
}

impl PaneFacts {
    /// Reads a line of [`PANE`], and what follows it after a further `|`.
    pub(crate) fn read(line: &str) -> Option<(Self, &str)> {
        let mut parts = line.strip_prefix("pane|")?.splitn(10, '|');
        let mut next = || parts.next();
        let facts = Self {
            server_pid: next()?.parse().ok()?,
            session_id: next()?.to_owned(),
            window_id: next()?.to_owned(),
            pane_id: next()?.to_owned(),
            pane_pid: next()?.parse().ok()?,
            dead: flag(next()?)?,
            in_mode: flag(next()?)?,
            input_off: flag(next()?)?,
            activity: next()?.parse().ok()?,
        };
        Some((facts, next().unwrap_or_default()))
    }
}

/// One client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClientFacts {
    pub(crate) read_only: bool,
    /// The second of its last key.
    pub(crate) activity: i64,
    pub(crate) session_id: String,
    pub(crate) window_id: String,
    pub(crate) name: String,
}

impl ClientFacts {
    /// Reads a line of [`CLIENT`].
    pub(crate) fn read(line: &str) -> Option<Self> {
        let mut parts = line.strip_prefix("client|")?.splitn(5, '|');
        let mut next = || parts.next();
        Some(Self {
            read_only: flag(next()?)?,
            activity: next()?.parse().ok()?,
            session_id: next()?.to_owned(),
            window_id: next()?.to_owned(),
            name: next()?.to_owned(),
        })
    }
}

/// A flag or a count, of which only "none" and "some" matter.
fn flag(text: &str) -> Option<bool> {
    match text {
        "" => Some(false),
        _ => text.parse::<u32>().ok().map(|n| n > 0),
    }
}

/// Whether tmux said that there is no server, which is an answer (TMX-3).
pub(crate) fn says_no_server(stderr: &str) -> bool {
    stderr.contains("no server running")
        || (stderr.contains("error connecting to") && stderr.contains("No such file or directory"))
}

/// Whether the server ended while it was asked.
pub(crate) fn says_ended(stderr: &str) -> bool {
    ["server exited", "lost server"].iter().any(|words| stderr.contains(words))
}

/// Whether the server has no session at all: it is about to end, or was told to stay without.
pub(crate) fn says_empty(stderr: &str) -> bool {
    stderr.contains("no current target")
}

/// Whether tmux said that a target does not exist, which is an answer.
pub(crate) fn says_no_target(stderr: &str) -> bool {
    says_empty(stderr)
        || ["can't find session", "can't find window", "can't find pane"].iter().any(|words| stderr.contains(words))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_read_back_and_anything_else_is_refused() {
        let line = "pane|12|$3|@4|%5|678|0|2||1796092202|/tmp/s|a|b";
        let (facts, rest) = PaneFacts::read(line).unwrap();
        assert_eq!((facts.server_pid, facts.pane_id.as_str(), facts.pane_pid), (12, "%5", 678));
        assert!(!facts.dead && facts.in_mode && !facts.input_off);
        assert_eq!(rest, "/tmp/s|a|b");
        assert_eq!(PaneFacts::read("pane|x|$3|@4|%5|678|0|2||1796092202"), None);
        assert_eq!(PaneFacts::read("held"), None);
        let client = ClientFacts::read("client|1|1796092202|$3|@4|/dev/pts/3").unwrap();
        assert!(client.read_only && client.name == "/dev/pts/3");
    }
}
