//! `the-loop init`.

use std::{path::Path, process::ExitCode};

use super::{CliError, Context, error::chained};
use crate::{config, plugins};

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
    match config::init(folder, &fragments) {
        Ok(path) => {
            anstream::println!("wrote {}; set routing.authorizedUsers in it before anything else", path.display())
        }
        Err(error @ config::InitError::Exists { .. }) if args.service => anstream::eprintln!("{error}"),
        Err(error) => return Err(chained(error)),
    }
    if args.service {
        let config = folder.join(".the-loop/cli-config.yaml");
        write_new(&folder.join(".the-loop/the-loop.service"), &systemd_unit(&context.options.program, &config))?;
        write_new(&folder.join(".the-loop/the-loop.plist"), &launchd_plist(&context.options.program, &config))?;
        anstream::println!(
            "systemd: cp .the-loop/the-loop.service ~/.config/systemd/user/ && systemctl --user enable --now the-loop"
        );
        anstream::println!(
            "launchd: cp .the-loop/the-loop.plist ~/Library/LaunchAgents/ && launchctl load ~/Library/LaunchAgents/the-loop.plist"
        );
    }
    Ok(ExitCode::SUCCESS)
}

fn write_new(path: &Path, text: &str) -> Result<(), CliError> {
    use std::io::Write;
    let written = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(path)
        .and_then(|mut file| file.write_all(text.as_bytes()));
    match written {
        Ok(()) => {
            anstream::println!("wrote {}", path.display());
            Ok(())
        }
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            Err(CliError::failed(format!("{} is there already and was left as it is; remove it first", path.display())))
        }
        Err(error) => Err(CliError::failed(format!("{} cannot be written", path.display())).because(error)),
    }
}

/// TMX-8: a restart of the unit ends the host alone. The tmux server runs in a scope of its own; `KillMode=process` keeps
/// one that was started otherwise.
fn systemd_unit(program: &Path, config: &Path) -> String {
    format!(
        "[Unit]\nDescription=the-loop: hosts coding-agent sessions\n\n[Service]\nType=exec\nExecStart=\"{}\" --config \"{}\" run\n\
         # Sessions outlive the host: only the host's own process is ended, never the tmux server.\nKillMode=process\nRestart=on-failure\n\
         RestartSec=2\n\n[Install]\nWantedBy=default.target\n",
        program.display(),
        config.display()
    )
}

/// `AbandonProcessGroup` is what `KillMode=process` is to systemd.
fn launchd_plist(program: &Path, config: &Path) -> String {
    let escaped = |path: &Path| path.display().to_string().replace('&', "&amp;").replace('<', "&lt;");
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<plist version=\"1.0\"><dict>\n  <key>Label</key><string>the-loop</string>\n  \
         <key>ProgramArguments</key><array><string>{}</string><string>--config</string><string>{}</string><string>run</string></array>\n  \
         <key>RunAtLoad</key><true/>\n  <key>KeepAlive</key><dict><key>SuccessfulExit</key><false/></dict>\n  \
         <key>AbandonProcessGroup</key><true/>\n</dict></plist>\n",
        escaped(program),
        escaped(config)
    )
}
