use std::error::Error as _;

use redis::{ErrorKind as RedisKind, RedisError, ServerErrorKind};

use super::{KIND, tls};
use crate::{Error, ErrorKind, Operation};

/// Says what a failure of the client or the server means for the operation.
///
/// The outcome is unknown but for the few errors that a server gives before it runs anything: a
/// script that fails half way keeps what it has written.
pub(in crate::backends) fn translate(error: RedisError, operation: Operation) -> Error {
    let (kind, detail) = meaning(&error);
    let translated = Error::new(kind, operation, KIND).because(detail);
    let translated = if never_ran(&error) {
        translated
    } else {
        translated.outcome_unknown()
    };
    translated.caused_by(error)
}

/// Whether a slot is being moved and the keys of the command are on two servers: each of them alone
/// can still be reached.
pub(super) fn keys_are_apart(error: &Error) -> bool {
    let source = error
        .source()
        .and_then(|source| source.downcast_ref::<RedisError>());
    source.is_some_and(|error| error.kind() == RedisKind::Server(ServerErrorKind::TryAgain))
}

fn never_ran(error: &RedisError) -> bool {
    error.is_connection_refusal()
        // Scripts with flags are refused for these before they begin.
        || matches!(
            error.code(),
            Some("NOREPLICAS" | "MISCONF" | "BUSY" | "NOAUTH" | "NOPERM")
        )
        || matches!(
            error.kind(),
            RedisKind::AuthenticationFailed
                | RedisKind::InvalidClientConfig
                | RedisKind::Server(
                    ServerErrorKind::BusyLoading
                        | ServerErrorKind::ReadOnly
                        | ServerErrorKind::MasterDown
                        | ServerErrorKind::ClusterDown
                        | ServerErrorKind::TryAgain
                        | ServerErrorKind::Moved
                        | ServerErrorKind::Ask
                        | ServerErrorKind::CrossSlot
                )
        )
}

/// What kind of failure it is, and what to say of it.
pub(in crate::backends) fn meaning(error: &RedisError) -> (ErrorKind, String) {
    if let Some(objection) = tls::objection(error) {
        return (ErrorKind::Refused, objection);
    }
    match error.kind() {
        RedisKind::Server(
            ServerErrorKind::BusyLoading
            | ServerErrorKind::TryAgain
            | ServerErrorKind::ClusterDown
            | ServerErrorKind::MasterDown,
        ) => (ErrorKind::Unavailable, says(error)),
        RedisKind::Server(ServerErrorKind::ReadOnly) => (
            ErrorKind::Unavailable,
            "the server has become a replica".to_owned(),
        ),
        RedisKind::Server(ServerErrorKind::Moved | ServerErrorKind::Ask) => (
            ErrorKind::Unavailable,
            "another node of the cluster has the shard: use redis+cluster://".to_owned(),
        ),
        RedisKind::Server(_) | RedisKind::Extension => match error.code() {
            // Too few replicas, a failing disk, a script that hogs the server: these pass.
            Some("NOREPLICAS" | "MISCONF" | "BUSY") => (ErrorKind::Unavailable, says(error)),
            Some("NOAUTH") => (
                ErrorKind::Refused,
                "the server asks for a user or a password: put them into the URL".to_owned(),
            ),
            Some("NOPERM") => (
                ErrorKind::Refused,
                format!(
                    "{}: the user lacks a right that lock_core::redis lists",
                    says(error)
                ),
            ),
            _ => (ErrorKind::Refused, says(error)),
        },
        RedisKind::AuthenticationFailed => {
            (ErrorKind::Refused, "user or password is wrong".to_owned())
        }
        RedisKind::InvalidClientConfig => (
            ErrorKind::InvalidInput,
            "the URL or a setting is invalid".to_owned(),
        ),
        RedisKind::UnexpectedReturnType | RedisKind::Parse => (
            ErrorKind::Unavailable,
            "the answer is not one of our scripts'".to_owned(),
        ),
        _ if error.is_timeout() => (ErrorKind::Unavailable, "no answer in time".to_owned()),
        _ if error.is_connection_refusal() => (
            ErrorKind::Unavailable,
            "nobody listens at that address".to_owned(),
        ),
        _ => (ErrorKind::Unavailable, "the connection broke".to_owned()),
    }
}

fn says(error: &RedisError) -> String {
    format!(
        "the server says {}",
        error.code().unwrap_or("that it failed")
    )
}
