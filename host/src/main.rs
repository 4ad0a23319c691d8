//! The `the-loop` binary: parses, calls the library, prints (ARC-2).

use std::process::ExitCode;

fn main() -> ExitCode {
    the_loop::cli::main()
}
