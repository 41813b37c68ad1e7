use lock_core::{FencingToken, Issuer, ResourceName};
use serde::{Deserialize, de::DeserializeOwned};
use sqlx::{
    Postgres,
    postgres::{PgDatabaseError, PgSeverity},
};

use super::calls::IN_A_TRANSACTION;
use crate::{FenceError, dialect::Errors, transaction::tx_name::TxName};

/// Classifies an error of Postgres; returns any other unchanged.
pub(crate) fn classify(source: sqlx::Error) -> Result<FenceError, sqlx::Error> {
    let Some(error) = database_error(&source) else {
        return Err(source);
    };
    match error.code() {
        "FN001" | "FN002" | "FN003" | "FN004" => refusal(error).ok_or(source),
        "FN010" => Ok(FenceError::Unfenced { source }),
        "FN011" => Ok(FenceError::WrongResource { source }),
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

impl Errors for Postgres {
    /// An error of one of our own calls. A missing function or table is then one of ours.
    fn of_our_call(source: sqlx::Error) -> FenceError {
        match database_error(&source).map(PgDatabaseError::code) {
            // No such schema, function or table.
            Some("3F000" | "42883" | "42P01") => FenceError::NotMigrated { source },
            // The server takes no writes or no connections, or lacks room: during a failover, for
            // example.
            Some(code) if is_of_an_outage(code) => FenceError::Busy { source },
            _ if Self::is_leaked(&source) => FenceError::Busy { source },
            _ => source.into(),
        }
    }

    /// An error of a commit. Nothing was committed if the error arises before the commit. After any
    /// other error, of any severity, the result is unknown: a cancel (57014) may arrive after the
    /// commit.
    fn of_commit(source: sqlx::Error) -> FenceError {
        match database_error(&source) {
            Some(error) if is_name_missing(error) || is_aborted(error) => FenceError::Aborted,
            Some(error) if is_before_commit(error.code()) => source.into(),
            _ => FenceError::CommitUnknown { source },
        }
    }

    /// Whether a call was refused because its session is already inside a transaction.
    fn is_leaked(error: &sqlx::Error) -> bool {
        // sqlx has counted an open transaction, or the server reports one: by our own checks, by
        // SET TRANSACTION, which comes too late, or by any statement in an aborted transaction.
        matches!(error, sqlx::Error::InvalidSavePointStatement)
            || database_error(error).is_some_and(|error| match error.code() {
                "22P02" => error.message().contains(IN_A_TRANSACTION),
                "23514" => error.constraint() == Some("autocommit_check"),
                code => matches!(code, "25001" | "25P02"),
            })
    }

    /// A standby, or a session with `default_transaction_read_only`, takes no writes.
    fn is_read_only(error: &sqlx::Error) -> bool {
        database_error(error).is_some_and(|error| error.code() == "25006")
    }

    /// An administrator, a shutdown or a crash has ended the session, or it was idle for too long.
    fn is_session_over(error: &sqlx::Error) -> bool {
        let over = ["57P01", "57P02", "57P05"];
        database_error(error).is_some_and(|error| over.contains(&error.code()))
    }

    /// Whether the role lacks a right.
    fn is_denied(error: &sqlx::Error) -> bool {
        database_error(error).is_some_and(|error| error.code() == "42501")
    }
}

fn is_of_an_outage(code: &str) -> bool {
    matches!(code, "25006" | "57P03") || code.starts_with("53")
}

/// Whether a prepared statement did not exist any more. Then nothing was executed.
pub(super) fn is_statement_gone(error: &sqlx::Error) -> bool {
    database_error(error).is_some_and(|error| error.code() == "26000")
}

/// An error of protecting a table.
pub(super) fn of_protect(source: sqlx::Error) -> FenceError {
    match database_error(&source).map(|error| (error.code(), error.message())) {
        // There is no such table or schema, and it is one of ours.
        Some(("42P01" | "3F000", reason)) if reason.contains("\"fenced\"") => {
            Postgres::of_our_call(source)
        }
        // No such table or column; not a table; no name for the resources of this table.
        Some(("42P01" | "42703" | "42809" | "3F000" | "22023", reason)) => {
            let reason = reason.to_owned();
            FenceError::CannotProtect { reason }
        }
        _ => Postgres::of_our_call(source),
    }
}

/// Whether a claim has waited for open transactions of this resource, and they did not end in time.
/// This is false for a claim that has waited for something else, such as the issuer during a seal.
pub(super) fn has_waited_for_open_transactions(
    error: &sqlx::Error,
    resource: &ResourceName,
) -> bool {
    detail_of(error, "55P03").is_some_and(|waited: Waited| waited.resource == *resource)
}

/// An error of the user's statement with our fences. A missing object may be one of the user.
pub(super) fn of_fused(source: sqlx::Error) -> FenceError {
    if matches!(&source, sqlx::Error::TypeNotFound { type_name } if type_name.contains("fenced")) {
        return FenceError::NotMigrated { source };
    }
    match database_error(&source).map(|error| (error.code(), error.message())) {
        Some(("3F000" | "42883" | "42704", text)) if text.contains("fenced") => {
            FenceError::NotMigrated { source }
        }
        _ if Postgres::is_leaked(&source) => FenceError::Busy { source },
        _ => source.into(),
    }
}

/// Whether this error proves that nothing is stored, if it arrives before the statement is
/// complete. After any other error the effect of the statement is unknown.
pub(super) fn nothing_is_stored(source: &sqlx::Error) -> bool {
    database_error(source).is_some_and(|error| is_of_postgres(error.severity(), error.code()))
}

/// Whether Postgres itself has certainly reported this error. A pooler whose own connection to
/// Postgres breaks reports that in the same form, and cannot know what was committed: PgBouncer as
/// `FATAL` with 08P01, others with other codes.
fn is_of_postgres(severity: PgSeverity, code: &str) -> bool {
    match severity {
        // The codes with which Postgres ends a session: idle for too long, in a transaction or
        // outside; too long in a transaction; by an administrator, or by a claim.
        PgSeverity::Fatal | PgSeverity::Panic => {
            matches!(code, "25P03" | "25P04" | "57P01" | "57P05")
        }
        _ => !code.starts_with("08"),
    }
}

/// `COMMIT AND CHAIN` outside a transaction (25P01), or the cursor of the transaction is not there.
fn is_name_missing(error: &PgDatabaseError) -> bool {
    error.code() == "25P01" || (error.code() == "34000" && error.message().contains(TxName::PREFIX))
}

/// A statement has failed before. This is `Aborted` only at a commit: the text of `Aborted`
/// mentions unfenced writes, and a later statement in an aborted transaction has certainly written
/// nothing.
fn is_aborted(error: &PgDatabaseError) -> bool {
    error.code() == "25P02"
}

/// A serialization failure or a deadlock; a deferred constraint; one of our refusals, which a
/// deferred trigger of the application may raise.
fn is_before_commit(code: &str) -> bool {
    matches!(code, "40001" | "40P01") || code.starts_with("23") || code.starts_with("FN")
}

/// The reason why a schema cannot be used, if this error is that refusal.
pub(super) fn not_owned(source: &sqlx::Error) -> Option<NotOwned> {
    detail_of(source, "FN030")
}

/// A schema in which another role could create functions that ours would call.
#[derive(Deserialize)]
pub(super) struct NotOwned {
    pub(super) schema: String,
    pub(super) reason: String,
}

/// The detail of an error with this code.
pub(super) fn detail_of<T: DeserializeOwned>(source: &sqlx::Error, code: &str) -> Option<T> {
    let error = database_error(source).filter(|error| error.code() == code)?;
    serde_json::from_str(error.detail()?).ok()
}

fn database_error(error: &sqlx::Error) -> Option<&PgDatabaseError> {
    error.as_database_error()?.try_downcast_ref()
}

/// Reads the detail of a refusal. `None` if other code raises our codes with other details.
fn refusal(error: &PgDatabaseError) -> Option<FenceError> {
    let detail = error.detail()?;
    match error.code() {
        "FN001" => {
            let Stale {
                token,
                high_water,
                forgotten,
            } = serde_json::from_str(detail).ok()?;
            let stale = if forgotten {
                FenceError::forgotten
            } else {
                FenceError::stale
            };
            Some(stale(token.resource, token.presented, high_water))
        }
        "FN002" => {
            let token: Token = serde_json::from_str(detail).ok()?;
            Some(FenceError::duplicate_token(token.resource, token.presented))
        }
        "FN003" => {
            let token: Token = serde_json::from_str(detail).ok()?;
            Some(FenceError::not_claimed(token.resource, token.presented))
        }
        "FN004" => {
            let Issuers {
                resource,
                presented,
                current,
            } = serde_json::from_str(detail).ok()?;
            Some(FenceError::wrong_issuer(resource, presented, current))
        }
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
    #[serde(default)]
    forgotten: bool,
}

#[derive(Deserialize)]
struct Issuers {
    resource: ResourceName,
    presented: Issuer,
    current: Issuer,
}

#[derive(Deserialize)]
struct Waited {
    resource: ResourceName,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Examples are "server conn crashed?" of PgBouncer, and its query_timeout.
    /// Catches: a commit that a pooler reports as failed, although it may have happened.
    #[test]
    fn an_error_that_a_pooler_may_have_made_leaves_it_open() {
        for code in [
            "08P01", "08006", "58000", "53300", "XX000", "57P02", "57P03",
        ] {
            assert!(!is_of_postgres(PgSeverity::Fatal, code), "{code}");
            assert!(!is_of_postgres(PgSeverity::Panic, code), "{code}");
        }
        for code in ["08P01", "08006", "08000"] {
            assert!(!is_of_postgres(PgSeverity::Error, code), "{code}");
        }
    }

    /// Catches: a certain failure that is reported as unknown.
    #[test]
    fn an_error_of_postgres_before_the_statement_is_complete_stores_nothing() {
        for code in [
            "FN001", "23505", "40001", "42601", "55P03", "57014", "58030",
        ] {
            assert!(is_of_postgres(PgSeverity::Error, code), "{code}");
        }
        for code in ["25P03", "25P04", "57P01", "57P05"] {
            assert!(is_of_postgres(PgSeverity::Fatal, code), "{code}");
        }
    }
}
