//! Protected tables: a trigger for each event, created in one transaction.

use sqlx::{AssertSqlSafe, Executor, SqliteConnection, SqlitePool};

use super::error::{of_commit, of_our_call};
use crate::{
    FenceError,
    admin::by_statements::begin_unfenced,
    literal::literal,
    protection::{Protection, Resources, quoted},
};

/// The prefix of the names of our triggers. A random number follows: a table that was renamed keeps
/// its triggers and their names, and its old name may be given to another table.
const GUARD: &str = "fenced_guard";

/// The events of the triggers, and the rows that each has to judge.
const EVENTS: [(&str, &[&str]); 3] = [
    ("INSERT", &["NEW"]),
    ("UPDATE", &["OLD", "NEW"]),
    ("DELETE", &["OLD"]),
];

pub(super) async fn protect(pool: &SqlitePool, protection: &Protection) -> Result<(), FenceError> {
    let mut tx = begin_unfenced(pool).await?;
    let table = table(&mut tx, protection).await?;
    let wanted = |name: &str, event| trigger(name, event, &table, &protection.resources);
    let present = guards(&mut tx, &table).await?;
    let is_there = |event| {
        present
            .iter()
            .any(|(name, sql)| *sql == wanted(name, event))
    };
    if present.len() == EVENTS.len() && EVENTS.into_iter().all(is_there) {
        return Ok(tx.rollback().await?);
    }
    drop_guards(&mut tx, &table).await?;
    for event in EVENTS {
        let name = format!("{GUARD}_{:016x}", rand::random::<u64>());
        tx.execute(AssertSqlSafe(wanted(&name, event))).await?;
    }
    list_protected(&mut tx).await?;
    tx.commit().await.map_err(of_commit)
}

pub(super) async fn unprotect(
    pool: &SqlitePool,
    protection: &Protection,
) -> Result<(), FenceError> {
    let mut tx = begin_unfenced(pool).await?;
    let table = table(&mut tx, protection).await?;
    drop_guards(&mut tx, &table).await?;
    list_protected(&mut tx).await?;
    tx.commit().await.map_err(of_commit)
}

/// Lists the tables that have our triggers, by their present names.
async fn list_protected(connection: &mut SqliteConnection) -> Result<(), FenceError> {
    connection
        .execute("DELETE FROM fenced_protected")
        .await
        .map_err(of_our_call)?;
    sqlx::query(
        "INSERT INTO fenced_protected (name) SELECT DISTINCT tbl_name FROM sqlite_schema
         WHERE type = 'trigger' AND substr(name, 1, length($1)) = $1",
    )
    .bind(GUARD)
    .execute(connection)
    .await
    .map_err(of_our_call)?;
    Ok(())
}

/// The name of the table, spelled as it was created. Fails if there is no such table, or if it does
/// not have the column of the ids.
async fn table(
    connection: &mut SqliteConnection,
    protection: &Protection,
) -> Result<String, FenceError> {
    if protection
        .schema
        .as_deref()
        .is_some_and(|schema| schema != "main")
    {
        return Err(cannot(
            "its triggers could not see this schema, which is not main",
        ));
    }
    let table: Option<String> = sqlx::query_scalar(
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name = $1 COLLATE NOCASE",
    )
    .bind(&protection.table)
    .fetch_optional(&mut *connection)
    .await?;
    let table = table.ok_or_else(|| cannot(&format!("there is no table {}", protection.table)))?;
    if let Resources::Rows { id_column, .. } = &protection.resources {
        let column: Option<String> = sqlx::query_scalar(
            "SELECT name FROM pragma_table_xinfo($1) WHERE name = $2 COLLATE NOCASE",
        )
        .bind(&table)
        .bind(id_column)
        .fetch_optional(connection)
        .await?;
        if column.is_none() {
            return Err(cannot(&format!("{table} has no column {id_column}")));
        }
    }
    Ok(table)
}

fn cannot(reason: &str) -> FenceError {
    let reason = reason.to_owned();
    FenceError::CannotProtect { reason }
}

/// Our triggers on a table, with their statements. They are found by their table and not by their
/// names, because the table may have been renamed since.
async fn guards(
    connection: &mut SqliteConnection,
    table: &str,
) -> Result<Vec<(String, String)>, FenceError> {
    let guards = sqlx::query_as(
        "SELECT name, sql FROM sqlite_schema
         WHERE type = 'trigger' AND tbl_name = $1 AND substr(name, 1, length($2)) = $2",
    )
    .bind(table)
    .bind(GUARD);
    Ok(guards.fetch_all(connection).await?)
}

async fn drop_guards(connection: &mut SqliteConnection, table: &str) -> Result<(), FenceError> {
    for (name, _) in guards(connection, table).await? {
        let drop = format!("DROP TRIGGER {}", quoted(&name, '"'));
        connection.execute(AssertSqlSafe(drop)).await?;
    }
    Ok(())
}

/// It runs after the event, when the id that the database has given to a new row is known.
fn trigger(
    name: &str,
    (event, rows): (&str, &[&str]),
    table: &str,
    resources: &Resources,
) -> String {
    let checks: String = match resources {
        Resources::Table(resource) => check(table, &literal(resource.as_str())),
        Resources::Rows { id_column, prefix } => rows
            .iter()
            .map(|row| {
                let prefix = literal(prefix.as_str());
                let id_column = quoted(id_column, '"');
                check(table, &format!("{prefix} || {row}.{id_column}"))
            })
            .collect(),
    };
    let (name, table) = (quoted(name, '"'), quoted(table, '"'));
    format!("CREATE TRIGGER {name} AFTER {event} ON {table} BEGIN\n{checks}END")
}

/// A check that fails unless the resource was entered, and the mark still shows the token with
/// which it was. A resource that is null was not entered. Before SQLite 3.47 the text of `RAISE`
/// has to be a constant.
fn check(table: &str, resource: &str) -> String {
    let text = |refusal: &str| format!("'{refusal} {}'", table.replace('\'', "''"));
    format!(
        include_str!("sql/guard.sql"),
        resource = resource,
        unfenced = text("FN010 unfenced write to"),
        wrong = text("FN011 write under another fence to"),
        stale = text("FN001 write under a fence that is over to"),
    )
}
