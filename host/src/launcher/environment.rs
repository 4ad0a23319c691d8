//! What an agent's environment holds (TMX-7).

use std::collections::BTreeMap;

use the_loop_plugin_api::environment::is_inherited;

/// Variables that tmux sets for the terminal that the agent is in; a plan never overrides them.
pub(super) const TERMINAL: [&str; 3] = ["TERM", "TMUX", "TMUX_PANE"];

/// The whole environment of a session: the allow-list of the host's own, what `env.sessionPassthrough` adds from it, what the
/// harness declares, and the host's own `THE_LOOP_*`; later ones win. A variable that a `…Env` key of the config names never
/// passes, whoever asks for it.
pub fn session_environment(
    host: impl IntoIterator<Item = (String, String)>,
    declared: &BTreeMap<String, String>,
    passthrough: &[String],
    secret_names: &[String],
    own: &BTreeMap<String, String>,
) -> BTreeMap<String, String> {
    let mut environment: BTreeMap<String, String> =
        host.into_iter().filter(|(name, _)| is_inherited(name) || passthrough.contains(name)).collect();
    environment.extend(declared.clone());
    environment.extend(own.clone());
    environment.retain(|name, _| !secret_names.contains(name) && !TERMINAL.contains(&name.as_str()));
    environment
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn tmx_7_secrets_and_a_surrounding_agent_never_pass() {
        let host = map(&[
            ("PATH", "/bin"),
            ("GITHUB_TOKEN", "secret"),
            ("HOOK_SECRET", "secret"),
            ("CLAUDECODE", "1"),
            ("THE_LOOP_SESSION", "of the surrounding one"),
            ("TMUX", "/surrounding"),
            ("WANTED", "yes"),
        ]);
        let names = ["HOOK_SECRET".to_owned()];
        let passthrough = ["WANTED".to_owned(), "HOOK_SECRET".to_owned(), "TMUX".to_owned()];
        let declared = map(&[("AGENT_HOME", "/a"), ("HOOK_SECRET", "again"), ("PATH", "/agent/bin")]);
        let own = map(&[("THE_LOOP_SESSION", "own")]);
        let environment = session_environment(host, &declared, &passthrough, &names, &own);
        let expected =
            map(&[("AGENT_HOME", "/a"), ("PATH", "/agent/bin"), ("THE_LOOP_SESSION", "own"), ("WANTED", "yes")]);
        assert_eq!(environment, expected);
    }
}
