//! The check whether a role has the rights for a call. Every role can read rights in the catalog.

use sqlx::{AssertSqlSafe, Executor, PgPool, Postgres, Row, postgres::PgRow};

use crate::{FenceError, NotReady, Rights, dialect::Errors};

/// The functions that transactions call.
const TO_WRITE: &str = "'begin_fenced', 'begin_fenced_fast', 'high_water', 'note_fence', 'settle'";

/// The functions that only claims call; `terminate_older` runs with the rights of its caller.
const TO_CLAIM: &str = "'claim', 'open_transactions', 'resource_lock_key', 'terminate_older'";

/// Fails with all the rights that are missing.
pub(super) async fn check(pool: &PgPool, rights: Rights) -> Result<(), FenceError> {
    let routines = match rights {
        Rights::Write => TO_WRITE.to_owned(),
        Rights::ClaimAndWrite => format!("{TO_WRITE}, {TO_CLAIM}"),
    };
    check_calls(pool, &routines).await
}

/// The error that names the missing rights, if the call failed because the role lacks them. Any
/// other error stays as it is.
pub(super) async fn of_refused_call(
    pool: &PgPool,
    routine: &str,
    source: sqlx::Error,
) -> FenceError {
    if Postgres::is_denied(&source)
        && let Err(missing @ FenceError::NotReady(_)) =
            check_calls(pool, &format!("'{routine}'")).await
    {
        return missing;
    }
    Postgres::of_our_call(source)
}

async fn check_calls(pool: &PgPool, routines: &str) -> Result<(), FenceError> {
    let missing = format!(include_str!("sql/rights.sql"), routines = routines);
    let missing = pool.fetch_all(sqlx::raw_sql(AssertSqlSafe(missing))).await;
    let missing = missing.map_err(Postgres::of_our_call)?;
    if missing.is_empty() {
        return Ok(());
    }
    Err(FenceError::NotReady(NotReady::RightMissing {
        what: joined(&missing, "what", ", ")?,
        grant: joined(&missing, "given", "; ")?,
    }))
}

fn joined(rows: &[PgRow], column: &str, separator: &str) -> Result<String, sqlx::Error> {
    let texts: Result<Vec<&str>, _> = rows.iter().map(|row| row.try_get(column)).collect();
    Ok(texts?.join(separator))
}
