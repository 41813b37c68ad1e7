//! The triggers of protected tables, in databases without functions of ours. A table has one
//! trigger for each event.

use crate::{
    FenceError,
    dialect::{Operations, Value::Text, literal::literal},
    schema::protection::{Resources, quoted},
};

/// The words in which the triggers of these databases differ.
pub(crate) trait TriggerWording: Operations {
    /// The quote around names.
    const QUOTE: char;

    /// The query for our triggers on a table: name, event and body of each. Its parameters are the
    /// schema (empty if there is none), the table, and the prefix of the names of the triggers.
    const GUARDS: &'static str;

    /// Joins the prefix of the names of resources and the id of a row.
    fn joined(prefix: &str, id: &str) -> String;

    /// The body of a trigger that lets an event pass if these resources fence the transaction.
    fn body(table: &Table<'_>, resources: &[String]) -> String;
}

/// A table that exists, and is to be protected.
pub(crate) struct Table<'a> {
    pub(crate) schema: Option<&'a str>,
    /// The name, spelled as the table was created.
    pub(crate) name: &'a str,
    pub(crate) resources: &'a Resources,
    /// The prefix of the names of our tables, which may be in another database.
    #[cfg_attr(
        not(feature = "mysql"),
        expect(dead_code, reason = "there is one schema")
    )]
    pub(crate) ours: String,
}

/// The prefix of the names of our triggers. A random number follows, because such a name has to be
/// unique in the whole database, and a renamed table keeps its triggers.
pub(crate) const GUARD: &str = "fenced_guard_";

/// The events of the triggers, and the rows that each trigger has to check.
const EVENTS: [(&str, &[&str]); 3] = [
    ("INSERT", &["NEW"]),
    ("UPDATE", &["OLD", "NEW"]),
    ("DELETE", &["OLD"]),
];

/// One of our triggers.
struct Guard {
    name: String,
    event: String,
    body: String,
}

/// Creates the missing triggers before it drops the unwanted ones, because not every database could
/// roll back the drop.
pub(crate) async fn protect<DB: TriggerWording>(
    connection: &mut DB::Connection,
    table: &Table<'_>,
) -> Result<(), FenceError> {
    let mut unwanted = guards::<DB>(connection, table).await?;
    for (event, rows) in EVENTS {
        let body = DB::body(table, &resources::<DB>(table, rows));
        let is_wanted = |guard: &Guard| guard.event == event && guard.body == body;
        match unwanted.iter().position(is_wanted) {
            Some(at) => drop(unwanted.swap_remove(at)),
            None => create::<DB>(connection, table, event, &body).await?,
        }
    }
    remove::<DB>(connection, table, unwanted).await
}

pub(crate) async fn unprotect<DB: TriggerWording>(
    connection: &mut DB::Connection,
    table: &Table<'_>,
) -> Result<(), FenceError> {
    let all = guards::<DB>(connection, table).await?;
    remove::<DB>(connection, table, all).await
}

async fn guards<DB: TriggerWording>(
    connection: &mut DB::Connection,
    table: &Table<'_>,
) -> Result<Vec<Guard>, FenceError> {
    let schema = table.schema.unwrap_or_default();
    let values = [Text(schema), Text(table.name), Text(GUARD)];
    let guard = |row| {
        Ok(Guard {
            name: DB::text(row, 0)?,
            event: DB::text(row, 1)?,
            body: DB::text(row, 2)?,
        })
    };
    let guards = DB::look(connection, DB::GUARDS, &values).await?;
    guards.iter().map(guard).collect()
}

/// The triggers run after the event, because the id that the database gives to a new row is known
/// only then.
async fn create<DB: TriggerWording>(
    connection: &mut DB::Connection,
    table: &Table<'_>,
    event: &str,
    body: &str,
) -> Result<(), FenceError> {
    let name = format!("{GUARD}{:016x}", rand::random::<u64>());
    let (name, table) = (beside::<DB>(table, &name), beside::<DB>(table, table.name));
    let create = format!("CREATE TRIGGER {name} AFTER {event} ON {table} FOR EACH ROW {body}");
    DB::rows(connection, &create, &[]).await?;
    Ok(())
}

async fn remove<DB: TriggerWording>(
    connection: &mut DB::Connection,
    table: &Table<'_>,
    guards: Vec<Guard>,
) -> Result<(), FenceError> {
    for Guard { name, .. } in guards {
        let drop = format!("DROP TRIGGER {}", beside::<DB>(table, &name));
        DB::rows(connection, &drop, &[]).await?;
    }
    Ok(())
}

/// A name in the schema of the table.
fn beside<DB: TriggerWording>(table: &Table<'_>, name: &str) -> String {
    let name = quoted(name, DB::QUOTE);
    match table.schema {
        Some(schema) => format!("{}.{name}", quoted(schema, DB::QUOTE)),
        None => name,
    }
}

/// The resources that an event is about, as expressions.
fn resources<DB: TriggerWording>(table: &Table<'_>, rows: &[&str]) -> Vec<String> {
    match table.resources {
        Resources::Table(resource) => vec![literal(resource.as_str())],
        Resources::Rows { id_column, prefix } => {
            let (prefix, id) = (literal(prefix.as_str()), quoted(id_column, DB::QUOTE));
            let resource = |row: &&str| DB::joined(&prefix, &format!("{row}.{id}"));
            rows.iter().map(resource).collect()
        }
    }
}
