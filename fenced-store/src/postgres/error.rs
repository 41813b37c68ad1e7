use lock_core::{FencingToken, Issuer, ResourceName};
use serde::Deserialize;
use sqlx::postgres::{PgDatabaseError, PgSeverity};

use crate::FenceError;

/// Sorts an error of Postgres; gives back any other.
pub(crate) fn classify(source: sqlx::Error) -> Result<FenceError, sqlx::Error> {
    let Some(error) = database_error(&source) else {
        return Err(source);
    };
    match error.code() {
        "FN001" | "FN002" | "FN003" | "FN004" => refusal(error).ok_or(source),
        // FN005: raised by the check before a commit. 25P02: in an aborted transaction.
        "FN005" | "25P02" => Ok(FenceError::Aborted),
        // A lock timeout; too many connections.
        "55P03" | "53300" => Ok(FenceError::Busy { source }),
        // A serialization failure; a deadlock.
        "40001" | "40P01" => Ok(FenceError::Serialization { source }),
        // Idle in transaction, transaction timeout, statement timeout or cancel, shutdown or
        // termination by an administrator, crash of the server.
        "25P03" | "25P04" | "57014" | "57P01" | "57P02" => Ok(FenceError::Terminated { source }),
        _ => Err(source),
    }
}

/// An error of a call of ours: what is missing are then our functions and tables, not the user's.
pub(super) fn of_our_call(source: sqlx::Error) -> FenceError {
    match database_error(&source).map(PgDatabaseError::code) {
        // No such schema, function or table.
        Some("3F000" | "42883" | "42P01") => FenceError::NotMigrated { source },
        _ => source.into(),
    }
}

/// An error of a commit: it is certain that nothing was committed only if the server said so and
/// went on. A session that is ended may have committed before.
pub(super) fn of_commit(source: sqlx::Error) -> FenceError {
    match database_error(&source).map(PgDatabaseError::severity) {
        Some(PgSeverity::Error) => source.into(),
        _ => FenceError::CommitUnknown { source },
    }
}

fn database_error(error: &sqlx::Error) -> Option<&PgDatabaseError> {
    error.as_database_error()?.try_downcast_ref()
}

/// Reads the detail of a refusal. `None` if somebody else raises our codes with other details.
fn refusal(error: &PgDatabaseError) -> Option<FenceError> {
    let detail = error.detail()?;
    if error.code() == "FN001" {
        let Stale { token, high_water } = serde_json::from_str(detail).ok()?;
        return Some(FenceError::Stale {
            resource: token.resource,
            presented: token.presented,
            high_water,
        });
    }
    if error.code() == "FN004" {
        let issuers: Issuers = serde_json::from_str(detail).ok()?;
        return Some(FenceError::WrongIssuer {
            resource: issuers.resource,
            presented: issuers.presented,
            current: issuers.current,
        });
    }
    let Token {
        resource,
        presented,
    } = serde_json::from_str(detail).ok()?;
    match error.code() {
        "FN002" => Some(FenceError::DuplicateToken {
            resource,
            presented,
        }),
        "FN003" => Some(FenceError::NotClaimed {
            resource,
            presented,
        }),
        _ => None,
    }
}

#[derive(Deserialize)]
struct Token {
    resource: ResourceName,
    presented: FencingToken,
}

#[derive(Deserialize)]
struct Stale {
    #[serde(flatten)]
    token: Token,
    high_water: FencingToken,
}

#[derive(Deserialize)]
struct Issuers {
    resource: ResourceName,
    presented: Issuer,
    current: Issuer,
}
