use std::time::Duration;

use fenced_store::Dialect;
use lock_core::backend::TokioRuntime;
use palisade::postgres::is_own_session;
use sqlx::{Executor, FromRow, MySql, Pool, Postgres, Sqlite, postgres::PgRow};

use super::Findings;

/// The settings that a database reports.
pub(in super::super) trait Settings: Dialect {
    /// Adds findings about the version, and about whether a commit survives a crash.
    async fn settings(findings: &mut Findings, pool: &Pool<Self>) -> Result<(), sqlx::Error>;

    /// The clock of the database, in seconds since 1970.
    async fn seconds(pool: &Pool<Self>) -> Result<f64, sqlx::Error>;

    /// Rights that are wider than needed: each right, and the change to make. Only Postgres has
    /// such rights.
    async fn wide_rights(_: &Pool<Self>) -> Result<Vec<(String, String)>, sqlx::Error> {
        Ok(Vec::new())
    }
}

impl Settings for Postgres {
    async fn settings(findings: &mut Findings, pool: &Pool<Self>) -> Result<(), sqlx::Error> {
        const ASK: &str = "SET LOCAL search_path = pg_catalog, pg_temp; \
             SELECT current_setting('server_version_num')::int, \
             current_setting('server_version'), pg_is_in_recovery(), \
             current_setting('fsync') = 'on', current_setting('full_page_writes') = 'on', \
             (SELECT count(*) FROM pg_stat_replication), \
             current_setting('synchronous_standby_names') <> ''";
        let (number, version, is_replica, fsync, full_pages, replicas, waits_for_replicas) =
            unprepared::<(i32, String, bool, bool, bool, i64, bool)>(pool, ASK).await?;
        let version = format!("PostgreSQL {version}");
        findings.must(number >= 120_000, version, "use PostgreSQL 12 or newer");
        findings.must(
            !is_replica,
            if is_replica {
                "it is a standby"
            } else {
                "it is the primary"
            },
            "name the primary in the URL, or a name that follows it: only one host is tried",
        );
        findings.must(
            fsync && full_pages,
            format_args!(
                "fsync is {}, full_page_writes is {}",
                on(fsync),
                on(full_pages)
            ),
            "set both to on: otherwise a crash may lose claims, and stale writes may be stored",
        );
        if replicas > 0 && !waits_for_replicas {
            findings.advice(
                "it has standbys, and commits do not wait for one",
                "set synchronous_standby_names: otherwise a failover loses claims",
            );
        }
        if !is_own_session(
            &pool.connect_options(),
            Duration::from_secs(2),
            &TokioRuntime,
        )
        .await
        {
            findings.advice(
                "a pooler is in between, which gives connections other sessions",
                "it has to be in transaction or session mode; waiters for a lock are woken \
                 at once with `?listen=` and the server's own address",
            );
        }
        Ok(())
    }

    async fn seconds(pool: &Pool<Self>) -> Result<f64, sqlx::Error> {
        const ASK: &str =
            "SELECT CAST(extract(epoch FROM pg_catalog.clock_timestamp()) AS double precision)";
        Ok(unprepared::<(f64,)>(pool, ASK).await?.0)
    }

    async fn wide_rights(pool: &Pool<Self>) -> Result<Vec<(String, String)>, sqlx::Error> {
        let ask = sqlx::raw_sql(include_str!("wide_rights.sql"));
        let rows = pool.fetch_all(ask).await?;
        rows.iter().map(FromRow::from_row).collect()
    }
}

/// A row of a statement that is not prepared: a pooler in transaction mode would send its
/// execution to another connection than its preparation.
async fn unprepared<R>(pool: &Pool<Postgres>, sql: &'static str) -> Result<R, sqlx::Error>
where
    R: for<'r> FromRow<'r, PgRow>,
{
    R::from_row(&pool.fetch_one(sqlx::raw_sql(sql)).await?)
}

impl Settings for MySql {
    async fn settings(findings: &mut Findings, pool: &Pool<Self>) -> Result<(), sqlx::Error> {
        const ASK: &str = "SELECT VERSION(), @@global.read_only <> 0, \
             @@global.innodb_flush_log_at_trx_commit = 1, \
             @@global.log_bin = 0 OR @@global.sync_binlog = 1";
        let (version, is_read_only, flushes, syncs) =
            sqlx::query_as::<_, (String, bool, bool, bool)>(ASK)
                .fetch_one(pool)
                .await?;
        findings.good(format_args!("version {version}"));
        findings.must(
            !is_read_only,
            format_args!("read_only is {}", on(is_read_only)),
            "connect to the primary",
        );
        findings.must(
            flushes,
            format_args!(
                "innodb_flush_log_at_trx_commit {} 1",
                if flushes { "is" } else { "is not" }
            ),
            "set it to 1: otherwise a crash may lose claims, and stale writes may be stored",
        );
        if !syncs {
            findings.advice(
                "sync_binlog is not 1",
                "set it to 1: otherwise replicas may lack claims",
            );
        }
        let cluster = "SHOW GLOBAL VARIABLES LIKE 'wsrep_on'";
        let cluster: Option<(String, String)> =
            sqlx::query_as(cluster).fetch_optional(pool).await?;
        if cluster.is_some_and(|(_, value)| value == "ON") {
            findings.wrong(
                "it is a node of a Galera cluster",
                "write to one node only: the fence does not hold across several primaries",
            );
        }
        Ok(())
    }

    async fn seconds(pool: &Pool<Self>) -> Result<f64, sqlx::Error> {
        const ASK: &str = "SELECT CAST(UNIX_TIMESTAMP(NOW(6)) AS DOUBLE)";
        sqlx::query_scalar(ASK).fetch_one(pool).await
    }
}

impl Settings for Sqlite {
    async fn settings(findings: &mut Findings, pool: &Pool<Self>) -> Result<(), sqlx::Error> {
        let version: String = sqlx::query_scalar("SELECT sqlite_version()")
            .fetch_one(pool)
            .await?;
        findings.good(format_args!("SQLite {version}, built in"));
        let journal: String = sqlx::query_scalar("PRAGMA journal_mode")
            .fetch_one(pool)
            .await?;
        if journal == "wal" {
            findings.good("journal_mode is wal");
        } else {
            findings.advice(
                format_args!("journal_mode is {journal}"),
                "open it with SqliteFencedStore::recommended: readers and writers do not wait \
                 for each other in wal",
            );
        }
        Ok(())
    }

    async fn seconds(pool: &Pool<Self>) -> Result<f64, sqlx::Error> {
        const ASK: &str = "SELECT (julianday('now') - 2440587.5) * 86400.0";
        sqlx::query_scalar(ASK).fetch_one(pool).await
    }
}

const fn on(is_on: bool) -> &'static str {
    if is_on { "on" } else { "off" }
}
