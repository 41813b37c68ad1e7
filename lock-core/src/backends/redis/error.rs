use redis::{ErrorKind as RedisKind, RedisError, ServerErrorKind};

use super::KIND;
use crate::{Error, ErrorKind, Operation};

/// Says what a failure of the client or the server means for the operation.
pub(super) fn translate(error: RedisError, operation: Operation) -> Error {
    let (kind, detail) = meaning(&error);
    let translated = Error::new(kind, operation, KIND);
    let translated = match detail {
        Some(detail) => translated.because(detail),
        None => translated,
    };
    // An answer, even an error, means that nothing was done; so does a connection that never was.
    let unknown = kind == ErrorKind::Unavailable
        && !error.is_connection_refusal()
        && !matches!(error.kind(), RedisKind::Server(_));
    let translated = if unknown {
        translated.outcome_unknown()
    } else {
        translated
    };
    translated.caused_by(error)
}

fn meaning(error: &RedisError) -> (ErrorKind, Option<String>) {
    match error.kind() {
        RedisKind::Server(
            ServerErrorKind::BusyLoading
            | ServerErrorKind::TryAgain
            | ServerErrorKind::ClusterDown
            | ServerErrorKind::MasterDown,
        ) => (ErrorKind::Unavailable, error.code().map(str::to_owned)),
        RedisKind::Server(ServerErrorKind::ReadOnly) => (
            ErrorKind::Refused,
            Some("connected to a replica, not to the primary".to_owned()),
        ),
        RedisKind::Server(_) | RedisKind::Extension => {
            let code = error.code().unwrap_or("error");
            (ErrorKind::Refused, Some(format!("the server says {code}")))
        }
        RedisKind::AuthenticationFailed => (
            ErrorKind::Refused,
            Some("user or password is wrong".to_owned()),
        ),
        RedisKind::InvalidClientConfig => (
            ErrorKind::InvalidInput,
            Some("the URL or its settings cannot be right".to_owned()),
        ),
        RedisKind::RESP3NotSupported => (
            ErrorKind::Unsupported,
            Some("Redis 7.0 or newer is needed".to_owned()),
        ),
        RedisKind::UnexpectedReturnType => (
            ErrorKind::Refused,
            Some("the answer is not one of our scripts'".to_owned()),
        ),
        _ if error.is_timeout() => (ErrorKind::Unavailable, Some("no answer in time".to_owned())),
        _ if error.is_connection_refusal() => (
            ErrorKind::Unavailable,
            Some("nobody listens at that address".to_owned()),
        ),
        _ => (
            ErrorKind::Unavailable,
            Some("the connection broke".to_owned()),
        ),
    }
}
