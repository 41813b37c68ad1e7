//! Protected tables. The triggers of a table are created in one transaction.

use sqlx::{Sqlite, SqliteConnection, SqlitePool};

use crate::{
    FenceError,
    dialect::{Errors, Operations, Queries, Value::Text},
    schema::{
        protection::{Protection, Resources},
        triggers::{self, GUARD, Table, TriggerWording},
    },
    transaction::leaked::begin_unfenced,
};

impl TriggerWording for Sqlite {
    const QUOTE: char = '"';

    /// The query finds the triggers by their table and not by their names, because the table may
    /// have been renamed. There are no schemas, so the first parameter is always empty.
    const GUARDS: &'static str = "SELECT name, substr(sql, instr(sql, ' AFTER ') + 7, 6), \
         substr(sql, instr(sql, ' FOR EACH ROW ') + 14) FROM sqlite_schema \
         WHERE ?1 = '' AND type = 'trigger' AND tbl_name = ?2 AND substr(name, 1, length(?3)) = ?3";

    /// The name of the resource. It is null, which is no resource, for an id that is neither an
    /// integer nor a text: the text of a real number depends on the version of SQLite, and the text
    /// of a blob may be the same as that of another row.
    fn joined(prefix: &str, id: &str) -> String {
        format!("CASE WHEN typeof({id}) IN ('integer', 'text') THEN {prefix} || {id} END")
    }

    /// The checks fail unless each resource fences the transaction, and the mark of the resource
    /// still shows the token of the transaction. A null resource fences no transaction. Before
    /// SQLite 3.47 the text of `RAISE` has to be a constant.
    fn body(table: &Table<'_>, resources: &[String]) -> String {
        let text = |refusal: &str| format!("'{refusal} {}'", table.name.replace('\'', "''"));
        let check = |resource: &String| {
            format!(
                include_str!("sql/guard.sql"),
                resource = resource,
                unfenced = text("FN010 unfenced write to"),
                wrong = text("FN011 write under another fence to"),
                stale = text("FN001 write under a fence that is over to"),
            )
        };
        let checks: String = resources.iter().map(check).collect();
        format!("BEGIN\n{checks}END")
    }
}

pub(super) async fn change(
    pool: &SqlitePool,
    protection: &Protection,
    protects: bool,
) -> Result<(), FenceError> {
    let mut tx = begin_unfenced(pool).await?;
    let table = Table {
        schema: None,
        name: &name(&mut tx, protection).await?,
        resources: &protection.resources,
        ours: String::new(),
    };
    if protects {
        triggers::protect::<Sqlite>(&mut tx, &table).await?;
    } else {
        triggers::unprotect::<Sqlite>(&mut tx, &table).await?;
    }
    list_protected(&mut tx).await?;
    tx.commit().await.map_err(Sqlite::of_commit)
}

/// Lists the tables that have our triggers, by their present names.
async fn list_protected(connection: &mut SqliteConnection) -> Result<(), FenceError> {
    Sqlite::look(connection, "DELETE FROM fenced_protected", &[]).await?;
    let list = "INSERT INTO fenced_protected (name) SELECT DISTINCT tbl_name FROM sqlite_schema \
                WHERE type = 'trigger' AND substr(name, 1, length(?1)) = ?1";
    Sqlite::change(connection, list, &[Text(GUARD)])
        .await
        .map(drop)
}

/// The name of the table, spelled as it was created. Fails if there is no such table, or if it
/// lacks the column of the ids.
async fn name(
    connection: &mut SqliteConnection,
    protection: &Protection,
) -> Result<String, FenceError> {
    let (schema, table) = (protection.schema.as_deref(), &protection.table);
    if schema.is_some_and(|schema| schema != "main") {
        return Err(FenceError::cannot_protect(
            "its triggers could only work in the schema main, and not in the named one",
        ));
    }
    let of_table =
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name = ? COLLATE NOCASE";
    let named = Sqlite::look(connection, of_table, &[Text(table)]).await?;
    let Some(row) = named.first() else {
        return Err(FenceError::cannot_protect(format!(
            "there is no table {table}"
        )));
    };
    let name = Sqlite::text(row, 0)?;
    if let Resources::Rows { id_column, .. } = &protection.resources {
        let of_column = "SELECT 1 FROM pragma_table_xinfo(?) WHERE name = ? COLLATE NOCASE";
        let column = Sqlite::look(connection, of_column, &[Text(&name), Text(id_column)]).await?;
        if column.is_empty() {
            return Err(FenceError::cannot_protect(format!(
                "{name} has no column {id_column}"
            )));
        }
    }
    Ok(name)
}
