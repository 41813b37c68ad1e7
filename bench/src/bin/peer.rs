//! One library that `bench peers` measures, in a process of its own. The programs in `bench/peers`
//! measure libraries in other languages. `peer LIBRARY LOAD TASKS MILLIS URL FILE`, where the load
//! is
//!
//! - `cycle`: each task acquires and releases a lock of its own,
//! - `contest`: all tasks want the same lock,
//! - `pause`: one task holds a lock whose lease lasts so many milliseconds, and writes to the file.
//!
//! It prints `ready`, and waits for a line. After a pause it writes, and prints `stored` or
//! `refused: REASON`. After a load it prints `done`, and a line `TASK BEGIN END` for each pass, in
//! nanoseconds: of a cycle from before the acquire until after the release, of a contest from the
//! grant until before the release.
#![forbid(unsafe_code)]

use std::{
    fs,
    io::{self, Write},
    sync::Arc,
    time::{Duration, Instant},
};

use fenced_store::{FencedLocks, SqliteFencedStore};
use lock_core::{LeaseGuard, LockManager, Ttl};
use sqlx::{PgPool, Postgres, Transaction, pool::PoolConnection, postgres::PgPoolOptions};
use tokio::{
    io::{AsyncBufReadExt, BufReader, stdin},
    task::JoinSet,
};

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// How often libraries that poll look again: far more often than by default.
const POLL: Duration = Duration::from_millis(2);

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [library, load, tasks, millis, url, file] = &arguments[..] else {
        return Err("usage: peer LIBRARY LOAD TASKS MILLIS URL FILE".into());
    };
    let (tasks, span) = (tasks.parse()?, Duration::from_millis(millis.parse()?));
    // No library uses the keys of another one.
    let prefix = library.as_str();
    let library = Library::connect(library, tasks, url).await?;
    if load == "pause" {
        return write_after_pause(&library, &format!("{prefix}:0"), span, file).await;
    }
    drive(library, prefix, load == "contest", tasks, span).await
}

/// A library with its connections.
enum Library {
    Palisade(LockManager),
    Rslock(rslock::LockManager),
    LeaseTable(PgPool),
    AdvisoryLock(PgPool),
    ForUpdate(PgPool),
}

/// A lock that is held.
enum Held {
    Palisade(Box<LeaseGuard>),
    Rslock(rslock::Lock),
    LeaseTable { resource: String, holder: String },
    AdvisoryLock(PoolConnection<Postgres>, i64),
    ForUpdate(Transaction<'static, Postgres>),
}

impl Library {
    async fn connect(name: &str, tasks: u32, url: &str) -> Result<Self, BoxError> {
        Ok(match name {
            "palisade" => Self::Palisade(palisade::connect(url).await?),
            "rslock" => {
                let mut locks = rslock::LockManager::new(vec![url]);
                locks.set_retry(1_000_000, POLL);
                Self::Rslock(locks)
            }
            "lease-table" => Self::LeaseTable(rows(url, tasks).await?),
            "advisory-lock" => Self::AdvisoryLock(rows(url, tasks).await?),
            "for-update" => Self::ForUpdate(rows(url, tasks).await?),
            other => return Err(format!("no library is called {other}").into()),
        })
    }

    async fn acquire(&self, resource: &str, ttl: Duration) -> Result<Held, BoxError> {
        Ok(match self {
            Self::Palisade(locks) => {
                Held::Palisade(Box::new(locks.acquire(resource).ttl(Ttl::new(ttl)?).await?))
            }
            Self::Rslock(locks) => {
                let lock = locks.acquire_no_guard(resource.as_bytes(), ttl);
                Held::Rslock(lock.await.map_err(|error| format!("{error:?}"))?)
            }
            Self::LeaseTable(pool) => {
                let holder = format!("{:?}", Instant::now());
                while !take_row(pool, resource, &holder, ttl).await? {
                    tokio::time::sleep(POLL).await;
                }
                let resource = resource.to_owned();
                Held::LeaseTable { resource, holder }
            }
            Self::AdvisoryLock(pool) => {
                let mut session = pool.acquire().await?;
                let lock = "SELECT key, pg_advisory_lock(key)::text \
                            FROM hashtextextended($1, 0) AS key";
                let key: (i64, String) = sqlx::query_as(lock)
                    .bind(resource)
                    .fetch_one(&mut *session)
                    .await?;
                Held::AdvisoryLock(session, key.0)
            }
            Self::ForUpdate(pool) => {
                let row = "INSERT INTO lease VALUES ($1, '', now()) ON CONFLICT DO NOTHING";
                sqlx::query(row).bind(resource).execute(pool).await?;
                let mut tx = pool.begin().await?;
                let lock = "SELECT FROM lease WHERE resource = $1 FOR UPDATE";
                sqlx::query(lock).bind(resource).execute(&mut *tx).await?;
                Held::ForUpdate(tx)
            }
        })
    }

