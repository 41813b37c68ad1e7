//! A server that keeps writes out for a while, or ends its sessions.
#![expect(clippy::future_not_send, reason = "each test is one task")]

use std::time::Duration;

use e2e::servers::{DatabaseServer, MySqlServer};
use fenced_jobs::JobSlots;
use fenced_store::{
    FenceError, FencedLockError, FencedStore, MySqlFencedStore, NotReady, Rights,
    admin::{AdminError, Reason, Reset},
};
use lock_core::{
    ResourceName,
    backend::{Runtime, TokioRuntime},
};
use sqlx::{
    AssertSqlSafe, Connection, Executor, MySqlConnection, MySqlPool,
    mysql::{MySqlConnectOptions, MySqlPoolOptions},
};

use crate::{
    mysql::server::{on, one_second, waiting},
    rule::{assert_kind, grant, token},
};

/// A server of its own, and its owner. The owner may write while the server is read only.
struct World {
    server: DatabaseServer,
    owner: MySqlConnection,
}

impl World {
    /// Starts a server with our tables, and a user who has rights on these tables and no others.
    async fn start<S: MySqlServer>() -> Self {
        let server = S::start().await;
        let mut owner = MySqlConnection::connect(server.url()).await.unwrap();
        let script = "CREATE DATABASE bank;
            CREATE USER app@'127.0.0.1' IDENTIFIED BY 'secret';
            GRANT ALL ON bank.* TO app@'127.0.0.1'";
        owner.execute(sqlx::raw_sql(script)).await.unwrap();
        let world = Self { server, owner };
        world
            .store(MySqlPoolOptions::new())
            .migrate()
            .await
            .unwrap();
        world
    }

    fn options(&self) -> MySqlConnectOptions {
        let options: MySqlConnectOptions = self.server.url().parse().unwrap();
        let options = options.host("127.0.0.1").database("bank");
        options.username("app").password("secret")
    }

    /// The user's store, with a pool of one connection, which is made when it is needed.
    fn store(&self, pool: MySqlPoolOptions) -> MySqlFencedStore {
        let pool = pool.max_connections(1).connect_lazy_with(self.options());
        FencedStore::new(pool).with_options(one_second())
    }

    async fn as_owner(&mut self, statement: &str) {
        let statement = AssertSqlSafe(statement.to_owned());
        self.owner.execute(statement).await.unwrap();
    }

