//! A stand-in for an agent: records every byte that its terminal sends, and the environment that it was started with.
//!
//! ```text
//! recorder --out DIR [--no-bracketed] [--echo] [--noise] [--ignore-term] [--exit CODE]
//! ```
//!
//! It writes `DIR/pid`, `DIR/env` (`NAME=VALUE`, each ended by a NUL byte), `DIR/cwd` and `DIR/bytes`, sets its terminal raw,
//! switches bracketed paste on, and makes `DIR/ready` once all that is done. `--echo` prints what it reads, as an agent's
//! composer does; `--noise` prints a dot ten times a second; `--ignore-term` does not end on SIGTERM; `--exit` ends at once
//! with that code.

use std::{
    fs::{self, File},
    io::{self, Read, Write},
    os::unix::ffi::OsStrExt as _,
    path::PathBuf,
    process::ExitCode,
    time::Duration,
};

use anyhow::{Context as _, bail};
use nix::sys::{
    signal::{SigSet, Signal},
    termios::{SetArg, cfmakeraw, tcgetattr, tcsetattr},
};

#[derive(Default)]
struct Options {
    out: PathBuf,
    no_bracketed: bool,
    echo: bool,
    noise: bool,
    ignore_term: bool,
    exit: Option<u8>,
}

fn main() -> anyhow::Result<ExitCode> {
    let options = parse(std::env::args().skip(1))?;
    if options.ignore_term {
        // Blocked for this and all later threads, which is as good as ignored.
        let mut blocked = SigSet::empty();
        blocked.add(Signal::SIGTERM);
        blocked.thread_block()?;
    }
    fs::create_dir_all(&options.out)?;
    let environment: Vec<u8> = std::env::vars_os()
        .flat_map(|(name, value)| [name.as_bytes(), b"=", value.as_bytes(), b"\0"].concat())
        .collect();
    fs::write(options.out.join("env"), environment)?;
    fs::write(options.out.join("cwd"), std::env::current_dir()?.as_os_str().as_bytes())?;
    fs::write(options.out.join("pid"), std::process::id().to_string())?;
    if let Some(code) = options.exit {
        return Ok(ExitCode::from(code));
    }
    let bytes = File::create(options.out.join("bytes"))?;
    // Without a terminal it still records.
    if let Ok(mut mode) = tcgetattr(io::stdin()) {
        cfmakeraw(&mut mode);
        tcsetattr(io::stdin(), SetArg::TCSANOW, &mode)?;
    }
    if !options.no_bracketed {
        print("\x1b[?2004h")?;
    }
    fs::write(options.out.join("ready"), "")?;
    if options.noise {
        std::thread::spawn(|| {
            while print(".").is_ok() {
                #[expect(clippy::disallowed_methods, reason = "noise is made by the clock")]
                std::thread::sleep(Duration::from_millis(100));
            }
        });
    }
    record(bytes, options.echo)?;
    Ok(ExitCode::SUCCESS)
}

fn parse(arguments: impl Iterator<Item = String>) -> anyhow::Result<Options> {
    let mut options = Options::default();
    let mut arguments = arguments;
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--out" => options.out = arguments.next().context("--out needs a folder")?.into(),
            "--no-bracketed" => options.no_bracketed = true,
            "--echo" => options.echo = true,
            "--noise" => options.noise = true,
            "--ignore-term" => options.ignore_term = true,
            "--exit" => options.exit = Some(arguments.next().context("--exit needs a code")?.parse()?),
            other => bail!("unknown argument {other}"),
        }
    }
    if options.out.as_os_str().is_empty() {
        bail!("--out DIR is missing");
    }
    Ok(options)
}

fn record(mut bytes: File, echo: bool) -> io::Result<()> {
    let mut chunk = [0; 64 * 1024];
    loop {
        let read = match io::stdin().lock().read(&mut chunk) {
            // A terminal that is taken away says so by an error.
            Ok(0) | Err(_) => return Ok(()),
            Ok(read) => read,
        };
        bytes.write_all(&chunk[..read])?;
        if echo {
            let text = String::from_utf8_lossy(&chunk[..read]);
            let shown: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
            print(&shown)?;
        }
    }
}

fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}
