use std::io;

use lock_core::{Error, ErrorKind, Outcome};
use sqlx::mysql::MySqlDatabaseError;

/// Translates a failure of the client or the server into its meaning for a request that was sent.
///
/// A procedure that fails rolls back, and with that all that the request has done, unless the error
/// came while the commit was under way. The session is closed after any error.
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

/// The same for a connection that could not be made: nothing was sent.
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
        // In these words rustls objects to the certificate of the server.
        sqlx::Error::Io(why) if why.kind() == io::ErrorKind::InvalidData => {
            (ErrorKind::Refused, "TLS failed")
        }
        _ => (ErrorKind::Unavailable, "no connection to the database"),
    };
    Error::not_applied(kind).because(why).caused_by(error)
}

/// Whether the server takes no connection at the moment. A pool tries again then, and does not say
/// so when its time is up.
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

/// The meaning of a refusal of the server.
type Refusal = (&'static [u16], ErrorKind, Outcome, &'static str);

/// For each request to such a server.
pub(super) const TAKES_NO_WRITES: &str = "the server takes no writes: it is read_only";

/// A failure that passes by itself after a failover, a restart or a burst is unavailable, and the
/// request is repeated.
const REFUSALS: [Refusal; 10] = [
    (
        // A lock timeout, NOWAIT, a deadlock, a record that has changed.
        &[1205, 3572, 1213, 1020],
        ErrorKind::Unavailable,
        Outcome::NotApplied,
        "the database was busy",
    ),
    (
        &[1290, 1792, 1836],
        ErrorKind::Unavailable,
        Outcome::NotApplied,
        TAKES_NO_WRITES,
    ),
    (
        &[1568],
        ErrorKind::Unavailable,
        Outcome::NotApplied,
        "its session was left inside a transaction by another client",
    ),
    (
        &[1040, 1203, 1226],
        ErrorKind::Unavailable,
        Outcome::NotApplied,
        "the server has too many connections",
    ),
    (
        // Interrupted, killed, a shutdown, a timeout of a statement or a session. These may strike
        // while the commit is under way.
        &[1317, 1927, 1053, 1969, 3024, 4031],
        ErrorKind::Unavailable,
        Outcome::Unknown,
        "the server ended the request",
    ),
    (
        // No memory, no room, a failure of the storage engine or of the binary log.
        &[1037, 1038, 1041, 1021, 1114, 1026, 1030, 1180, 1598, 3],
        ErrorKind::Unavailable,
        Outcome::Unknown,
        "the server lacks room or memory, or cannot write",
    ),
    (
        &[1305, 1146, 1318, 1449],
        ErrorKind::Refused,
        Outcome::NotApplied,
        "the procedures of leases are missing or old: apply the migrations",
    ),
    (
        &[1044, 1142, 1370],
        ErrorKind::Refused,
        Outcome::NotApplied,
        "the user lacks the right to call a procedure of leases",
    ),
    (
        &[1045, 1049, 1130, 1698, 1251],
        ErrorKind::Refused,
        Outcome::NotApplied,
        "the server refused the login",
    ),
    (
        &[1665],
        ErrorKind::Refused,
        Outcome::NotApplied,
        "the binary log has statements: set binlog_format to ROW or MIXED",
    ),
];

fn of_server(number: u16) -> Error {
    let mut known = REFUSALS.iter();
    let Some((_, kind, outcome, why)) = known.find(|(numbers, ..)| numbers.contains(&number))
    else {
        return Error::unknown(ErrorKind::Refused);
    };
    let error = match outcome {
        Outcome::NotApplied => Error::not_applied(*kind),
        _ => Error::unknown(*kind),
    };
    error.because(*why)
}
