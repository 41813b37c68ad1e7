use lock_core::{Error, ErrorKind};
use sqlx::error::DatabaseError;

/// Says what a failure of the client or the server means for a request that was sent.
///
/// An error of the server ends the transaction, and with it all that the request has done, unless
/// it came while the commit was under way.
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

/// The same for a connection that could not be made: nothing was sent.
pub(super) fn not_connected(error: sqlx::Error) -> Error {
    match &error {
        sqlx::Error::Database(_) => translate(error).outcome_not_applied(),
        sqlx::Error::Configuration(_) => {
            Error::not_applied(ErrorKind::InvalidInput).caused_by(error)
        }
        _ => Error::not_applied(ErrorKind::Unavailable)
            .because("no connection to the database")
            .caused_by(error),
    }
}

/// Whether the connection was left inside a transaction, and is of no use to anybody: our own
/// check; `SET TRANSACTION`, which comes too late; any statement in an aborted one.
pub(super) fn is_stray(error: &sqlx::Error) -> bool {
    error.as_database_error().is_some_and(|error| {
        error.constraint() == Some("autocommit_check") || has_code(error, &["25001", "25P02"])
    })
}

/// Whether the session is not what a prepared statement needs: such a statement is gone or there
/// twice, because there is a pooler; its answer has changed; it is not at READ COMMITTED. Nothing
/// was done.
pub(super) fn is_not_for_prepared(error: &sqlx::Error) -> bool {
    let error = error.as_database_error();
    error.is_some_and(|error| has_code(error, &["26000", "42P05", "0A000", "25000"]))
}

fn has_code(error: &dyn DatabaseError, codes: &[&str]) -> bool {
    error.code().is_some_and(|code| codes.contains(&&*code))
}

fn of_server(code: &str) -> Error {
    let unavailable = Error::not_applied(ErrorKind::Unavailable);
    let refused = Error::not_applied(ErrorKind::Refused);
    match code {
        // A cancel or a shutdown may strike while the commit is under way.
        "57014" | "57P01" | "57P02" => {
            Error::unknown(ErrorKind::Unavailable).because("the server ended the session")
        }
        // Starting, stopping or recovering; too many connections; failed over to a standby.
        "57P03" | "53300" => unavailable.because("the server takes no connection now"),
        "25006" => unavailable.because("the server is a standby: it takes no writes"),
        // A serialization failure, a deadlock, a lock timeout.
        "40001" | "40P01" | "55P03" => unavailable.because("the database was busy"),
        "3F000" | "42883" | "42P01" => {
            refused.because("the schema `fenced` is missing or old: apply its migrations")
        }
        "42501" => refused.because("the role lacks a right on the schema `fenced`"),
        code if code.starts_with("08") => Error::unknown(ErrorKind::Unavailable),
        code if code.starts_with("28") => refused.because("the server refused the login"),
        _ => refused,
    }
}
