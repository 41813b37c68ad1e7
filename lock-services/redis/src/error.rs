use std::error::Error as _;

use redis::{ErrorKind as RedisKind, RedisError, ServerErrorKind};

use super::servers::tls;
use lock_core::{Error, ErrorKind};

/// Translates a failure of the client or the server into its meaning for the operation.
///
/// The outcome is unknown, except for the few errors that a server gives before it runs anything,
/// because a script that fails half way keeps its writes.
pub(crate) fn translate(error: RedisError) -> Error {
    let (kind, detail) = meaning(&error);
    let translated = if never_ran(&error) {
        Error::not_applied(kind)
    } else {
        Error::unknown(kind)
    };
    let translated = translated.because(detail);
    // The text of an error includes its cause.
    match error.to_string().contains(REPEATED) {
        true => translated,
        false => translated.caused_by(error),
    }
}

/// Whether a slot is being moved and the keys of the command are on two servers. A command with
/// only one of these keys can still be run.
pub(super) fn keys_are_apart(error: &Error) -> bool {
    let source = error
        .source()
        .and_then(|source| source.downcast_ref::<RedisError>());
    source.is_some_and(|error| error.kind() == RedisKind::Server(ServerErrorKind::TryAgain))
}

fn never_ran(error: &RedisError) -> bool {
    error.is_connection_refusal()
        // The server refuses scripts with flags for these reasons before they begin.
        || matches!(
            error.code(),
            Some("NOREPLICAS" | "MISCONF" | "BUSY" | "OOM" | "NOAUTH" | "NOPERM")
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
                        | ServerErrorKind::NoScript
                )
        )
}

/// The kind of a failure, and its text.
#[must_use]
pub fn meaning(error: &RedisError) -> (ErrorKind, String) {
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
            // Too few replicas, a failing disk, a script that keeps the server busy: these failures
            // pass.
            Some("NOREPLICAS" | "MISCONF" | "BUSY") => (ErrorKind::Unavailable, says(error)),
            Some("NOAUTH") => (
                ErrorKind::Refused,
                "the server asks for a user or a password: put them into the URL".to_owned(),
            ),
            Some("NOPERM") => (
                ErrorKind::Refused,
                format!(
                    "{}: the user lacks a right that the documentation of the lock service lists",
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
            "the answer does not come from a script of Palisade".to_owned(),
        ),
        _ if error.is_timeout() => (ErrorKind::Unavailable, "no answer in time".to_owned()),
        _ if error.is_connection_refusal() => (
            ErrorKind::Unavailable,
            "no server listens at that address".to_owned(),
        ),
        _ if is_unknown_host(error) => (
            ErrorKind::Unavailable,
            "the host name is not known, or cannot be looked up".to_owned(),
        ),
        _ => (ErrorKind::Unavailable, "the connection broke".to_owned()),
    }
}

/// Only the text of the standard library distinguishes this from other failures.
fn is_unknown_host(error: &RedisError) -> bool {
    error.is_io_error() && error.to_string().contains("failed to lookup address")
}

/// The text of the server for the first command that it refused. It is cut off where it repeats the
/// arguments, because holders and passwords may be among them.
fn says(error: &RedisError) -> String {
    let errors = error.clone().into_server_errors();
    let first = errors.as_ref().and_then(|errors| errors.first());
    let Some((_, first)) = first else {
        return "the server says that it failed".to_owned();
    };
    let words = first.details().unwrap_or_default();
    match words.split(REPEATED).next() {
        Some(words) if !words.is_empty() => format!("the server says {}: {words}", first.code()),
        _ => format!("the server says {}", first.code()),
    }
}

/// The words of a server before it repeats the arguments.
const REPEATED: &str = ", with args beginning with";

#[cfg(test)]
mod tests {

    use super::*;

    /// The text about an answer of a server.
    fn said(answer: &[u8]) -> String {
        let answer = redis::parse_redis_value(answer).unwrap();
        meaning(&answer.extract_error().unwrap_err()).1
    }

    /// Catches: an error of the server repeats arguments, with a holder or a password.
    #[test]
    fn the_error_has_the_words_of_the_server_and_no_arguments() {
        let told = said(b"-ERR DB index is out of range\r\n");
        assert_eq!(told, "the server says ERR: DB index is out of range");
        let told = said(
            b"-ERR unknown command 'EVALSHA', with args beginning with: 'grant' '1' 'hunter2'\r\n",
        );
        assert_eq!(told, "the server says ERR: unknown command 'EVALSHA'");
    }
}
