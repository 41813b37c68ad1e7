//! Runs a program of ours, and prints its last message.

use std::process::ExitCode;

use tokio::runtime::Builder;

use crate::{
    console::Console,
    failure::Failure,
    telemetry::{self, LogFormat},
};

/// Runs to the end, logging only errors unless the environment asks for more.
///
/// # Errors
/// As [`block_on`].
pub fn quietly<T>(main: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let filter = std::env::var("RUST_LOG")
        .ok()
        .filter(|filter| !filter.is_empty());
    let filter = filter.unwrap_or_else(|| "error".to_owned());
    block_on(&filter, LogFormat::Text, main)
}

/// Runs to the end, with a log.
///
/// # Errors
/// As `main`, or if there can be no log or no runtime.
pub fn block_on<T>(
    filter: &str,
    format: LogFormat,
    main: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    // The log lives until everything else is over.
    let _log = telemetry::log(filter, format)?;
    run_to_end(main)
}

/// Runs to the end. Does not wait for threads that are still blocked, such as in a read of stdin.
pub(crate) fn run_to_end<T>(main: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    let runtime = runtime.map_err(Failure::machine("starting the runtime"))?;
    let result = runtime.block_on(main);
    runtime.shutdown_background();
    result
}

/// Prints a failure, and returns its exit code.
#[must_use]
pub fn finish(result: Result<(), Failure>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            Console::Stderr.line(format!("palisade: {failure}"));
            failure.exit_code()
        }
    }
}
