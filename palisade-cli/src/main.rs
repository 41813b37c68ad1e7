//! A lock gateway over HTTP, and what operators need.

use std::process::ExitCode;

fn main() -> ExitCode {
    palisade_cli::main()
}
