//! The meaning of answers.

use std::time::Duration;

use crate::{
    Error, ErrorKind, FencingToken,
    backend::{Grant, Lease, Moment, Reply},
};

/// The answer of a database to one renewal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a lock service makes it")]
pub enum Renewal {
    /// The lease goes on.
    Renewed,
    /// This holder and token have no living lease.
    NotHolder,
    /// Another transaction decides about the lease.
    Busy,
}

/// The grant of a lease that has this time left, counted from before its request.
///
/// # Errors
/// [`ErrorKind::CounterBroken`] if the number is no token.
pub fn granted(token: u64, left: Duration, asked: Moment) -> Result<Grant, Error> {
    Ok(Grant::new(
        self::token(token)?,
        Lease::counted_from(asked, left),
    ))
}

/// The reply to an attempt that waits. The attempt looks again only when it is woken, because one
/// task of this process looks for all attempts.
#[must_use]
pub const fn queued(left: Duration) -> Reply {
    Reply::Queued {
        left,
        look_again: Duration::MAX,
    }
}

/// A token that a database has drawn.
///
/// # Errors
/// [`ErrorKind::CounterBroken`] if the number is no token.
pub fn token(number: u64) -> Result<FencingToken, Error> {
    FencingToken::new(number).map_err(|error| {
        Error::unknown(ErrorKind::CounterBroken)
            .because("the token of the lease is no token")
            .caused_by(error)
    })
}

/// The error of an outcome that grants nothing. The number is the greatest floor that is plausible.
pub(super) fn refusal(outcome: &str, number: u64) -> Error {
    let (kind, why) = match outcome {
        "released" => return Error::not_applied(ErrorKind::Released),
        "full" => return Error::not_applied(ErrorKind::QueueFull),
        "exhausted" => return Error::not_applied(ErrorKind::TokensExhausted),
        "implausible" => (
            ErrorKind::FloorImplausible,
            format!("at most {number} is plausible now"),
        ),
        "late" => (
            ErrorKind::Unavailable,
            "the request came too late: the clock of the database jumps".to_owned(),
        ),
        other => (ErrorKind::Refused, format!("the database says {other:?}")),
    };
    Error::not_applied(kind).because(why)
}
