//! `the-loop init`.

use std::{fs::OpenOptions, io::Write, os::unix::fs::OpenOptionsExt, path::Path, process::ExitCode};

use super::{
    CliError, Context,
    error::chained,
    output::{note, say},
};
use crate::{config, plugins, state};

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  the-loop init && $EDITOR .the-loop/cli-config.yaml")]
pub(super) struct Args {
    /// Also write a systemd user unit and a launchd plist that run the service
    #[arg(long)]
    service: bool,
}

pub(super) fn run(context: &Context, args: &Args) -> Result<ExitCode, CliError> {
    let folder = &context.options.cwd;
    let fragments = plugins::fragments().map_err(chained)?;
    let own = folder.join(config::FOLDER);
    match config::init(folder, &fragments) {
        Ok(path) => {
            state::keep_out_of_git(&own).map_err(chained)?;
            say(format_args!("wrote {}; set routing.authorizedUsers in it before anything else", path.display()))?;
        }
        Err(error @ config::InitError::Exists { .. }) if args.service => note(error),
        Err(error) => return Err(chained(error)),
    }
    if args.service {
        let service = Service {
            program: &context.options.program,
            config: &context.options.config.clone().unwrap_or_else(|| own.join(config::FILE)),
            // A service manager gives a PATH of its own, in which neither tmux nor an agent need be.
            path: context.options.environment.iter().find(|(name, _)| name == "PATH").map_or("", |(_, path)| path),
        };
        let unit = write_new(&own.join("the-loop.service"), &service.systemd_unit());
        let plist = write_new(&own.join("the-loop.plist"), &service.launchd_plist());
        unit.and(plist)?;
        say(
            "systemd: cp .the-loop/the-loop.service ~/.config/systemd/user/ && systemctl --user enable --now the-loop",
        )?;
        say(
            "launchd: cp .the-loop/the-loop.plist ~/Library/LaunchAgents/ && launchctl load ~/Library/LaunchAgents/the-loop.plist",
        )?;
    }
    Ok(ExitCode::SUCCESS)
}

fn write_new(path: &Path, text: &str) -> Result<(), CliError> {
    let created = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    match created.and_then(|mut file| file.write_all(text.as_bytes())) {
        Ok(()) => Ok(say(format_args!("wrote {}", path.display()))?),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            Err(CliError::failed(format!("{} is there already and was left as it is; remove it first", path.display())))
        }
        Err(error) => Err(CliError::failed(format!("{} cannot be written", path.display())).because(error)),
    }
}

/// What a service manager is told.
struct Service<'a> {
    program: &'a Path,
    config: &'a Path,
    path: &'a str,
}

impl Service<'_> {
    /// TMX-8: a restart of the unit ends the host alone. The tmux server runs in a scope of its own; `KillMode=process` keeps
    /// one that was started otherwise.
    fn systemd_unit(&self) -> String {
        // In a unit `%` starts a specifier, and in a command `$` a variable.
        let quoted = |text: &str| format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%"));
        let argument = |path: &Path| quoted(&path.display().to_string()).replace('$', "$$");
        format!(
            "\
[Unit]
Description=the-loop: hosts coding-agent sessions

[Service]
Type=exec
Environment={path}
ExecStart={program} --config {config} run
# Sessions outlive the host: only the host's own process is ended, never the tmux server.
KillMode=process
Restart=on-failure
RestartSec=2

[Install]
WantedBy=default.target
",
            path = quoted(&format!("PATH={}", self.path)),
            program = argument(self.program),
            config = argument(self.config),
        )
    }

    /// `AbandonProcessGroup` is what `KillMode=process` is to systemd.
    fn launchd_plist(&self) -> String {
        let escaped = |text: &str| text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        format!(
            r#"<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0"><dict>
  <key>Label</key><string>the-loop</string>
  <key>ProgramArguments</key><array>
    <string>{program}</string><string>--config</string><string>{config}</string><string>run</string>
  </array>
  <key>EnvironmentVariables</key><dict><key>PATH</key><string>{path}</string></dict>
  <key>RunAtLoad</key><true/>
  <key>KeepAlive</key><dict><key>SuccessfulExit</key><false/></dict>
  <!-- Sessions outlive the host: only the host's own process is ended, never the tmux server. -->
  <key>AbandonProcessGroup</key><true/>
</dict></plist>
"#,
            path = escaped(self.path),
            program = escaped(&self.program.display().to_string()),
            config = escaped(&self.config.display().to_string()),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tmx_8_the_unit_ends_the_host_alone_and_takes_any_path_as_it_is() {
        let service = Service {
            program: Path::new("/opt/a b/the-loop"),
            config: Path::new("/srv/100%/$HOME/\"q\"&<c>.yaml"),
            path: "/opt/tmux/bin:/usr/bin",
        };
        let unit = service.systemd_unit();
        assert!(
            unit.contains("\nKillMode=process\n") && unit.contains("\nEnvironment=\"PATH=/opt/tmux/bin:/usr/bin\"\n"),
            "{unit}"
        );
        let command = r#"ExecStart="/opt/a b/the-loop" --config "/srv/100%%/$$HOME/\"q\"&<c>.yaml" run"#;
        assert!(unit.lines().any(|line| line == command), "{unit}");
        let plist = service.launchd_plist();
        assert!(plist.contains("<key>AbandonProcessGroup</key><true/>"), "{plist}");
        assert!(plist.contains("<string>/srv/100%/$HOME/\"q\"&amp;&lt;c&gt;.yaml</string>"), "{plist}");
    }
}
