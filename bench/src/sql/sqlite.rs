//! One file of SQLite as lock service and store, beside a plain lease table in the same file.

use std::time::Duration;

use e2e::servers::until;
use fenced_store::{SqliteFencedLocks, SqliteFencedStore};
use futures_util::future::try_join_all;
use lock_core::{LockManager, Ttl};
use rustix::time::{ClockId, clock_gettime};
use sqlx::{
    Connection, Executor, SqliteConnection, SqlitePool,
    sqlite::{SqliteConnectOptions, SqlitePoolOptions},
};
use tempfile::TempDir;
use tokio::time::sleep;

use super::handoff::across;
use crate::{
    consensus::hand_on,
    figure::{BoxError, Measured, Unit},
    paired::{compare, take_turns},
};

const CYCLES: u32 = 25;
const TTL: Ttl = Ttl::secs(60);

const TABLES: &str = "
    CREATE TABLE account (id INTEGER PRIMARY KEY, balance INTEGER NOT NULL);
    INSERT INTO account VALUES (1, 0);
    CREATE TABLE lease (resource TEXT PRIMARY KEY, holder TEXT, until INTEGER);
    INSERT INTO lease VALUES ('1', '', 0)";
const TAKE: &str = "UPDATE lease SET holder = 'me', until = unixepoch() + 10
                    WHERE resource = '1' AND until <= unixepoch()";
const GIVE: &str = "UPDATE lease SET until = 0 WHERE resource = '1' AND holder = 'me'";
const DEPOSIT: &str = "UPDATE account SET balance = balance + 1 WHERE id = 1";

struct World {
    folder: TempDir,
    pool: SqlitePool,
    accounts: SqliteFencedLocks,
}

impl World {
    async fn new() -> Result<Self, BoxError> {
        let folder = tempfile::tempdir()?;
        let file = SqliteConnectOptions::new().filename(folder.path().join("bench.db"));
        let file = SqliteFencedStore::recommended(file.create_if_missing(true));
        let pool = SqlitePoolOptions::new().max_connections(1);
        let pool = pool.connect_with(file).await?;
        pool.execute(TABLES).await?;
        let accounts = palisade::open(pool.clone()).await?;
        // The very first claim also sets the issuer, so it is not measured.
        accounts.acquire("first").await?.release().await?;
        Ok(Self {
            folder,
            pool,
            accounts,
        })
    }

    /// A client like that of another process.
    async fn client(&self) -> Result<LockManager, BoxError> {
        let file = self.folder.path().join("bench.db");
        Ok(palisade::connect(format!("sqlite:{}", file.display())).await?)
    }

    async fn session(&self) -> Result<SqliteConnection, BoxError> {
        Ok(SqliteConnection::connect_with(&self.pool.connect_options()).await?)
    }
}

pub(super) async fn cycle_vs_lease_table(rounds: u32) -> Result<Measured, BoxError> {
    let world = World::new().await?;
    let mut session = world.session().await?;
    let medians = compare(
        rounds,
        CYCLES,
        async || {
            let guard = world.accounts.acquire("account:1").await?;
            guard.release().await?;
            Ok::<_, BoxError>(())
        },
        async || {
            for statement in [TAKE, GIVE] {
                session.execute(statement).await?;
            }
            Ok::<_, BoxError>(())
        },
    );
    Ok(medians.await?.ours_by_other(Unit::Micros))
}

pub(super) async fn fenced_cycle_vs_plain(rounds: u32) -> Result<Measured, BoxError> {
    let world = World::new().await?;
    let medians = compare(
        rounds,
        CYCLES,
        async || {
            let guard = world.accounts.acquire("account:1").await?;
            let mut tx = guard.begin().await?;
            tx.execute(DEPOSIT).await?;
            tx.commit_and_release(guard).await?;
            Ok::<_, BoxError>(())
        },
        async || {
            let mut tx = world.pool.begin_with("BEGIN IMMEDIATE").await?;
            tx.execute(DEPOSIT).await?;
            tx.commit().await?;
            Ok::<_, BoxError>(())
        },
    );
    Ok(medians.await?.ours_by_other(Unit::Micros))
}

/// The time of a hand-off from one process to another, which polls, and among the waiters of one
/// process.
pub(super) async fn handoff_across_vs_within(rounds: u32) -> Result<Measured, BoxError> {
    let world = World::new().await?;
    let clients = [world.client().await?, world.client().await?];
    let medians = take_turns(
        std::cmp::max(rounds / 4, 1),
        async |samples| across(&clients, TTL, samples).await,
        async |samples| hand_on(world.accounts.locks(), TTL, samples).await,
    )
    .await?;
    Ok(medians.ours_by_other(Unit::Micros))
}

/// The CPU time of eight clients with a waiter each, like eight processes.
pub(super) async fn cpu_of_waiters() -> Result<Measured, BoxError> {
    const WAITERS: u32 = 8;
    const WARM_UP: Duration = Duration::from_secs(3);
    const WATCHED: Duration = Duration::from_secs(20);
    let world = World::new().await?;
    let mut clients = Vec::new();
    for _ in 0..WAITERS {
        clients.push(world.client().await?);
    }
    let held = world
        .accounts
        .locks()
        .acquire("r")
        .ttl(Ttl::secs(600))
        .await?;
    let waiters = clients
        .iter()
        .map(async |client| client.acquire("r").await.map(drop));
    let watch = async {
        until("all wait", async || {
            let now = world.accounts.locks().inspect(held.resource()).await;
            now.is_ok_and(|now| now.waiters == Some(u64::from(WAITERS)))
        })
        .await;
        sleep(WARM_UP).await;
        let before = cpu_time();
        sleep(WATCHED).await;
        cpu_time().saturating_sub(before)
    };
    tokio::select! {
        biased;
        waited = try_join_all(waiters) => {
            Err(format!("no waiter should get it: {waited:?}").into())
        }
        used = watch => {
            let (used, watched) = (used.as_secs_f64() * 1e6, WATCHED.as_secs_f64() * 1e6);
            Ok(Measured { ratio: used / watched, ours: used, other: watched, unit: Unit::Micros })
        }
    }
}

/// The CPU time of this process.
fn cpu_time() -> Duration {
    let used = clock_gettime(ClockId::ProcessCPUTime);
    Duration::try_from(used).unwrap_or_default()
}
