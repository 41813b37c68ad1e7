//! The message to an operator when the store fails.

use fenced_store::FenceError;

use crate::failure::{Failure, with_sources};

/// Includes the message of the database, because it is no secret for an operator, and may name a
/// missing right.
pub(super) fn of_store(error: &FenceError) -> Failure {
    told(with_sources(error), error)
}

/// The failure of a command that was done in part. `done` says which part, and what to do.
pub(super) fn half_way(done: &str, error: &FenceError) -> Failure {
    told(format!("{done}: {}", with_sources(error)), error)
}

fn told(told: String, error: &FenceError) -> Failure {
    match error {
        FenceError::NotMigrated { .. } => Failure::Refused(format!(
            "{told}; check --store, or see `palisade migrations print`"
        )),
        FenceError::Busy { .. }
        | FenceError::Terminated { .. }
        | FenceError::CommitUnknown { .. } => Failure::ServerLost(told),
        FenceError::Db { source } if source.as_database_error().is_none() => {
            Failure::ServerLost(told)
        }
        _ => Failure::Refused(told),
    }
}
