//! Protected tables. MySQL and MariaDB cannot roll back a change of the schema.

use sqlx::{Connection, MySql, MySqlConnection, MySqlPool};

use super::schema_lock::locked;
use crate::{
    FenceError,
    dialect::{Operations, Queries, Value::Text},
    schema::{
        protection::{Protection, Resources, quoted},
        triggers::{self, Table, TriggerWording},
    },
};

impl TriggerWording for MySql {
    const QUOTE: char = '`';

    const GUARDS: &'static str = "SELECT trigger_name, event_manipulation, action_statement \
         FROM information_schema.triggers \
         WHERE event_object_schema = COALESCE(NULLIF(?, ''), DATABASE()) \
           AND event_object_table = ? AND LOCATE(?, trigger_name) = 1";

    fn joined(prefix: &str, id: &str) -> String {
        format!("CONCAT({prefix}, {id})")
    }

    /// The trigger looks at the variables first. All reads in a trigger are locking, and a read of
    /// a missing note would hold up others until the transaction of a refused write ends.
    ///
    /// The second variable holds the resources that fence the transaction. A client that begins by
    /// SQL in another language need not set the second variable. Its refused writes then make
    /// others wait.
    ///
    /// The variables alone let no write in, because every client can set them and they outlive a
    /// transaction that is rolled back. A later write without a fence is refused for its resource,
    /// or because the note is missing.
    fn body(table: &Table<'_>, resources: &[String]) -> String {
        let ours = &table.ours;
        let check = |resource: &String| {
            format!(
                include_str!("sql/guard.sql"),
                ours = ours,
                resource = resource
            )
        };
        let checks: String = resources.iter().map(check).collect();
        let variables = include_str!("sql/guard_variables.sql");
        format!("BEGIN\n{variables}{checks}END")
    }
}

pub(super) async fn protect(pool: &MySqlPool, protection: &Protection) -> Result<(), FenceError> {
    let mut connection = connect(pool).await?;
    check(&mut connection, protection).await?;
    let table = Table {
        ours: our_tables(&mut connection, protection).await?,
        ..table(protection)
    };
    triggers::protect::<MySql>(&mut connection, &table).await?;
    Ok(connection.close().await?)
}

pub(super) async fn unprotect(pool: &MySqlPool, protection: &Protection) -> Result<(), FenceError> {
    let mut connection = connect(pool).await?;
    triggers::unprotect::<MySql>(&mut connection, &table(protection)).await?;
    Ok(connection.close().await?)
}

fn table(protection: &Protection) -> Table<'_> {
    Table {
        schema: protection.schema.as_deref(),
        name: &protection.table,
        resources: &protection.resources,
        ours: String::new(),
    }
}

/// Opens a connection of its own, because a trigger keeps the mode of the session that created it.
/// This session is strict, even if the sessions of the application are not. An id that cannot be
/// part of the name of a resource is then an error.
async fn connect(pool: &MySqlPool) -> Result<MySqlConnection, FenceError> {
    let mut connection = locked(pool).await?;
    MySql::rows(
        &mut connection,
        "SET SESSION sql_mode = 'STRICT_ALL_TABLES'",
        &[],
    )
    .await?;
    Ok(connection)
}

/// The types of columns whose text is the same in every session, and different for different ids.
///
/// The text of a TIMESTAMP depends on `time_zone`. A FLOAT shows only six digits. BIT and the
/// binary types have bytes that no name contains. The labels of an ENUM or a SET can be renamed
/// without a write to a row.
const ID_TYPES: [&str; 13] = [
    "tinyint",
    "smallint",
    "mediumint",
    "int",
    "bigint",
    "decimal",
    "char",
    "varchar",
    "tinytext",
    "text",
    "mediumtext",
    "longtext",
    "uuid",
];

async fn check(
    connection: &mut MySqlConnection,
    protection: &Protection,
) -> Result<(), FenceError> {
    let (schema, table) = (
        protection.schema.as_deref().unwrap_or_default(),
        &protection.table,
    );
    let engine = "SELECT COALESCE(engine, '') FROM information_schema.tables \
                  WHERE table_schema = COALESCE(NULLIF(?, ''), DATABASE()) AND table_name = ? \
                    AND table_type = 'BASE TABLE'";
    let engine = MySql::look(connection, engine, &[Text(schema), Text(table)]).await?;
    let Some(row) = engine.first() else {
        return Err(FenceError::cannot_protect(format!(
            "there is no table {table}"
        )));
    };
    if !MySql::text(row, 0)?.eq_ignore_ascii_case("InnoDB") {
        let reason = format!("{table} is not in InnoDB: it has no transactions");
        return Err(FenceError::cannot_protect(reason));
    }
    let Resources::Rows { id_column, .. } = &protection.resources else {
        return Ok(());
    };
    let column = "SELECT data_type, extra FROM information_schema.columns \
                  WHERE table_schema = COALESCE(NULLIF(?, ''), DATABASE()) AND table_name = ? \
                    AND column_name = ?";
    let values = [Text(schema), Text(table), Text(id_column)];
    let column = MySql::look(connection, column, &values).await?;
    let Some(row) = column.first() else {
        return Err(FenceError::cannot_protect(format!(
            "{table} has no column {id_column}"
        )));
    };
    let (data_type, extra) = (MySql::text(row, 0)?, MySql::text(row, 1)?);
    if !ID_TYPES.contains(&&*data_type) {
        return Err(FenceError::cannot_protect(format!(
            "the text of {table}.{id_column}, a {data_type}, may differ between sessions or be \
             the same for several ids: name a column of integers, DECIMAL, CHAR, VARCHAR, TEXT or \
             UUID, such as a generated one that is STORED"
        )));
    }
    if extra.contains("VIRTUAL") {
        return Err(FenceError::cannot_protect(format!(
            "each session computes {table}.{id_column} anew, by its own settings: make the \
             generated column STORED"
        )));
    }
    Ok(())
}

/// The prefix of the names of our tables. Without it a trigger looks for them in the database of
/// its own table.
async fn our_tables(
    connection: &mut MySqlConnection,
    protection: &Protection,
) -> Result<String, FenceError> {
    if protection.schema.is_none() {
        return Ok(String::new());
    }
    let database = MySql::look(connection, "SELECT DATABASE()", &[]).await?;
    let database = database
        .first()
        .map(|row| MySql::text(row, 0))
        .transpose()?;
    Ok(quoted(&database.unwrap_or_default(), '`') + ".")
}
