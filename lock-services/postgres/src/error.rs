use std::io;

use lock_core::{Error, ErrorKind, backend::support::database::Refusal};
use sqlx::error::DatabaseError;

/// Translates a failure of the client or the server into its meaning for a request that was sent.
///
/// An error of the server ends the transaction, which undoes all changes of the request, unless the
/// error came while the commit was under way.
pub(super) fn translate(error: sqlx::Error) -> Error {
    let translated = match &error {
        error if is_stray(error) => Error::not_applied(ErrorKind::Unavailable)
            .because("its session was left inside a transaction by somebody else"),
        sqlx::Error::Database(refused) => of_server(refused.code().as_deref().unwrap_or_default()),
        sqlx::Error::PoolTimedOut | sqlx::Error::PoolClosed => {
            Error::not_applied(ErrorKind::Unavailable).because("no connection to the database")
        }
        sqlx::Error::Io(_) | sqlx::Error::Protocol(_) | sqlx::Error::WorkerCrashed => {
            Error::unknown(ErrorKind::Unavailable).because("the connection was lost")
        }
        _ => Error::unknown(ErrorKind::Refused),
    };
    translated.caused_by(error)
}

/// The meaning of a failure to make a connection. Nothing was sent.
pub(super) fn not_connected(error: sqlx::Error) -> Error {
    match &error {
        sqlx::Error::Database(_) => translate(error).outcome_not_applied(),
        sqlx::Error::Configuration(_) => {
            Error::not_applied(ErrorKind::InvalidInput).caused_by(error)
        }
        _ => {
            let (kind, why) = why_not_connected(&error);
            Error::not_applied(kind).because(why).caused_by(error)
        }
    }
}

fn why_not_connected(error: &sqlx::Error) -> (ErrorKind, &'static str) {
    match error {
        sqlx::Error::Tls(why) if why.to_string().contains("built without TLS") => (
            ErrorKind::Unsupported,
            "enable TLS in sqlx, for example by its feature `tls-rustls-ring-native-roots`",
        ),
        sqlx::Error::Tls(_) => (ErrorKind::Refused, "TLS failed"),
        // rustls refuses the certificate of the server with these words.
        sqlx::Error::Io(why) if why.kind() == io::ErrorKind::InvalidData => {
            (ErrorKind::Refused, "TLS failed")
        }
        _ => (ErrorKind::Unavailable, "no connection to the database"),
    }
}

/// Whether the server takes no connection at the moment. In that case a pool tries again, and its
/// error does not say so when its time is up.
pub(super) fn is_refusal_to_connect(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(error) => error.kind() == io::ErrorKind::ConnectionRefused,
        sqlx::Error::Database(error) => error.is_transient_in_connect_phase(),
        _ => false,
    }
}

/// Whether the connection was left inside a transaction, and is of no use any more. The error comes
/// from our own check, from `SET TRANSACTION`, which comes too late, or from any statement in an
/// aborted transaction.
pub(super) fn is_stray(error: &sqlx::Error) -> bool {
    error.as_database_error().is_some_and(|error| {
        error.constraint() == Some("autocommit_check") || has_code(error, &["25001", "25P02"])
    })
}

/// Whether the session is unfit for a prepared statement. Because of a pooler, the statement is
/// gone or exists twice. Or the type of its answer has changed. Or the session is not at READ
/// COMMITTED. Nothing was done.
pub(super) fn is_not_for_prepared(error: &sqlx::Error) -> bool {
    let error = error.as_database_error();
    error.is_some_and(|error| has_code(error, &["26000", "42P05", "0A000", "25000"]))
}

fn has_code(error: &dyn DatabaseError, codes: &[&str]) -> bool {
    error.code().is_some_and(|code| codes.contains(&&*code))
}

/// Whether the session is of no use any more, although its connection may be open: it was left
/// inside a transaction, the server has ended it, or the server takes no writes. In the last case
/// the name of the server may lead to another server by now.
pub(super) fn is_session_over(error: &sqlx::Error) -> bool {
    const OVER: [&str; 9] = [
        "57P01", "57P02", "57P03", "57P05", "25P03", "25006", "0A000", "53", "08",
    ];
    let code = error.as_database_error().and_then(DatabaseError::code);
    let is_over = code.is_some_and(|code| OVER.iter().any(|over| code.starts_with(over)));
    is_over || is_stray(error)
}

/// The error for each request to a server that takes no writes.
pub(super) const TAKES_NO_WRITES: &str =
    "the server takes no writes: it is a standby, or default_transaction_read_only is on";

/// The refusals of a server, by the SQLSTATE or its first characters. Tests in `tests/postgres`
/// meet them: `standby`, `rights`, `outages` and `pooled`.
const REFUSALS: [Refusal<&str>; 12] = [
    Refusal::passes(&["57014"], "the request was cancelled").may_have_happened(),
    Refusal::passes(&["57P01", "57P02"], "the server ended the session").may_have_happened(),
    // The server ends an idle session before a request, never during a request.
    Refusal::passes(
        &["57P05", "25P03"],
        "the server ended the session because it was idle",
    ),
    Refusal::passes(
        &["57P03"],
        "the server takes no connection now: it starts, stops or recovers",
    ),
    Refusal::passes(&["25006"], TAKES_NO_WRITES),
    // The queue is an unlogged table. A standby cannot use it.
    Refusal::passes(&["0A000"], "the server takes no writes: it is a standby"),
    // Too many connections, no memory, a full disk.
    Refusal::passes(&["53"], "the server lacks room, memory or connections"),
    // A serialization failure, a deadlock, a lock timeout.
    Refusal::passes(&["40", "55P03"], "the database was busy"),
    Refusal::passes(&["08"], "the connection was lost").may_have_happened(),
    Refusal::for_good(
        &["3F000", "42P01", "42883"],
        "the schema `fenced` is missing or old: apply its migrations",
    ),
    Refusal::for_good(&["42501"], "the role lacks a right on the schema `fenced`"),
    Refusal::for_good(&["28"], "the server refused the login"),
];

fn of_server(code: &str) -> Error {
    let known = Refusal::error_of(&REFUSALS, |known| code.starts_with(known));
    known.unwrap_or_else(|| Error::not_applied(ErrorKind::Refused))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches: an error that is retried for ever although another build or another certificate is
    /// needed.
    #[test]
    fn tls_that_cannot_work_does_not_pass() {
        // The text is that of sqlx-core 0.9, in `net::tls::error_if_unavailable`.
        let without = "TLS upgrade required by connect options \
                       but SQLx was built without TLS support enabled";
        let certificate = io::Error::new(io::ErrorKind::InvalidData, "UnknownIssuer");
        for (error, kind, says) in [
            (
                sqlx::Error::Tls(without.into()),
                ErrorKind::Unsupported,
                "`tls-rustls-ring",
            ),
            (
                sqlx::Error::Tls("no".into()),
                ErrorKind::Refused,
                "TLS failed",
            ),
            (certificate.into(), ErrorKind::Refused, "UnknownIssuer"),
        ] {
            let error = not_connected(error);
            assert_eq!(error.kind(), kind, "{error}");
            assert!(error.to_string().contains(says), "{error}");
            assert!(!error.may_pass(), "{error}");
        }
    }
}
