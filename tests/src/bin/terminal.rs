//! The two programs that run inside a session's terminal, by themselves: `terminal launch PLAN` and
//! `terminal pane-watch MARK`, as the suites of the runner need them.

use std::{path::Path, process::ExitCode};

use anyhow::bail;

fn main() -> anyhow::Result<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["launch", plan] => Ok(ExitCode::from(the_loop::launcher::launch(Path::new(plan)))),
        ["pane-watch", mark] => {
            the_loop::launcher::watch(Path::new(mark))?;
            Ok(ExitCode::SUCCESS)
        }
        _ => bail!("usage: terminal launch PLAN | terminal pane-watch MARK"),
    }
}
