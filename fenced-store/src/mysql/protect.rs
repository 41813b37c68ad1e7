//! Protected tables: a trigger for each event. A change of the schema cannot be undone here, so
//! missing triggers are created before unwanted ones are dropped.

use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Executor, MySqlConnection, MySqlPool};

use super::{error::of_our_call, migrate::lock};
use crate::{
    FenceError,
    literal::literal,
    protection::{Protection, Resources, quoted},
};

/// The prefix of the names of our triggers.
const GUARD: &str = "fenced_guard_";

pub(super) async fn protect(pool: &MySqlPool, protection: &Protection) -> Result<(), FenceError> {
    let mut connection = connect(pool).await?;
    check(&mut connection, protection).await?;
    let ours = our_tables(&mut connection, protection).await?;
    let present = guards(&mut connection, protection).await?;
    let mut kept = Vec::new();
    for (event, body) in bodies(&ours, protection) {
        match present.iter().find(|there| there.is(event, &body)) {
            Some(guard) => kept.push(guard),
            None => create(&mut connection, protection, event, &body).await?,
        }
    }
    for guard in &present {
        if !kept.contains(&guard) {
            guard.remove(&mut connection, protection).await?;
        }
    }
    Ok(connection.close().await?)
}

pub(super) async fn unprotect(pool: &MySqlPool, protection: &Protection) -> Result<(), FenceError> {
    let mut connection = connect(pool).await?;
    for guard in guards(&mut connection, protection).await? {
        guard.remove(&mut connection, protection).await?;
    }
    Ok(connection.close().await?)
}

/// Opens a connection of its own: a trigger keeps the mode of the session that created it, and this
/// session is strict, whatever the application's are. An id that cannot be the name of a resource
/// is then an error. Whoever protects a table meanwhile waits: both would drop the same triggers.
/// Migrations wait, too, so a table that is in use is not waited for as long as is usual, a day.
async fn connect(pool: &MySqlPool) -> Result<MySqlConnection, FenceError> {
    let mut connection = pool.connect_options().as_ref().clone().connect().await?;
    connection
        .execute("SET SESSION sql_mode = 'STRICT_ALL_TABLES', lock_wait_timeout = 50")
        .await?;
    lock(&mut connection).await?;
    Ok(connection)
}

async fn check(
    connection: &mut MySqlConnection,
    protection: &Protection,
) -> Result<(), FenceError> {
    let Protection { schema, table, .. } = protection;
    let engine: Option<Option<String>> = sqlx::query_scalar(
        "SELECT engine FROM information_schema.tables
         WHERE table_schema = COALESCE(?, DATABASE()) AND table_name = ?
           AND table_type = 'BASE TABLE'",
    )
    .bind(schema)
    .bind(table)
    .fetch_optional(&mut *connection)
    .await?;
    match engine {
        Some(Some(engine)) if engine.eq_ignore_ascii_case("InnoDB") => {}
        Some(_) => return cannot(format!("{table} is not in InnoDB: it has no transactions")),
        None => return cannot(format!("there is no table {table}")),
    }
    let Resources::Rows { id_column, .. } = &protection.resources else {
        return Ok(());
    };
    let column: Option<String> = sqlx::query_scalar(
        "SELECT column_name FROM information_schema.columns
         WHERE table_schema = COALESCE(?, DATABASE()) AND table_name = ? AND column_name = ?",
    )
    .bind(schema)
    .bind(table)
    .bind(id_column)
    .fetch_optional(connection)
    .await?;
    match column {
        Some(_) => Ok(()),
        None => cannot(format!("{table} has no column {id_column}")),
    }
}

fn cannot(reason: String) -> Result<(), FenceError> {
    Err(FenceError::CannotProtect { reason })
}

