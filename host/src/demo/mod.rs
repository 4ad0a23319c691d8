//! The demo: the product run for real, with no account and no network, and the small agent that it runs.
//!
//! Every line that the demo prints cites a record of the event log or a delivery that it found in the demo's own state root,
//! and what reached the agent is counted in the agent's own file, never in our receipts. A step whose fact does not show up
//! in time fails the demo.

pub mod agent;
mod scene;
mod script;

use std::{
    io::{self, Write},
    path::PathBuf,
};

use self::scene::Scene;

/// How to run the demo.
#[derive(Clone, Debug)]
pub struct DemoOptions {
    /// This program.
    pub program: PathBuf,
    /// Where to put the demo's files; a new temporary folder by default. It must not exist yet.
    pub root: Option<PathBuf>,
    /// Keep the files and the sessions for looking.
    pub keep: bool,
}

/// Why the demo failed. Each names the step.
#[derive(Debug, thiserror::Error)]
pub enum DemoError {
    /// A fact did not show up, or one showed up that must not.
    #[error("{step}: {problem}")]
    Step {
        /// What was being shown.
        step: &'static str,
        /// What was found instead.
        problem: String,
    },
    /// The demo's own files could not be made.
    #[error("the demo could not {action}")]
    Files {
        /// What was tried.
        action: &'static str,
        /// Why not.
        source: io::Error,
    },
    /// Nothing can be shown without tmux.
    #[error("tmux was not found in PATH; install it (for example: apt-get install tmux) and run this again")]
    NoTmux,
}

/// Runs the demo, telling each step on `out`. Everything that it started is ended and its files are removed, unless they are
/// to be kept.
///
/// # Errors
/// When a step does not show what it should.
pub fn run(options: &DemoOptions, out: &mut dyn Write) -> Result<(), DemoError> {
    let scene = Scene::set(options)?;
    let shown = script::play(&scene, out);
    let told = |action| move |source| DemoError::Files { action, source };
    if shown.is_ok() {
        scene.tell_where(out, options.keep).map_err(told("print"))?;
    } else {
        // The failure itself is what the caller prints; where to look comes before it.
        let _ = writeln!(out, "  the event log: {}", scene.log().display());
    }
    if !options.keep {
        scene.clear();
    }
    shown
}