    /// Waits until the server has no session of the user.
    async fn until_alone<S: MySqlServer>(&mut self) {
        let count = format!("SELECT COUNT(*) FROM {} WHERE user = 'app'", S::SESSIONS);
        for _ in 0..600 {
            let left: i64 = sqlx::query_scalar(AssertSqlSafe(count.clone()))
                .fetch_one(&mut self.owner)
                .await
                .unwrap();
            if left == 0 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("the sessions do not end");
    }
}

fn of_job(result: Result<(), FencedLockError>) -> Result<(), FenceError> {
    result.map_err(|error| match error {
        FencedLockError::Store(error) => error,
        error => panic!("not of the store: {error:?}"),
    })
}

async fn session(pool: &MySqlPool) -> u64 {
    let id = sqlx::query_scalar("SELECT CONNECTION_ID()");
    id.fetch_one(pool).await.unwrap()
}

/// The test takes the locks of a backup, and of a change of the schema, in each way.
/// Catches: a call that waits for as long as a backup lasts, or a limit that a session keeps.
async fn behind_a_backup_or_a_change_of_the_schema_calls_are_busy_in_time<S: MySqlServer>() {
    let mut world = World::start::<S>().await;
    let store = world.store(waiting::<S>(1));
    let (old, new) = (grant("account:42", 33), grant("account:42", 34));
    store.claim(&old).await.unwrap();
    let name = ResourceName::new("account:42").unwrap();
    let reason = Reason::new("a test").unwrap();
    let raise = Reset::raise(name.clone(), token(33), token(99), reason).unwrap();
    for (lock, unlock, keeps_looks_out) in [
        ("FLUSH TABLES WITH READ LOCK", "UNLOCK TABLES", false),
        (
            "BACKUP STAGE START; BACKUP STAGE FLUSH; BACKUP STAGE BLOCK_DDL; \
             BACKUP STAGE BLOCK_COMMIT",
            "BACKUP STAGE END",
            false,
        ),
        (
            "LOCK TABLES bank.fenced_high_water_mark WRITE, bank.fenced_job_run WRITE",
            "UNLOCK TABLES",
            true,
        ),
    ] {
        if lock.starts_with("BACKUP") && on::<S, _>(false, true) {
            continue;
        }
        world.owner.execute(sqlx::raw_sql(lock)).await.unwrap();
        let is_busy =
            async |what: &str, call: &mut (dyn Future<Output = Result<(), FenceError>> + Unpin)| {
                let asked = TokioRuntime.now();
                let error = call.await.unwrap_err();
                let took = TokioRuntime.now().since(asked);
                assert_kind!(error, Busy, "{what} behind {lock}: {error}");
                assert!(
                    took < Duration::from_secs(7),
                    "{what} behind {lock}: {took:?}"
                );
            };
        is_busy("claim", &mut Box::pin(store.claim(&new))).await;
        if !lock.starts_with("BACKUP") {
            let begin = async { store.begin(&old).await.map(drop) };
            is_busy("begin", &mut Box::pin(begin)).await;
            is_busy("settle", &mut Box::pin(store.settle(&old))).await;
            let reset = async {
                match store.admin().reset_high_water(&raise).await {
                    Err(AdminError::Store(error)) => Err(error),
                    other => panic!("behind {lock}: {other:?}"),
                }
            };
            is_busy("administration", &mut Box::pin(reset)).await;
        }
        if keeps_looks_out {
            let look = async { store.high_water(&name).await.map(drop) };
            is_busy("look", &mut Box::pin(look)).await;
            let look = async { of_job(store.job_slot("report", "first").await.map(drop)) };
            is_busy("look at a job", &mut Box::pin(look)).await;
        }
        world.as_owner(unlock).await;
        store.claim(&old).await.unwrap();
        store.begin(&old).await.unwrap().commit().await.unwrap();
    }
    let limits = sqlx::query_as("SELECT @@lock_wait_timeout, @@innodb_lock_wait_timeout");
    let limits: (u64, u64) = limits.fetch_one(store.pool()).await.unwrap();
    assert_eq!(limits, on::<S, _>((86_400, 50), (1, 1)));
}

/// Catches: a pool that asks a read-only server as long as its sessions live.
async fn a_read_only_server_is_busy_and_its_session_is_left<S: MySqlServer>() {
    let mut world = World::start::<S>().await;
    let store = world.store(waiting::<S>(1));
    let own = grant("account:42", 33);
    store.claim(&own).await.unwrap();
    for (off, on) in [
        ("SET GLOBAL read_only = 1", "SET GLOBAL read_only = 0"),
        on::<S, _>(
            ("SET GLOBAL tx_read_only = 1", "SET GLOBAL tx_read_only = 0"),
            (
                "SET GLOBAL transaction_read_only = 1",
                "SET GLOBAL transaction_read_only = 0",
            ),
        ),
    ] {
        world.as_owner(off).await;
        store.pool().acquire().await.unwrap().close().await.unwrap();
        for what in ["claim", "begin"] {
            let before = session(store.pool()).await;
            let refused = match what {
                "claim" => store.claim(&grant("account:42", 34)).await.unwrap_err(),
                _ => store.begin(&own).await.map(drop).unwrap_err(),
            };
            assert_kind!(refused, Busy, "{what}, {off}: {refused:?}");
            assert!(refused.is_retryable() && refused.may_pass(), "{refused:?}");
            assert_ne!(session(store.pool()).await, before, "{what}, {off}");
        }
        for checked in [
            store.check(Rights::ClaimAndWrite).await,
            store.check_writable().await,
        ] {
            let told = matches!(
                checked,
                Err(FenceError::NotReady(NotReady::ReadOnly { .. }))
            );
            assert!(told, "{off}: {checked:?}");
        }
        world.as_owner(on).await;
        store.pool().acquire().await.unwrap().close().await.unwrap();
        store.claim(&own).await.unwrap();
        store.begin(&own).await.unwrap().commit().await.unwrap();
        store.check(Rights::ClaimAndWrite).await.unwrap();
    }
}

async fn a_session_that_the_server_has_ended_is_not_noticed_or_busy<S: MySqlServer>() {
    let mut world = World::start::<S>().await;
    let own = grant("account:42", 33);
    let short = || {
        MySqlPoolOptions::new().after_connect(|connection, _| {
            let limit = "SET SESSION wait_timeout = 1";
            Box::pin(async move { connection.execute(limit).await.map(drop) })
        })
    };
    let store = world.store(short());
    store.claim(&own).await.unwrap();
    world.until_alone::<S>().await;
    store.claim(&own).await.unwrap();
    world.until_alone::<S>().await;
    let tx = store.begin(&own).await.unwrap();
    tx.commit().await.unwrap();

    // A pool that does not check whether its sessions live.
    let careless = world.store(short().test_before_acquire(false));
    for what in ["claim", "begin"] {
        careless.claim(&own).await.unwrap();
        world.until_alone::<S>().await;
        let busy = match what {
            "claim" => careless.claim(&own).await.unwrap_err(),
            _ => careless.begin(&own).await.map(drop).unwrap_err(),
        };
        assert_kind!(busy, Busy, "{what}: {busy:?}");
    }
}

async fn a_user_with_too_many_sessions_is_busy<S: MySqlServer>() {
    let mut world = World::start::<S>().await;
    world
        .as_owner("ALTER USER app@'127.0.0.1' WITH MAX_USER_CONNECTIONS 1")
        .await;
    let first = world.store(waiting::<S>(1));
    first.claim(&grant("account:42", 33)).await.unwrap();
    let pool = waiting::<S>(1).acquire_timeout(Duration::from_secs(1));
    let busy = world.store(pool).claim(&grant("account:42", 34)).await;
    let busy = busy.unwrap_err();
    assert_kind!(busy, Busy, "{busy:?}");
}

on_both!(
    behind_a_backup_or_a_change_of_the_schema_calls_are_busy_in_time,
    a_read_only_server_is_busy_and_its_session_is_left,
    a_session_that_the_server_has_ended_is_not_noticed_or_busy,
    a_user_with_too_many_sessions_is_busy,
);
