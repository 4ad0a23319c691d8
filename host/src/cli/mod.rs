//! The command line: one file a verb, each a thin translation to a library call. This is the only module that prints, exits
//! or reads the environment.

mod ask;
mod attention;
mod client;
mod config;
mod daemon;
mod deliveries;
mod demo;
mod doctor;
mod error;
mod events;
mod hook;
mod init;
mod internal;
mod items;
mod output;
mod plugins;
mod sessions;

use std::{path::PathBuf, process::ExitCode};

use clap::{Parser, Subcommand};

pub use self::error::CliError;
use crate::OpenOptions;

/// Turns activity on tickets into long-lived coding-agent sessions, and keeps you in charge of them.
#[derive(Debug, Parser)]
#[command(name = "the-loop", version, propagate_version = true, arg_required_else_help = true)]
#[command(after_help = "Example:\n  the-loop demo        see the main job done, with no account and no network")]
pub struct Cli {
    /// The config file [default: $THE_LOOP_CLI_CONFIG, ./.the-loop/cli-config.yaml, ~/.the-loop/cli-config.yaml]
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Say the causes of an error too
    #[arg(short, long, global = true)]
    verbose: bool,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Write a commented config, and service files on request
    Init(init::Args),
    /// Show the main job done for real, with no account and no network
    Demo(demo::Args),
    /// Look at what the service needs, and repair a damaged database on request
    Doctor(doctor::Args),
    /// Start the service and wait for proof that it runs
    Start(daemon::StartArgs),
    /// Stop the service and wait until it has ended
    Stop(daemon::StopArgs),
    /// Say how the service is doing; exits 0 when everything that should run does
    Status(daemon::StatusArgs),
    /// Stop the service and start it again; sessions live on
    Restart(daemon::StartArgs),
    /// Run the service in the foreground
    Run(daemon::RunArgs),
    /// Sessions of work items: list, look, start, pause, resume, stop, clean up
    Sessions(sessions::Args),
    /// Ask a person on the ticket; for agents inside a session, and for you
    Ask(ask::Args),
    /// What waits for a person
    Attention(attention::Args),
    /// What became of each text for a session
    Deliveries(deliveries::Args),
    /// Print the guide for agents in a session
    #[command(name = "agent-guide", after_help = "Example:\n  the-loop agent-guide")]
    AgentGuide,
    /// The built-in tracker: items, comments, labels
    Items(items::Args),
    /// The event log
    Events(events::Args),
    /// The config: show, check, change
    Config(config::Args),
    /// What is linked into this program
    Plugins(plugins::Args),
    #[command(hide = true)]
    Launch(internal::LaunchArgs),
    #[command(hide = true, name = "pane-watch")]
    PaneWatch(internal::WatchArgs),
    #[command(hide = true, name = "demo-agent")]
    DemoAgent,
    #[command(hide = true)]
    Hook,
}

/// Runs the program; the exit code says how it went: 0 done, 1 refused or failed, 2 usage, 3 service not reachable (CLI-1).
#[must_use]
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Where standard error is closed there is nobody to tell.
            let _ = error.print();
            return if error.use_stderr() { ExitCode::from(2) } else { ExitCode::SUCCESS };
        }
    };
    let verbose = cli.verbose;
    match cli.run() {
        Ok(code) => code,
        Err(error) => {
            error.print(verbose);
            error.exit_code()
        }
    }
}

/// What a verb needs to know of its surroundings.
#[derive(Clone)]
struct Context {
    options: OpenOptions,
}

impl Context {
    fn new(config: Option<PathBuf>, source: &'static str) -> Result<Self, CliError> {
        let cwd = std::env::current_dir().map_err(|error| {
            CliError::failed("the current folder cannot be read; change to one that exists").because(error)
        })?;
        let program = std::env::current_exe()
            .map_err(|error| CliError::failed("this program cannot find its own file").because(error))?;
        let environment = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        // A named config is named from here, wherever a verb goes.
        let config = config.map(|path| cwd.join(path));
        Ok(Self { options: OpenOptions { config, cwd, environment, program, source } })
    }

    /// Who the caller says to be: the name the operating system knows them by.
    fn actor(&self) -> String {
        nix::unistd::User::from_uid(nix::unistd::geteuid())
            .ok()
            .flatten()
            .map_or_else(|| nix::unistd::geteuid().to_string(), |user| user.name)
    }
}

/// Blocks on a future; most verbs need one thread only.
fn block_on<T>(future: impl Future<Output = Result<T, CliError>>) -> Result<T, CliError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| CliError::failed("the runtime cannot be started").because(error))?.block_on(future)
}

impl Cli {
    fn run(self) -> Result<ExitCode, CliError> {
        let context = |source| Context::new(self.config.clone(), source);
        match self.verb {
            // Inside a session's terminal: no runtime, no config, nothing but the job.
            Verb::Launch(args) => Ok(internal::launch(&args)),
            Verb::PaneWatch(args) => internal::watch(&args),
            Verb::DemoAgent => internal::demo_agent(),
            Verb::Hook => Ok(hook::run()),
            Verb::Init(args) => init::run(&context("cli")?, &args),
            Verb::Demo(args) => demo::run(&context("cli")?, &args),
            Verb::Doctor(args) => doctor::run(&context("cli")?, &args),
            Verb::Start(args) => daemon::start(&context("cli")?, &args),
            Verb::Stop(args) => daemon::stop(&context("cli")?, &args),
            Verb::Status(args) => daemon::status(&context("cli")?, &args),
            Verb::Restart(args) => daemon::restart(&context("cli")?, &args),
            Verb::Run(args) => daemon::run(context("service")?, &args),
            Verb::Sessions(args) => sessions::run(&context("cli")?, args),
            Verb::Ask(args) => ask::run(&context("cli")?, args),
            Verb::Attention(args) => attention::run(&context("cli")?, &args),
            Verb::Deliveries(args) => deliveries::run(&context("cli")?, &args),
            Verb::AgentGuide => {
                output::say(crate::ask::GUIDE.trim_end())?;
                Ok(ExitCode::SUCCESS)
            }
            Verb::Items(args) => items::run(context("cli")?, args),
            Verb::Events(args) => events::run(&context("cli")?, &args),
            Verb::Config(args) => config::run(&context("cli")?, args),
            Verb::Plugins(args) => plugins::run(&context("cli")?, &args),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn sec_1_every_verb_is_in_the_policy_table() {
        let committed = include_str!("../admission/policy.txt");
        let verbs = Cli::command();
        for verb in verbs.get_subcommands().filter(|verb| !verb.is_hide_set() && verb.get_name() != "help") {
            let name = verb.get_name();
            assert!(committed.contains(&format!("verb | {name} | ")), "{name} is not in admission/policy.txt");
        }
    }

    #[test]
    fn cli_1_the_grammar_is_sound_and_every_verb_shows_an_example() {
        Cli::command().debug_assert();
        fn walk(command: &clap::Command, path: &str) {
            for verb in command.get_subcommands().filter(|verb| !verb.is_hide_set() && verb.get_name() != "help") {
                let path = format!("{path} {}", verb.get_name());
                let shown = verb.get_after_help().map(ToString::to_string).unwrap_or_default();
                assert!(shown.starts_with("Example:\n  the-loop"), "`{path} --help` has no worked example");
                walk(verb, &path);
            }
        }
        walk(&Cli::command(), "the-loop");
    }
}
