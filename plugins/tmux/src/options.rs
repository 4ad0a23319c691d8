//! What the runner needs to know of the world.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    path::PathBuf,
    time::Duration,
};

use the_loop_plugin_api::environment::is_inherited;

/// How the runner reaches tmux. Not `Debug`: proxy variables can hold a password.
#[derive(Clone)]
pub struct TmuxOptions {
    /// The program. Without a `/` it is looked up in the `PATH` of [`TmuxOptions::environment`].
    pub program: PathBuf,
    /// The socket's name, as in `tmux -L NAME`; empty for the user's default server (TMX-12).
    pub socket_name: String,
    /// The whole environment that tmux gets. The server keeps its starter's environment for all its later sessions, so it
    /// holds nothing but the allow-list (TMX-7) and `TMUX_TMPDIR`.
    pub environment: BTreeMap<OsString, OsString>,
    /// Whether the host is a systemd service, whose stop would end a tmux server that was started in it (TMX-8).
    pub under_systemd: bool,
    /// The message bus of the user's systemd, which only `systemd-run` is told.
    pub bus: Option<OsString>,
    /// How long tmux may take to answer.
    pub patience: Duration,
    /// How long a person's client must have been idle before a text is pasted (DEL-5).
    pub client_idle: Duration,
}

impl TmuxOptions {
    /// Options from the variables of the host's environment. A surrounding `$TMUX` is ignored (TMX-12).
    pub fn new(socket_name: String, variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        let variables: BTreeMap<OsString, OsString> = variables.into_iter().collect();
        let under_systemd = variables.contains_key(OsStr::new("INVOCATION_ID"));
        let bus = variables.get(OsStr::new("DBUS_SESSION_BUS_ADDRESS")).cloned();
        let environment = variables
            .into_iter()
            .filter(|(name, _)| name.to_str().is_some_and(|name| name == "TMUX_TMPDIR" || is_inherited(name)))
            .collect();
        Self {
            program: PathBuf::from("tmux"),
            socket_name,
            environment,
            under_systemd,
            bus,
            patience: Duration::from_secs(5),
            client_idle: Duration::from_secs(15),
        }
    }

    /// Options from this process's environment.
    #[must_use]
    pub fn from_environment(socket_name: String) -> Self {
        Self::new(socket_name, std::env::vars_os())
    }

    /// The socket that tmux will use, by its own rule; for people to read.
    pub(crate) fn socket_path(&self) -> PathBuf {
        let folder =
            self.environment.get(OsStr::new("TMUX_TMPDIR")).map_or_else(|| PathBuf::from("/tmp"), PathBuf::from);
        let name = if self.socket_name.is_empty() { "default" } else { &self.socket_name };
        folder.join(format!("tmux-{}", nix::unistd::getuid())).join(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tmx_7_tmux_starts_with_the_allow_list_only() {
        let variables = [
            ("PATH", "/bin"),
            ("TMUX", "/x,1,0"),
            ("GITHUB_TOKEN", "s"),
            ("TMUX_TMPDIR", "/t"),
            ("INVOCATION_ID", "i"),
        ]
        .map(|(name, value)| (OsString::from(name), OsString::from(value)));
        let options = TmuxOptions::new("x".to_owned(), variables);
        let names: Vec<_> = options.environment.keys().map(|name| name.to_string_lossy().into_owned()).collect();
        assert_eq!(names, ["PATH", "TMUX_TMPDIR"]);
        assert!(options.under_systemd);
        assert!(options.socket_path().starts_with("/t"));
    }
}
