use lock_core::{FencingToken, ResourceName};
use serde::Deserialize;
use sqlx::{MySql, mysql::MySqlDatabaseError};

use crate::{FenceError, dialect::Errors};

const NO_SAVEPOINT: u16 = 1305;
/// `KILL` found no session with this id.
pub(super) const NO_SUCH_SESSION: u16 = 1094;
/// `KILL` was refused for lack of rights.
pub(super) const SESSION_OF_ANOTHER_USER: u16 = 1095;

/// Classifies an error of MySQL or MariaDB; returns any other unchanged.
pub(crate) fn classify(source: sqlx::Error) -> Result<FenceError, sqlx::Error> {
    if let Some(refusal) = refusal(&source) {
        return Ok(match refusal {
            Refusal::Stale(error) => error,
            Refusal::Unfenced => FenceError::Unfenced { source },
            Refusal::WrongResource => FenceError::WrongResource { source },
        });
    }
    match number(&source) {
        // Lock wait timeout; NOWAIT; too many connections, of the server or of the user.
        Some(1205 | 3572 | 1040 | 1203 | 1226) => Ok(FenceError::Busy { source }),
        // Deadlock; record changed since last read (MariaDB, snapshot isolation).
        Some(1213 | 1020) => Ok(FenceError::Serialization { source }),
        // Interrupted; killed; shutdown; statement, idle and transaction timeouts.
        Some(1317 | 1927 | 1053 | 1969 | 3024 | 4031) => Ok(FenceError::Terminated { source }),
        _ => Err(source),
    }
}

impl Errors for MySql {
    /// An error of one of our own calls. A missing table is then one of ours.
    fn of_our_call(source: sqlx::Error) -> FenceError {
        match number(&source) {
            Some(1146) => FenceError::NotMigrated { source },
            // During a failover, for example.
            _ if Self::is_read_only(&source) => FenceError::Busy { source },
            _ => source.into(),
        }
    }

    /// An error of a commit. Nothing was committed if the error arises before the commit. After any
    /// other error the result is unknown, because a timeout, a kill or an error of the binary log
    /// may come after the commit.
    fn of_commit(source: sqlx::Error) -> FenceError {
        match number(&source) {
            Some(NO_SAVEPOINT) => FenceError::Aborted,
            // Lock wait timeout, deadlock, record changed: they arise while the transaction is
            // still open.
            Some(1205 | 1213 | 1020) => source.into(),
            _ => FenceError::CommitUnknown { source },
        }
    }

    /// Whether the user lacks a right: on the database, on a table, or on a column.
    fn is_denied(error: &sqlx::Error) -> bool {
        matches!(number(error), Some(1044 | 1142 | 1143))
    }

    /// The server, the transaction, or the table is read only.
    fn is_read_only(error: &sqlx::Error) -> bool {
        matches!(number(error), Some(1290 | 1792 | 1836 | 1036 | 1874))
    }

    /// A shutdown or a `KILL` has ended the session, or it was idle for too long.
    fn is_session_over(error: &sqlx::Error) -> bool {
        matches!(number(error), Some(1053 | 1927 | 4031))
    }

    /// sqlx counts the transactions that it knows to be open.
    fn is_leaked(error: &sqlx::Error) -> bool {
        matches!(error, sqlx::Error::InvalidSavePointStatement)
    }
}

/// The errors that a trigger of a protected table raises.
enum Refusal {
    Stale(FenceError),
    Unfenced,
    WrongResource,
}

fn refusal(error: &sqlx::Error) -> Option<Refusal> {
    let error: &MySqlDatabaseError = error.as_database_error()?.try_downcast_ref()?;
    match error.code()? {
        "FN010" => Some(Refusal::Unfenced),
        "FN011" => Some(Refusal::WrongResource),
        // MySQL truncates texts longer than 128 characters. A refusal whose mark is not above the
        // token was forged.
        "FN001" => Some(match serde_json::from_str(error.message()) {
            Ok(Stale {
                resource,
                presented,
                high_water,
            }) if high_water > presented => {
                Refusal::Stale(FenceError::stale(resource, presented, high_water))
            }
            _ => Refusal::Unfenced,
        }),
        _ => None,
    }
}

#[derive(Deserialize)]
struct Stale {
    resource: ResourceName,
    presented: FencingToken,
    high_water: FencingToken,
}

/// Whether the savepoint of `begin` no longer exists.
pub(super) fn is_name_missing(source: &sqlx::Error) -> bool {
    number(source) == Some(NO_SAVEPOINT)
}

pub(super) fn number(error: &sqlx::Error) -> Option<u16> {
    let error: &MySqlDatabaseError = error.as_database_error()?.try_downcast_ref()?;
    Some(error.number())
}
