use std::io;

use lock_core::{FencingToken, Issuer, Sequencer};
use redis::{ErrorKind, RedisError, ServerErrorKind};

use crate::{FenceError, high_water::columns::undecodable};

/// How often a connection may send one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sends {
    Once,
    Again,
}

/// The answer of a script: a word, and what belongs to it.
pub(super) type Answer = (String, Option<Vec<u8>>);

/// Reads a refusal. An answer that is none is an error, too.
pub(super) fn refusal(answer: &Answer, sequencer: &Sequencer) -> FenceError {
    let resource = sequencer.resource().clone();
    let presented = sequencer.token();
    let text = answer.1.as_deref().map(String::from_utf8_lossy);
    let text = text.as_deref().unwrap_or_default();
    match answer.0.as_str() {
        "stale" => match text.parse::<FencingToken>() {
            Ok(high_water) => FenceError::stale(resource, presented, high_water),
            Err(error) => undecodable(error),
        },
        "duplicate" => FenceError::duplicate_token(resource, presented),
        "unclaimed" => FenceError::not_claimed(resource, presented),
        "issuer" => match Issuer::new(text) {
            Ok(current) => FenceError::wrong_issuer(resource, sequencer.issuer().clone(), current),
            Err(error) => undecodable(error),
        },
        other => undecodable(io::Error::other(format!("unknown answer \"{other}\""))),
    }
}

/// A write with this number or a greater one was made before.
pub(super) fn out_of_order(
    sequencer: &Sequencer,
    presented: u64,
    last: Option<&[u8]>,
) -> FenceError {
    let last = String::from_utf8_lossy(last.unwrap_or_default());
    match last.parse() {
        Ok(last) => FenceError::out_of_order(sequencer.resource().clone(), presented, last),
        Err(error) => undecodable(error),
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

/// An error of a write. If the connection sends each request once, an error that the server reports
/// means that nothing was written. After any other error it is not known whether the server has
/// executed the write, or will.
///
/// A cluster connection resends a request by itself, even one that was executed and not answered.
/// Then the error is that of the last attempt, and says nothing about the earlier ones.
pub(super) fn of_write(error: RedisError, sends: Sends) -> FenceError {
    let was_said = matches!(
        error.kind(),
        ErrorKind::Server(_) | ErrorKind::Extension | ErrorKind::InvalidClientConfig
    );
    if sends == Sends::Once && was_said {
        return of_read(error);
    }
    FenceError::CommitUnknown {
        source: sqlx::Error::AnyDriverError(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As a server says it, and as the connection hands it on.
    fn said(line: &str) -> RedisError {
        let answer = redis::parse_redis_value(format!("-{line}\r\n").as_bytes());
        answer.and_then(redis::Value::extract_error).unwrap_err()
    }

    #[test]
    fn what_a_cluster_connection_sends_again_is_in_doubt() {
        let refused = io::Error::from(io::ErrorKind::ConnectionRefused);
        for error in [
            said("CLUSTERDOWN The cluster is down"),
            said("TRYAGAIN Multiple keys request during rehashing of slot"),
            said("MASTERDOWN Link with MASTER is down"),
            said("LOADING Redis is loading the dataset in memory"),
            said("MOVED 3999 127.0.0.1:6381"),
            refused.into(),
        ] {
            let text = error.to_string();
            let error = of_write(error, Sends::Again);
            assert!(matches!(error, FenceError::CommitUnknown { .. }), "{text}");
        }
    }

    #[test]
    fn what_is_refused_for_good_was_not_written() {
        for error in [
            said("NOPERM this user has no permissions to run the 'evalsha' command"),
            said("OOM command not allowed when used memory > 'maxmemory'."),
            said("ERR unknown command"),
        ] {
            let error = of_write(error, Sends::Once);
            assert!(matches!(error, FenceError::Db { .. }), "{error:?}");
        }
    }

    /// Also if another server, or the same one later, may take it: nobody has sent it there.
    #[test]
    fn what_was_sent_once_and_refused_was_not_written() {
        let error = of_write(
            said("READONLY You can't write against a read only replica."),
            Sends::Once,
        );
        assert!(matches!(error, FenceError::Db { .. }), "{error:?}");
        let error = of_write(
            said("TRYAGAIN Multiple keys request during rehashing of slot"),
            Sends::Once,
        );
        assert!(matches!(error, FenceError::Busy { .. }), "{error:?}");
        let refused = io::Error::from(io::ErrorKind::ConnectionReset);
        let error = of_write(refused.into(), Sends::Once);
        assert!(
            matches!(error, FenceError::CommitUnknown { .. }),
            "{error:?}"
        );
    }

    /// The first attempt was executed by a primary that died before it answered.
    #[test]
    fn what_the_last_of_several_attempts_was_told_says_nothing_of_the_first() {
        let error = of_write(said("NOREPLICAS Not enough good replicas"), Sends::Again);
        assert!(
            matches!(error, FenceError::CommitUnknown { .. }),
            "{error:?}"
        );
    }

    #[test]
    fn a_read_is_never_in_doubt() {
        let error = of_read(said("CLUSTERDOWN The cluster is down"));
        assert!(error.is_retryable(), "{error:?}");
    }
}
