//! A lock gateway over HTTP, and commands for operators.

use std::process::ExitCode;

fn main() -> ExitCode {
    palisade_cli::main()
}
