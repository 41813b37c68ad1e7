use std::time::Duration;

use crate::{
    Error, ErrorKind, InitialToken,
    backend::{
        ConnectOptions,
        support::connecting::{Settings, invalid},
    },
};

/// Reads the options of a lock service in a database. Its tokens start at a clock, and `clock_of`
/// names the owner of the clock in errors.
///
/// # Errors
/// [`ErrorKind::InvalidInput`], or [`ErrorKind::Unsupported`] for another initial token.
pub fn settings(options: &ConnectOptions, clock_of: &str) -> Result<Settings, Error> {
    let bounds = Duration::from_millis(10)..=Duration::from_secs(10);
    let settings = options.read(Duration::from_secs(2), bounds)?;
    if settings.initial_token != InitialToken::Clock {
        let error = Error::not_applied(ErrorKind::Unsupported);
        return Err(error.because(format!("tokens start at the clock of the {clock_of}")));
    }
    Ok(settings)
}

/// Takes the greatest number of connections from the URL. Defaults to 8.
///
/// # Errors
/// [`ErrorKind::InvalidInput`] if the value is no number, or 0.
pub fn take_connections(settings: &mut Settings) -> Result<u32, Error> {
    match settings.take_number("connections")?.unwrap_or(8) {
        0 => Err(invalid("at least one connection is needed")),
        connections => Ok(connections),
    }
}
