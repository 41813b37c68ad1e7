//! The migrations table, compared with the migrations that this build knows.

use sqlx::{
    AssertSqlSafe, Executor, FromRow,
    migrate::{Migration, Migrator},
};

use crate::NotReady;

/// The number of a migration, its name, whether it came to its end, and the digest of its text in
/// hex.
pub(super) type Row = (i64, String, bool, String);

/// Reads the table. Nothing is prepared: a pooler in transaction mode could not follow.
pub(super) async fn read<DB>(
    table: &'static str,
    connection: &mut DB::Connection,
) -> Result<Vec<Row>, sqlx::Error>
where
    DB: sqlx::Database,
    for<'c> &'c mut DB::Connection: Executor<'c, Database = DB>,
    for<'r> Row: FromRow<'r, DB::Row>,
{
    // The digest as text: what the text of bytes is depends on the settings of a session.
    let hex = if DB::NAME == "PostgreSQL" {
        "encode(checksum, 'hex')"
    } else {
        "HEX(checksum)"
    };
    let rows = format!("SELECT version, description, success, {hex} FROM {table} ORDER BY 1");
    let rows = connection.fetch_all(sqlx::raw_sql(AssertSqlSafe(rows)));
    rows.await?.iter().map(FromRow::from_row).collect()
}

/// Fails with the first thing that is wrong. Only if nothing else is, a migration is missing.
pub(super) fn compare(
    migrator: &Migrator,
    table: &'static str,
    applied: &[Row],
) -> Result<(), NotReady> {
    if let Some(name) = another_first(migrator, applied) {
        return Err(NotReady::BeforeFirstRelease {
            name: name.to_owned(),
            tables: if table.starts_with("fenced.") {
                "the schema fenced"
            } else {
                "those whose names begin with fenced_ or _fenced_"
            },
        });
    }
    if let Some((version, name, ..)) = applied.iter().find(|(_, _, is_done, _)| !is_done) {
        return Err(NotReady::HalfApplied {
            version: *version,
            name: name.clone(),
            table,
        });
    }
    if let Some((version, name, ..)) = applied
        .iter()
        .find(|(version, ..)| !migrator.version_exists(*version))
    {
        let known = migrator.iter().map(|migration| migration.version);
        return Err(NotReady::Newer {
            version: *version,
            name: name.clone(),
            known: known.max().unwrap_or_default(),
        });
    }
    let is_other = |(version, _, _, digest): &&Row| {
        let mut same = migrator.iter().filter(|known| known.version == *version);
        same.any(|known| !hex(&known.checksum).eq_ignore_ascii_case(digest))
    };
    if let Some((version, name, ..)) = applied.iter().find(is_other) {
        return Err(NotReady::Changed {
            version: *version,
            name: name.clone(),
        });
    }
    match missing(migrator, applied).next() {
        None => Ok(()),
        Some(missing) => Err(NotReady::Missing {
            version: missing.version,
            name: missing.description.to_string(),
        }),
    }
}

/// The name of the first migration that was applied, if it is not that of ours.
fn another_first<'a>(migrator: &Migrator, applied: &'a [Row]) -> Option<&'a str> {
    let first = migrator.iter().next()?;
    let applied = applied
        .iter()
        .find(|(version, ..)| *version == first.version);
    applied
        .map(|(_, name, ..)| name.as_str())
        .filter(|name| *name != first.description)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The migrations that have not been applied, in their order.
pub(super) fn missing<'a>(
    migrator: &'a Migrator,
    applied: &'a [Row],
) -> impl Iterator<Item = &'a Migration> {
    let is_applied =
        move |migration: &Migration| applied.iter().any(|(done, ..)| *done == migration.version);
    migrator
        .iter()
        .filter(move |migration| !is_applied(migration))
}
