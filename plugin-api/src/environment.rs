//! Which variables of the host's environment reach a program in a session (TMX-7). One list, since the runner applies it to
//! what it starts and the launcher to what runs inside, and two lists would drift apart.

/// Variables that pass by name.
const NAMES: [&str; 18] = [
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "PATH",
    "LANG",
    "TZ",
    "TMPDIR",
    "SSH_AUTH_SOCK",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "FTP_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
];

/// Variables that pass by how they start.
const PREFIXES: [&str; 2] = ["LC_", "XDG_"];

/// Whether a variable of the host's own environment passes. Everything else, such as a secret of the host or the identity of
/// an agent that the host runs under, stays behind.
#[must_use]
pub fn is_inherited(name: &str) -> bool {
    NAMES.contains(&name) || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::is_inherited;

    #[test]
    fn tmx_7_only_the_allow_list_passes() {
        for name in ["HOME", "PATH", "LC_ALL", "XDG_RUNTIME_DIR", "SSH_AUTH_SOCK", "https_proxy", "NO_PROXY"] {
            assert!(is_inherited(name), "{name}");
        }
        for name in
            ["GITHUB_TOKEN", "CLAUDECODE", "TMUX", "THE_LOOP_TOKEN", "ANTHROPIC_API_KEY", "PATHS", "INVOCATION_ID"]
        {
            assert!(!is_inherited(name), "{name}");
        }
    }
}
