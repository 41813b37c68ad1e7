use std::io;

use lock_core::{Error, ErrorKind, backend::support::database::Refusal};
use sqlx::mysql::MySqlDatabaseError;

/// Translates a failure of the client or the server into its meaning for a request that was sent.
///
/// A procedure that fails rolls back all changes of the request, unless the error came while the
/// commit was under way. The session is closed after any error.
pub(super) fn translate(error: sqlx::Error) -> Error {
    let translated = match &error {
        sqlx::Error::Database(_) => of_server(number(&error).unwrap_or_default()),
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
    let (kind, why) = match &error {
        sqlx::Error::Database(_) => return translate(error).outcome_not_applied(),
        sqlx::Error::Configuration(why) if why.is::<Error>() => {
            (ErrorKind::Refused, "the session is not as it was set up")
        }
        sqlx::Error::Configuration(_) => (ErrorKind::InvalidInput, "the address is wrong"),
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
    };
    Error::not_applied(kind).because(why).caused_by(error)
}

/// Whether the server takes no connection at the moment. In that case a pool tries again, and its
/// error does not say so when its time is up.
pub(super) fn is_refusal_to_connect(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(error) => error.kind() == io::ErrorKind::ConnectionRefused,
        sqlx::Error::Configuration(_) => true,
        error => number(error).is_some_and(|number| [1040, 1053, 1203, 1226].contains(&number)),
    }
}

fn number(error: &sqlx::Error) -> Option<u16> {
    let error: &MySqlDatabaseError = error.as_database_error()?.try_downcast_ref()?;
    Some(error.number())
}

/// The error for each request to a server that is read-only.
pub(super) const TAKES_NO_WRITES: &str = "the server takes no writes: it is read_only";

const REFUSALS: [Refusal<u16>; 10] = [
    // A lock timeout, NOWAIT, a deadlock, a record that has changed.
    Refusal::passes(&[1205, 3572, 1213, 1020], "the database was busy"),
    Refusal::passes(&[1290, 1792, 1836], TAKES_NO_WRITES),
    Refusal::passes(
        &[1568],
        "its session was left inside a transaction by another client",
    ),
    Refusal::passes(&[1040, 1203, 1226], "the server has too many connections"),
    // Interrupted, killed, a shutdown, a timeout of a statement or a session.
    Refusal::passes(
        &[1317, 1927, 1053, 1969, 3024, 4031],
        "the server ended the request",
    )
    .may_have_happened(),
    // No memory, no room, a failure of the storage engine or of the binary log.
    Refusal::passes(
        &[1037, 1038, 1041, 1021, 1114, 1026, 1030, 1180, 1598, 3],
        "the server lacks room or memory, or cannot write",
    )
    .may_have_happened(),
    Refusal::for_good(
        &[1305, 1146, 1318, 1449],
        "the procedures of leases are missing or old: apply the migrations",
    ),
    Refusal::for_good(
        &[1044, 1142, 1370],
        "the user lacks the right to call a procedure of leases",
    ),
    Refusal::for_good(
        &[1045, 1049, 1130, 1698, 1251],
        "the server refused the login",
    ),
    Refusal::for_good(
        &[1665],
        "the binary log has statements: set binlog_format to ROW or MIXED",
    ),
];

fn of_server(number: u16) -> Error {
    let known = Refusal::error_of(&REFUSALS, |known| *known == number);
    known.unwrap_or_else(|| Error::unknown(ErrorKind::Refused))
}
