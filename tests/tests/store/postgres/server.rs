//! A fenced store on a real Postgres server.

use std::time::Duration;

use e2e::{
    proxy::Proxy,
    servers::{PostgresDatabase, postgres_database},
};
use fenced_store::{Executed, FenceError, FencedStore, PgFencedStore, PgTxOptions};
use lock_core::{ResourceName, Sequencer};
use sqlx::{
    AssertSqlSafe, Executor, PgConnection, PgPool, Postgres, Row,
    postgres::{PgConnectOptions, PgPoolOptions},
};

use crate::{
    rule::{Deed, Harness, SqlHarness, line_of, migrated},
    servers::Server,
};

/// An empty database of one test, with the table `accounts`.
pub(crate) struct PostgresServer {
    store: PgFencedStore,
    database: PostgresDatabase,
}

impl PostgresServer {
    /// The URL of its database.
    pub(crate) fn url(&self) -> &str {
        self.database.url()
    }

    /// A pool of one connection: its next user gets everything that the previous user left behind.
    pub(crate) async fn pool_of_one(&self) -> PgPool {
        let pool = PgPoolOptions::new().max_connections(1);
        pool.connect(self.database.url()).await.unwrap()
    }

    /// Its database.
    pub(crate) const fn database(&self) -> &PostgresDatabase {
        &self.database
    }

    /// A store with many connections of its own.
    pub(crate) async fn store_of_many(&self) -> PgFencedStore {
        let pool = PgPoolOptions::new().max_connections(20);
        FencedStore::new(pool.connect(self.database.url()).await.unwrap())
    }

    /// A store whose sessions have these settings.
    pub(crate) async fn store_with(&self, settings: &[(&str, &str)]) -> PgFencedStore {
        let options: PgConnectOptions = self.database.url().parse().unwrap();
        let options = options.options(settings.iter().copied());
        FencedStore::new(PgPoolOptions::new().connect_with(options).await.unwrap())
    }

    /// A proxy in front of the server, and a store with one connection that goes through it.
    pub(crate) async fn behind_a_proxy(&self) -> (Proxy, PgFencedStore) {
        let (proxy, options) = self.proxy().await;
        let pool = PgPoolOptions::new()
            .max_connections(1)
            .test_before_acquire(false);
        let pool = pool.connect_with(options).await.unwrap();
        (proxy, FencedStore::new(pool))
    }

    /// A proxy in front of the server, and how to connect through it.
    pub(crate) async fn proxy(&self) -> (Proxy, PgConnectOptions) {
        let options = self.options();
        let server = format!("tcp://{}:{}", options.get_host(), options.get_port());
        let proxy = Proxy::start(&server).await;
        let port = proxy.port();
        (proxy, options.port(port))
    }

    /// How to connect to the database.
    pub(crate) fn options(&self) -> PgConnectOptions {
        self.database.url().parse().unwrap()
    }

    /// Waits until a session waits for a row that another session has changed.
    pub(crate) async fn until_waiting_for_a_row(&self) {
        let waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'transactionid'
                       AND NOT granted AND pid IN (SELECT pid FROM pg_stat_activity
                                                   WHERE datname = current_database())";
        let waits = async {
            let pool = self.store.pool();
            while sqlx::query_scalar::<_, i64>(waiting)
                .fetch_one(pool)
                .await
                .unwrap()
                == 0
            {
                tokio::task::yield_now().await;
            }
        };
        let waits = tokio::time::timeout(PATIENCE, waits).await;
        assert!(waits.is_ok(), "no session waits for a row");
    }

    /// How many advisory locks there are in this database, granted or waited for.
    pub(crate) async fn advisory_locks(&self, granted: bool) -> i64 {
        sqlx::query_scalar(
            "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted = $1
             AND database = (SELECT oid FROM pg_database WHERE datname = current_database())",
        )
        .bind(granted)
        .fetch_one(self.store.pool())
        .await
        .unwrap()
    }

    /// Waits until this number of sessions queue for an advisory lock.
    pub(crate) async fn until_queued(&self, sessions: i64) {
        let queued = async {
            while self.advisory_locks(false).await != sessions {
                tokio::task::yield_now().await;
            }
        };
        let queued = tokio::time::timeout(PATIENCE, queued).await;
        assert!(
            queued.is_ok(),
            "there are not {sessions} sessions in the queue"
        );
    }

    /// Waits until no session holds or waits for an advisory lock.
    pub(crate) async fn until_unlocked(&self) {
        let unlocked = async {
            while self.advisory_locks(true).await + self.advisory_locks(false).await != 0 {
                tokio::task::yield_now().await;
            }
        };
        let unlocked = tokio::time::timeout(PATIENCE, unlocked).await;
        assert!(unlocked.is_ok(), "somebody keeps an advisory lock");
    }
}

