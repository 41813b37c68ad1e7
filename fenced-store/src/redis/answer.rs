use std::io;

use lock_core::{FencingToken, Issuer, Sequencer};
use redis::{ErrorKind, RedisError, ServerErrorKind};

use crate::FenceError;

/// What a script answered: a word, and what belongs to it.
pub(super) type Answer = (String, Option<Vec<u8>>);

/// The refusal that an answer is, if it is one; and the error that it is, if it is no answer.
pub(super) fn refusal(answer: &Answer, sequencer: &Sequencer) -> FenceError {
    let resource = sequencer.resource().clone();
    let presented = sequencer.token();
    let text = answer.1.as_deref().map(String::from_utf8_lossy);
    let text = text.as_deref().unwrap_or_default();
    match answer.0.as_str() {
        "stale" => match text.parse::<FencingToken>() {
            Ok(high_water) => FenceError::Stale {
                resource,
                presented,
                high_water,
            },
            Err(error) => broken(error),
        },
        "duplicate" => FenceError::DuplicateToken {
            resource,
            presented,
        },
        "unclaimed" => FenceError::NotClaimed {
            resource,
            presented,
        },
        "issuer" => match Issuer::new(text) {
            Ok(current) => FenceError::WrongIssuer {
                resource,
                presented: sequencer.issuer().clone(),
                current,
            },
            Err(error) => broken(error),
        },
        other => broken(io::Error::other(format!("unknown answer \"{other}\""))),
    }
}

/// The keys hold something that this crate did not write.
pub(super) fn broken(error: impl std::error::Error + Send + Sync + 'static) -> FenceError {
    FenceError::Db {
        source: sqlx::Error::Decode(error.into()),
    }
}

/// An error of a request that changes nothing: there is nothing to be in doubt about.
pub(super) fn of_read(error: RedisError) -> FenceError {
    let busy = matches!(
        error.kind(),
        ErrorKind::Server(
            ServerErrorKind::BusyLoading
                | ServerErrorKind::TryAgain
                | ServerErrorKind::ClusterDown
                | ServerErrorKind::MasterDown
        )
    );
    let source = sqlx::Error::AnyDriverError(error.into());
    if busy {
        FenceError::Busy { source }
    } else {
        FenceError::Db { source }
    }
}

/// An error of a write. What the server said was before it wrote anything; of anything else it is
/// not known whether the server got it, or will.
pub(super) fn of_write(error: RedisError) -> FenceError {
    let never_sent = error.is_connection_refusal()
        || matches!(
            error.kind(),
            ErrorKind::AuthenticationFailed | ErrorKind::InvalidClientConfig
        );
    if never_sent || matches!(error.kind(), ErrorKind::Server(_) | ErrorKind::Extension) {
        return of_read(error);
    }
    FenceError::CommitUnknown {
        source: sqlx::Error::AnyDriverError(error.into()),
    }
}
