//! The file, and the URL that names it.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use lock_core::{
    Error, ErrorKind,
    backend::support::{connecting::invalid, database_url},
};
#[cfg(target_os = "linux")]
use rustix::fs::FsWord;
use sqlx::{
    ConnectOptions as _, SqliteConnection,
    sqlite::{SqliteConnectOptions, SqliteJournalMode},
};

use super::error::translate;

/// The time for which a writer waits for others when it makes the tables and gives the file a
/// write-ahead log.
const SETUP_TIMEOUT: Duration = Duration::from_secs(2);

/// The file of the leases.
#[derive(Clone, Debug)]
pub(super) struct File(SqliteConnectOptions);

impl File {
    /// The file that a URL names. It is made if it is missing.
    pub(super) fn of_url(url: &str) -> Result<Self, Error> {
        if !url.starts_with("sqlite:") {
            return Err(invalid("not a URL, such as sqlite:palisade.db"));
        }
        if url.contains(":memory:") || url.contains("mode=memory") {
            return Err(in_memory());
        }
        let options: SqliteConnectOptions = database_url::parse(url, |options, _| options)?;
        let query = url.split_once('?').map_or("", |(_, query)| query);
        Self::of(match query.contains("mode=") {
            true => options,
            false => options.create_if_missing(true),
        })
    }

    /// The file of these options.
    pub(super) fn of(options: SqliteConnectOptions) -> Result<Self, Error> {
        let path = options.get_filename();
        if path.as_os_str().is_empty() {
            return Err(in_memory());
        }
        if is_on_network(path) {
            return Err(Error::not_applied(ErrorKind::Unsupported).because(format!(
                "{} is on a network file system, whose locks SQLite cannot rely on: put the \
                 leases on a disk of this host",
                path.display()
            )));
        }
        let options = options.foreign_keys(false).disable_statement_logging();
        Ok(Self(options))
    }

    /// Opens the file, gives it a write-ahead log, and makes the tables if they are missing.
    pub(super) async fn open_writer(&self) -> Result<SqliteConnection, Error> {
        let options = self.0.clone().busy_timeout(SETUP_TIMEOUT);
        let options = options.journal_mode(SqliteJournalMode::Wal);
        let mut connection = options.connect().await.map_err(translate)?;
        let mode: String = value(&mut connection, "PRAGMA main.journal_mode").await?;
        if mode != "wal" {
            let error = Error::not_applied(ErrorKind::Refused);
            return Err(error.because(format!(
                "the file cannot have a write-ahead log: its journal mode is {mode:?}"
            )));
        }
        const LAST_MADE: &str =
            "SELECT count(*) FROM main.sqlite_schema WHERE name = 'fenced_lease_above_floor'";
        if value::<i64>(&mut connection, LAST_MADE).await? == 0 {
            const MAKE: &str = concat!("BEGIN IMMEDIATE;", include_str!("leases.sql"), "COMMIT;");
            let made = sqlx::raw_sql(MAKE).execute(&mut connection).await;
            made.map_err(translate)?;
        }
        let set = sqlx::query("PRAGMA busy_timeout = 0")
            .execute(&mut connection)
            .await;
        set.map_err(translate)?;
        Ok(connection)
    }

    /// Opens a file that already has its tables.
    pub(super) async fn open_reader(&self) -> Result<SqliteConnection, Error> {
        let options = self.0.clone().pragma("query_only", "ON");
        options.connect().await.map_err(translate)
    }
}

fn in_memory() -> Error {
    invalid("leases in memory are of no use to another process: name a file, as in sqlite:FILE")
}

async fn value<T>(connection: &mut SqliteConnection, query: &'static str) -> Result<T, Error>
where
    T: for<'r> sqlx::Decode<'r, sqlx::Sqlite> + sqlx::Type<sqlx::Sqlite> + Send + Unpin,
{
    let value = sqlx::query_scalar(query).fetch_one(connection).await;
    value.map_err(translate)
}

/// Whether the file, or the folder where it will be, is on a network file system, as far as this
/// can be seen.
#[cfg(target_os = "linux")]
fn is_on_network(file: &Path) -> bool {
    let folder = || match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
        _ => PathBuf::from("."),
    };
    let seen = rustix::fs::statfs(file).or_else(|_| rustix::fs::statfs(folder()));
    seen.is_ok_and(|seen| is_of_network(seen.f_type))
}

#[cfg(not(target_os = "linux"))]
const fn is_on_network(_file: &Path) -> bool {
    false
}

/// Whether this is the number of a network file system. The numbers are those of `statfs(2)`.
#[cfg(target_os = "linux")]
const fn is_of_network(kind: FsWord) -> bool {
    const NFS: FsWord = 0x6969;
    const SMB: FsWord = 0x517B;
    const SMB2: FsWord = 0xFE53_4D42;
    const CIFS: FsWord = 0xFF53_4D42;
    const AFS: FsWord = 0x5346_414F;
    const CEPH: FsWord = 0x00C3_6400;
    const CODA: FsWord = 0x7375_7245;
    const GFS2: FsWord = 0x0116_1970;
    const LUSTRE: FsWord = 0x0BD0_0BD0;
    const OCFS2: FsWord = 0x7461_636F;
    matches!(
        kind,
        NFS | SMB | SMB2 | CIFS | AFS | CEPH | CODA | GFS2 | LUSTRE | OCFS2
    )
}