/// The prefix of the names of our tables: a trigger looks for them in the database of its own
/// table.
async fn our_tables(
    connection: &mut MySqlConnection,
    protection: &Protection,
) -> Result<String, FenceError> {
    if protection.schema.is_none() {
        return Ok(String::new());
    }
    let database: String = sqlx::query_scalar("SELECT DATABASE()")
        .fetch_one(connection)
        .await?;
    Ok(quoted(&database, '`') + ".")
}

/// One of our triggers.
#[derive(Debug, PartialEq, Eq, sqlx::FromRow)]
struct Guard {
    name: String,
    event: String,
    body: String,
}

impl Guard {
    fn is(&self, event: &str, body: &str) -> bool {
        self.event == event && self.body == body
    }

    async fn remove(
        &self,
        connection: &mut MySqlConnection,
        protection: &Protection,
    ) -> Result<(), FenceError> {
        let drop = format!("DROP TRIGGER {}", beside(protection, &self.name));
        connection.execute(AssertSqlSafe(drop)).await?;
        Ok(())
    }
}

async fn guards(
    connection: &mut MySqlConnection,
    protection: &Protection,
) -> Result<Vec<Guard>, FenceError> {
    let guards = sqlx::query_as(
        "SELECT trigger_name AS name, event_manipulation AS event, action_statement AS body
         FROM information_schema.triggers
         WHERE event_object_schema = COALESCE(?, DATABASE()) AND event_object_table = ?
           AND LEFT(trigger_name, CHAR_LENGTH(?)) = ?",
    )
    .bind(&protection.schema)
    .bind(&protection.table)
    .bind(GUARD)
    .bind(GUARD);
    guards.fetch_all(connection).await.map_err(of_our_call)
}

async fn create(
    connection: &mut MySqlConnection,
    protection: &Protection,
    event: &str,
    body: &str,
) -> Result<(), FenceError> {
    // The names of triggers are unique in the whole database, and short.
    let name = format!("{GUARD}{:016x}", rand::random::<u64>());
    let create = format!(
        "CREATE TRIGGER {} AFTER {event} ON {} FOR EACH ROW {body}",
        beside(protection, &name),
        protection.quoted('`'),
    );
    connection.execute(AssertSqlSafe(create)).await?;
    Ok(())
}

/// A name in the database of the table.
fn beside(protection: &Protection, name: &str) -> String {
    match &protection.schema {
        Some(schema) => format!("{}.{}", quoted(schema, '`'), quoted(name, '`')),
        None => quoted(name, '`'),
    }
}

/// The variables come first. All looks in a trigger are locking, and one for a note that does not
/// exist would hold up others for as long as the transaction of a refused write stays open.
///
/// The second one, the resources that were entered, is ours alone: a client that enters by SQL may
/// leave it out, and has others wait if it writes where it must not.
///
/// They let nobody in by themselves: anybody can set them, and they outlive a transaction that is
/// rolled back. A write after that, outside of any fence, is refused for its resource, or for lack
/// of the note.
///
/// The triggers run after the event, when the id that the database has given to a new row is known.
fn bodies(ours: &str, protection: &Protection) -> [(&'static str, String); 3] {
    let bodies = [
        ("INSERT", &["NEW"][..]),
        ("UPDATE", &["OLD", "NEW"]),
        ("DELETE", &["OLD"]),
    ];
    bodies.map(|(event, rows)| {
        let checks: String = rows
            .iter()
            .map(|row| {
                let resource = match &protection.resources {
                    Resources::Table(resource) => literal(resource.as_str()),
                    Resources::Rows { id_column, prefix } => {
                        let prefix = literal(prefix.as_str());
                        format!("CONCAT({prefix}, {row}.{})", quoted(id_column, '`'))
                    }
                };
                format!(
                    include_str!("sql/guard.sql"),
                    ours = ours,
                    resource = resource
                )
            })
            .collect();
        let variables = include_str!("sql/guard_variables.sql");
        (event, format!("BEGIN\n{variables}{checks}END"))
    })
}