/// A time limit that is far longer than any wait here. An event that has not come by then never
/// comes.
const PATIENCE: Duration = Duration::from_secs(30);

impl Harness for PostgresServer {
    type Db = Postgres;

    async fn fresh() -> Self {
        migrated().await
    }

    fn store(&self) -> &PgFencedStore {
        &self.store
    }

    async fn impatient(&self) -> PgFencedStore {
        let options = PgTxOptions::default()
            .lock_timeout(Some(Duration::from_millis(100)))
            .terminate_older(false);
        self.store.clone().with_options(options)
    }

    async fn add(connection: &mut PgConnection, amount: i64) -> Result<(), FenceError> {
        sqlx::query("UPDATE accounts SET balance = balance + $1 WHERE id = 42")
            .bind(amount)
            .execute(connection)
            .await?;
        Ok(())
    }

    async fn balance(connection: &mut PgConnection) -> i64 {
        sqlx::query_scalar("SELECT balance FROM accounts WHERE id = 42")
            .fetch_one(connection)
            .await
            .unwrap()
    }

    async fn add_unfenced(store: &PgFencedStore, amount: i64) -> Result<(), FenceError> {
        Self::add_by_itself(&mut *store.pool().acquire().await?, amount).await
    }
}

impl SqlHarness for PostgresServer {
    const BOOKS: &'static str = "fenced._migrations";

    async fn unmigrated() -> Self {
        let database = postgres_database().await;
        let pool = PgPoolOptions::new().max_connections(16);
        let pool = pool.connect(database.url()).await.unwrap();
        pool.execute(
            "CREATE TABLE accounts (id integer PRIMARY KEY, balance bigint NOT NULL);
             INSERT INTO accounts VALUES (42, 100)",
        )
        .await
        .unwrap();
        Self {
            store: FencedStore::new(pool),
            database,
        }
    }

    async fn store_of_one(&self) -> PgFencedStore {
        FencedStore::new(self.pool_of_one().await)
    }

    async fn execute(connection: &mut PgConnection, statement: &str) -> Result<u64, sqlx::Error> {
        let statement = sqlx::raw_sql(AssertSqlSafe(statement));
        Ok(connection.execute(statement).await?.rows_affected())
    }

    async fn add_at_once(
        store: &PgFencedStore,
        grant: &Sequencer,
        account: i64,
        amount: i64,
    ) -> Result<Executed, FenceError> {
        let add = sqlx::query("UPDATE accounts SET balance = balance + $2 WHERE id = $1");
        store
            .begin(grant)
            .execute(add.bind(account).bind(amount))
            .await
    }

    async fn dump(&self) -> String {
        sqlx::query_scalar(
            "SELECT concat((SELECT json_agg(m) FROM fenced.high_water_mark m),
                           (SELECT json_agg(i) FROM fenced.lock_service i))",
        )
        .fetch_one(self.store.pool())
        .await
        .unwrap()
    }

    async fn administration(&self) -> Vec<String> {
        let deeds: Vec<Deed> = sqlx::query_as(
            "SELECT action, resource, from_token, to_token, from_issuer, to_issuer, reason
             FROM fenced.admin_log ORDER BY id",
        )
        .fetch_all(self.store.pool())
        .await
        .unwrap();
        deeds.into_iter().map(line_of).collect()
    }

    async fn triggers(&self) -> Vec<String> {
        sqlx::query_scalar(
            "SELECT concat_ws(' ', tgname, tgfoid::regproc) FROM pg_trigger WHERE NOT tgisinternal
             ORDER BY 1",
        )
        .fetch_all(self.store.pool())
        .await
        .unwrap()
    }

    async fn delete_mark(&self, resource: &ResourceName) {
        sqlx::query("DELETE FROM fenced.high_water_mark WHERE resource = $1")
            .bind(resource.as_str())
            .execute(self.store.pool())
            .await
            .unwrap();
    }
}

impl Server for PostgresServer {
    const SEAL: &'static str = "SELECT fenced.seal_issuer('redis', 'etcd', 'moved')";

    fn ending(&self) -> PgFencedStore {
        self.store.clone().with_options(soon())
    }

    async fn end_session(&self, connection: &mut PgConnection) {
        let session = sqlx::raw_sql("SELECT pg_backend_pid()").fetch_one(connection);
        let session: i32 = session.await.unwrap().get(0);
        let end = sqlx::query("SELECT pg_terminate_backend($1, 5000)").bind(session);
        end.execute(self.store.pool()).await.unwrap();
    }
}

/// Claims that end older holders after a tenth of a second.
pub(crate) fn soon() -> PgTxOptions {
    PgTxOptions::default().lock_timeout(Some(Duration::from_millis(100)))
}
