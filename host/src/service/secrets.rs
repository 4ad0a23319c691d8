//! Where secrets come from (SEC-4): the environment that the opening was given, and programs that the operator's config
//! names. They are read when they are needed, and neither kept nor shown.

use std::{io, process::Stdio, time::Duration};

use async_trait::async_trait;
use secrecy::SecretString;
use the_loop_plugin_api::context::SecretSource;
use tokio::process::Command;

/// How long a program may take.
const ASKING: Duration = Duration::from_secs(10);
/// The longest secret, in bytes: what is longer is something else.
const LONGEST: usize = 16 * 1024;

/// The host's environment, in which programs are found and run.
pub(super) struct Secrets(pub(super) Vec<(String, String)>);

#[async_trait]
impl SecretSource for Secrets {
    fn read(&self, name: &str) -> Option<SecretString> {
        let found = self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
        found.filter(|value| !value.is_empty()).map(SecretString::from)
    }

    async fn ask(&self, program: &str, arguments: &[&str]) -> Result<Option<SecretString>, String> {
        let mut command = Command::new(program);
        command.args(arguments).env_clear().envs(self.0.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
        let output = match tokio::time::timeout(ASKING, command.output()).await {
            Ok(Ok(output)) => output,
            Ok(Err(error)) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Ok(Err(error)) => return Err(format!("{program} could not be run: {error}")),
            Err(_) => return Err(format!("{program} did not end within {} s", ASKING.as_secs())),
        };
        if !output.status.success() {
            return Err(format!("{program} {} failed ({})", arguments.join(" "), output.status));
        }
        let printed = String::from_utf8(output.stdout).ok().map(SecretString::from);
        let fits = |secret: &SecretString| {
            let text = secrecy::ExposeSecret::expose_secret(secret).trim();
            !text.is_empty() && text.len() <= LONGEST && !text.contains(['\n', '\r'])
        };
        let secret =
            printed.filter(fits).ok_or_else(|| format!("{program} {} printed no secret", arguments.join(" ")))?;
        Ok(Some(SecretString::from(secrecy::ExposeSecret::expose_secret(&secret).trim())))
    }
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret as _;

    use super::*;

    #[tokio::test]
    async fn sec_4_a_program_gives_its_one_line_and_nothing_of_it_is_told_when_it_fails() {
        let path = std::env::var("PATH").unwrap();
        let secrets = Secrets(vec![("PATH".to_owned(), path), ("ONE".to_owned(), "canary".to_owned())]);
        let asked = async |script: &str| secrets.ask("sh", &["-c", script]).await;
        assert_eq!(asked("echo \" $ONE \"").await.unwrap().unwrap().expose_secret(), "canary");
        for script in ["echo canary; exit 3", "echo canary >&2; exit 1", "true", "printf 'canary\\ncanary\\n'"] {
            let error = asked(script).await.unwrap_err();
            assert!(error.starts_with("sh -c") && !error.replace(script, "").contains("canary"), "{error}");
        }
        assert!(secrets.ask("no-such-program", &[]).await.unwrap().is_none());
        assert!(secrets.read("ONE").is_some() && secrets.read("TWO").is_none());
    }
}