    async fn release(&self, held: Held) -> Result<(), BoxError> {
        match (self, held) {
            (_, Held::Palisade(guard)) => drop(guard.release().await?),
            (Self::Rslock(locks), Held::Rslock(lock)) => locks.unlock(&lock).await,
            (Self::LeaseTable(pool), Held::LeaseTable { resource, holder }) => {
                let end = "UPDATE lease SET until = now() WHERE resource = $1 AND holder = $2";
                let end = sqlx::query(end).bind(resource).bind(holder);
                end.execute(pool).await?;
            }
            (_, Held::AdvisoryLock(mut session, key)) => {
                let unlock = sqlx::query("SELECT pg_advisory_unlock($1)").bind(key);
                unlock.execute(&mut *session).await?;
            }
            (_, Held::ForUpdate(tx)) => tx.commit().await?,
            _ => unreachable!("a lock is released by the library that gave it"),
        }
        Ok(())
    }
}

/// A pool with a connection for each task.
async fn rows(url: &str, tasks: u32) -> Result<PgPool, BoxError> {
    let pool = PgPoolOptions::new().max_connections(tasks);
    let pool = pool.connect(url).await?;
    let table = "CREATE TABLE IF NOT EXISTS lease \
                 (resource text PRIMARY KEY, holder text, until timestamptz)";
    sqlx::query(table).execute(&pool).await?;
    Ok(pool)
}

/// One statement, as in libraries that keep leases in a table.
async fn take_row(
    pool: &PgPool,
    resource: &str,
    holder: &str,
    ttl: Duration,
) -> Result<bool, BoxError> {
    let take = "INSERT INTO lease VALUES ($1, $2, now() + make_interval(secs => $3)) \
                ON CONFLICT (resource) DO UPDATE SET holder = excluded.holder, \
                until = excluded.until WHERE lease.until <= now()";
    let take = sqlx::query(take).bind(resource).bind(holder);
    let taken = take.bind(ttl.as_secs_f64()).execute(pool).await?;
    Ok(taken.rows_affected() == 1)
}

/// Waits until the measuring program sends a line.
async fn told_to_go_on() -> io::Result<()> {
    println!("ready");
    io::stdout().flush()?;
    let mut line = String::new();
    BufReader::new(stdin()).read_line(&mut line).await?;
    Ok(())
}

async fn drive(
    library: Library,
    prefix: &str,
    contest: bool,
    tasks: u32,
    span: Duration,
) -> Result<(), BoxError> {
    let library = Arc::new(library);
    told_to_go_on().await?;
    let start = Instant::now();
    let mut running = JoinSet::new();
    for task in 0..tasks {
        let library = Arc::clone(&library);
        let resource = format!("{prefix}:{}", if contest { 0 } else { task });
        running.spawn(async move {
            let mut passes = Vec::new();
            while start.elapsed() < span {
                let before = start.elapsed();
                let held = library.acquire(&resource, Duration::from_secs(10)).await?;
                let granted = start.elapsed();
                library.release(held).await?;
                passes.push(if contest {
                    (task, granted, granted)
                } else {
                    (task, before, start.elapsed())
                });
            }
            Ok::<_, BoxError>(passes)
        });
    }
    let mut passes = Vec::new();
    for task in running.join_all().await {
        passes.extend(task?);
    }
    let mut out = io::stdout().lock();
    writeln!(out, "done")?;
    for (task, begin, end) in passes {
        writeln!(out, "{task} {} {}", begin.as_nanos(), end.as_nanos())?;
    }
    Ok(())
}

/// Our library writes with its guard to a store in SQLite. The other libraries have no store, so
/// they write to a plain file.
async fn write_after_pause(
    library: &Library,
    resource: &str,
    ttl: Duration,
    file: &str,
) -> Result<(), BoxError> {
    if let Library::Palisade(locks) = library {
        let options = SqliteFencedStore::recommended(file.parse()?).create_if_missing(true);
        let store = SqliteFencedStore::new(sqlx::SqlitePool::connect_with(options).await?);
        store.migrate().await?;
        let accounts = FencedLocks::new(locks.clone(), store);
        let ttl = Ttl::new(ttl)?;
        let guard = accounts.acquire(resource).ttl(ttl);
        let guard = guard.wait(Duration::from_secs(30)).await?;
        let table = "CREATE TABLE IF NOT EXISTS account AS SELECT 0 AS balance";
        sqlx::query(table).execute(accounts.store().pool()).await?;
        told_to_go_on().await?;
        match guard.begin().await {
            Ok(mut tx) => {
                let write = sqlx::query("UPDATE account SET balance = balance + 1");
                write.execute(&mut *tx).await?;
                tx.commit().await?;
                println!("stored");
            }
            Err(refused) => println!("refused: {refused}"),
        }
    } else {
        let held = library.acquire(resource, ttl).await?;
        told_to_go_on().await?;
        fs::write(file, std::process::id().to_string())?;
        println!("stored");
        library.release(held).await?;
    }
    Ok(())
}
