//! The check whether a user has the rights for fenced writes. For each right it asks the server to
//! explain a statement. The explanation needs the same right as the statement itself. The user may
//! have the right for this table, for the database, or by a role.

use sqlx::{MySql, MySqlConnection, MySqlPool};

use crate::{
    FenceError, NotReady, Rights,
    dialect::{Errors, Operations, Queries},
};

/// A table with one of its columns, the rights on the table that transactions need, and the rights
/// that clients need that also claim.
type Table = (
    &'static str,
    &'static str,
    &'static [&'static str],
    &'static [&'static str],
);

const TABLES: [Table; 5] = [
    ("_fenced_migrations", "version", &["SELECT"], &["SELECT"]),
    ("fenced_lock_service", "name", &[], &["SELECT", "INSERT"]),
    (
        "fenced_high_water_mark",
        "token",
        &["SELECT"],
        &["SELECT", "INSERT", "UPDATE"],
    ),
    ("fenced_forgotten", "marks", &["SELECT"], &["SELECT"]),
    (
        "fenced_open_transaction",
        "token",
        &["SELECT", "INSERT", "DELETE"],
        &["SELECT", "INSERT", "DELETE"],
    ),
];

/// Fails with the first right that is missing.
pub(super) async fn check(pool: &MySqlPool, rights: Rights) -> Result<(), FenceError> {
    let mut connection = pool.acquire().await?;
    for (table, column, to_write, to_claim) in TABLES {
        let verbs = match rights {
            Rights::Write => to_write,
            Rights::ClaimAndWrite => to_claim,
        };
        for verb in verbs {
            let explain = match *verb {
                "SELECT" => format!("EXPLAIN SELECT {column} FROM {table}"),
                "INSERT" => format!("EXPLAIN INSERT INTO {table} () VALUES ()"),
                "UPDATE" => format!("EXPLAIN UPDATE {table} SET {column} = 0 WHERE FALSE"),
                _ => format!("EXPLAIN DELETE FROM {table} WHERE FALSE"),
            };
            match MySql::rows(&mut connection, &explain, &[]).await {
                Ok(_) => {}
                Err(error) if MySql::is_denied(&error) => {
                    // The statement gives all the rights that are needed on the table.
                    let what = format!("{verb} on {table}");
                    return Err(missing(&mut connection, what, &verbs.join(", "), table).await?);
                }
                Err(error) => return Err(MySql::of_our_call(error)),
            }
        }
    }
    Ok(())
}

/// The error if the call failed because the user lacks the right. Any other error stays as it is.
/// The user gets rights to this column only, because rights to the other columns would let it lower
/// the floor.
pub(super) async fn of_refused_hold(
    connection: &mut MySqlConnection,
    error: FenceError,
) -> FenceError {
    match &error {
        FenceError::Db { source } if MySql::is_denied(source) => {}
        _ => return error,
    }
    let (what, table) = ("state the longest hold".to_owned(), "fenced_forgotten");
    let rights = "SELECT, UPDATE (longest_hold_ms)";
    let missing = missing(connection, what, rights, table).await;
    missing.unwrap_or(error)
}

/// The error that says how this user gets rights on a table.
async fn missing(
    connection: &mut MySqlConnection,
    what: String,
    rights: &str,
    table: &str,
) -> Result<FenceError, FenceError> {
    let user = MySql::look(connection, "SELECT CURRENT_USER()", &[]).await?;
    let user = user.first().map(|row| MySql::text(row, 0)).transpose()?;
    let user = user.unwrap_or_default();
    let (name, host) = user.rsplit_once('@').unwrap_or((&user, "%"));
    Ok(FenceError::NotReady(NotReady::RightMissing {
        what,
        grant: format!("GRANT {rights} ON {table} TO '{name}'@'{host}'"),
    }))
}
