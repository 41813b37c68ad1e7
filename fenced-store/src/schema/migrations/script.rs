use sqlx::migrate::Migration;

use super::Migrations;

/// All migrations, with the entries in the migrations table that [`apply`](super::apply) makes.
pub(crate) fn script(words: &Migrations) -> String {
    let Migrations {
        migrator,
        first,
        last,
        table,
        time,
        bytes,
        ..
    } = words;
    let migrations: String = migrator.iter().map(|one| step(one, words)).collect();
    let version = env!("CARGO_PKG_VERSION");
    format!(
        "\
-- The tables of fenced-store {version}, for a database that has none of them yet.
{first}
CREATE TABLE IF NOT EXISTS {table} (
    version BIGINT PRIMARY KEY,
    description TEXT NOT NULL,
    installed_on {time},
    success BOOLEAN NOT NULL,
    checksum {bytes} NOT NULL,
    execution_time BIGINT NOT NULL
);
{migrations}
{last}
"
    )
}

fn step(migration: &Migration, words: &Migrations) -> String {
    let (version, name, table) = (migration.version, &migration.description, words.table);
    let sql = migration.sql.as_str().trim_end();
    let (before, after) = words.uncut;
    let digits = migration.checksum.iter().map(|byte| format!("{byte:02x}"));
    let checksum: String = digits.collect();
    let checksum = match words.bytes {
        "BYTEA" => format!("decode('{checksum}', 'hex')"),
        _ => format!("x'{checksum}'"),
    };
    let entry = |success: &str| {
        format!(
            "INSERT INTO {table} (version, description, success, checksum, execution_time)\n\
             VALUES ({version}, '{name}', {success}, {checksum}, -1);"
        )
    };
    let title = format!("\n-- {version:04} {name}\n");
    if words.is_recorded_first {
        let done = format!("UPDATE {table} SET success = TRUE WHERE version = {version};");
        return format!(
            "{title}{}\n\n{before}{sql}{after}\n\n{done}\n",
            entry("FALSE")
        );
    }
    format!("{title}{before}{sql}{after}\n\n{}\n", entry("TRUE"))
}
