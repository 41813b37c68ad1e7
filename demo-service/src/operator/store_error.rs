//! What an operator is told when the store fails.

use fenced_store::FenceError;

use crate::failure::{Failure, with_sources};

/// Says what the database said: to an operator it is no secret, and it may be a missing right.
pub(super) fn of_store(error: &FenceError) -> Failure {
    told(with_sources(error), error)
}

/// The same for what has been done in part: `done` says how far it came, and what to do.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_server_that_may_be_down_is_asked_after() {
        let down = of_store(&FenceError::from(sqlx::Error::PoolTimedOut)).to_string();
        assert!(down.ends_with("down?"), "{down}");
        let source = sqlx::Error::Protocol("no such table: fenced_high_water_mark".into());
        let missing = of_store(&FenceError::NotMigrated { source }).to_string();
        assert!(!missing.contains("down?"), "{missing}");
        assert!(
            missing.contains("no such table") && missing.contains("--store"),
            "{missing}"
        );
    }
}
