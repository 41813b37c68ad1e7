//! The migrations table, compared with the migrations that this build knows.

use sqlx::migrate::{Migration, Migrator};

use crate::{NotReady, dialect::Queries};

/// A migration that was applied.
pub(super) struct Applied {
    version: i64,
    name: String,
    /// Whether it has ended.
    is_done: bool,
    /// The digest of its text, in hex.
    digest: String,
}

/// Reads the table.
pub(super) async fn read<DB: Queries>(
    table: &'static str,
    connection: &mut DB::Connection,
) -> Result<Vec<Applied>, sqlx::Error> {
    // The digest in hex, because the text of bytes depends on the settings of a session.
    let hex = if DB::NAME == "PostgreSQL" {
        "pg_catalog.encode(checksum, 'hex')"
    } else {
        "HEX(checksum)"
    };
    let rows = format!(
        "SELECT version, description, {hex}, CASE WHEN success THEN 'done' ELSE 'half' END \
         FROM {table} ORDER BY 1"
    );
    let rows = DB::rows(connection, &rows, &[]).await?;
    let applied = |row| {
        Ok(Applied {
            version: DB::number(row, 0)?,
            name: DB::text(row, 1)?,
            digest: DB::text(row, 2)?,
            is_done: DB::text(row, 3)? == "done",
        })
    };
    rows.iter().map(applied).collect()
}

/// Fails with the first difference. A missing migration is reported only if there is no other
/// difference.
pub(super) fn compare(
    migrator: &Migrator,
    table: &'static str,
    applied: &[Applied],
) -> Result<(), NotReady> {
    if let Some(name) = another_first(migrator, applied) {
        return Err(NotReady::BeforeFirstRelease {
            name: name.to_owned(),
            tables: ours(table),
        });
    }
    if let Some(half) = applied.iter().find(|migration| !migration.is_done) {
        return Err(NotReady::HalfApplied {
            version: half.version,
            name: half.name.clone(),
            table,
        });
    }
    let is_unknown = |migration: &&Applied| !migrator.version_exists(migration.version);
    if let Some(newer) = applied.iter().find(is_unknown) {
        let known = migrator.iter().map(|migration| migration.version);
        return Err(NotReady::Newer {
            version: newer.version,
            name: newer.name.clone(),
            known: known.max().unwrap_or_default(),
        });
    }
    let is_other = |applied: &&Applied| {
        let mut same = migrator
            .iter()
            .filter(|known| known.version == applied.version);
        same.any(|known| !hex(&known.checksum).eq_ignore_ascii_case(&applied.digest))
    };
    if let Some(changed) = applied.iter().find(is_other) {
        return Err(NotReady::Changed {
            version: changed.version,
            name: changed.name.clone(),
            tables: ours(table),
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

/// The objects to drop before the database is migrated from the start.
fn ours(table: &str) -> &'static str {
    if table.starts_with("fenced.") {
        "the schemas fenced and fenced_guards"
    } else {
        "those whose names begin with fenced_ or _fenced_"
    }
}

/// The name of the first applied migration, if our first migration has another name.
fn another_first<'a>(migrator: &Migrator, applied: &'a [Applied]) -> Option<&'a str> {
    let first = migrator.iter().next()?;
    let applied = applied
        .iter()
        .find(|applied| applied.version == first.version);
    applied
        .map(|applied| applied.name.as_str())
        .filter(|name| *name != first.description)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The migrations that have not been applied, in their order.
pub(super) fn missing<'a>(
    migrator: &'a Migrator,
    applied: &'a [Applied],
) -> impl Iterator<Item = &'a Migration> {
    let is_applied =
        move |migration: &Migration| applied.iter().any(|done| done.version == migration.version);
    migrator
        .iter()
        .filter(move |migration| !is_applied(migration))
}
