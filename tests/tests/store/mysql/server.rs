//! A fenced store on a real MariaDB or MySQL server.

use std::{marker::PhantomData, time::Duration};

use e2e::{
    proxy::Proxy,
    servers::{MySqlDatabase, MySqlServer},
    warden::ServerKind,
};
use fenced_store::{Executed, FenceError, FencedStore, MySqlFencedStore, MySqlTxOptions};
use lock_core::{ResourceName, Sequencer};
use sqlx::{
    AssertSqlSafe, Executor, MySql, MySqlConnection, MySqlPool,
    mysql::{MySqlConnectOptions, MySqlPoolOptions, MySqlSslMode},
};

use crate::{
    rule::{Deed, Harness, SqlHarness, line_of, migrated},
    servers::Server,
};

/// An empty database of one test, with the table `accounts`.
pub(crate) struct MySqlStore<S> {
    store: MySqlFencedStore,
    database: MySqlDatabase,
    server: PhantomData<S>,
}

impl<S: MySqlServer> MySqlStore<S> {
    pub(crate) fn url(&self) -> &str {
        self.database.url()
    }

    /// A proxy in front of the server, and a store with one connection that goes through it.
    pub(crate) async fn behind_a_proxy(&self) -> (Proxy, MySqlFencedStore) {
        let options: MySqlConnectOptions = self.url().parse().unwrap();
        let target = format!("mysql://{}:{}", options.get_host(), options.get_port());
        let proxy = Proxy::start(&target).await;
        let pool = waiting::<S>(2).max_connections(1);
        let options = options.port(proxy.port());
        let pool = pool.connect_with(options).await;
        (proxy, FencedStore::new(pool.unwrap()))
    }

    /// A pool of one connection: its next user gets everything that the previous user left behind.
    pub(crate) async fn pool_of_one(&self) -> MySqlPool {
        let pool = waiting::<S>(2).max_connections(1);
        pool.connect(self.database.url()).await.unwrap()
    }

    /// A pool whose sessions wait this number of seconds for locks.
    fn pool_of_waiting(&self, seconds: u32) -> MySqlPool {
        let pool = waiting::<S>(seconds);
        pool.connect_lazy(self.database.url()).unwrap()
    }

    /// A store whose sessions have first executed a statement.
    pub(crate) async fn store_after(&self, statement: &'static str) -> MySqlFencedStore {
        let pool = MySqlPoolOptions::new()
            .after_connect(move |connection, _| {
                Box::pin(async move {
                    let limits = AssertSqlSafe(limits::<S>(2));
                    connection.execute(limits).await?;
                    connection.execute(statement).await.map(drop)
                })
            })
            .connect(self.database.url())
            .await
            .unwrap();
        FencedStore::new(pool)
    }
}

impl<S: MySqlServer> MySqlStore<S> {
    /// A store whose sessions are those of a user of its own, who may read and write this database.
    /// `grant` is the beginning of a statement that gives more rights to the user, or it is empty.
    pub(crate) async fn store_of_user(&self, grant: &str) -> MySqlFencedStore {
        self.store_of("*", grant).await
    }

    /// As `store_of_user`, but the user may read and write only one table.
    pub(crate) async fn store_of_user_on(&self, table: &str) -> MySqlFencedStore {
        self.store_of(table, "").await
    }

    async fn store_of(&self, tables: &str, grant: &str) -> MySqlFencedStore {
        let options: MySqlConnectOptions = self.database.url().parse().unwrap();
        let database = options.get_database().unwrap();
        let user = format!("u{:08x}", rand::random::<u32>());
        let mut script = format!(
            "CREATE USER {user}@'127.0.0.1' IDENTIFIED BY 'secret';
             GRANT SELECT, INSERT, UPDATE, DELETE ON {database}.{tables} TO {user}@'127.0.0.1';"
        );
        if !grant.is_empty() {
            script += &format!("{grant} {user}@'127.0.0.1'");
        }
        let script = sqlx::raw_sql(AssertSqlSafe(script));
        self.store.pool().execute(script).await.unwrap();
        let options = options.username(&user).password("secret");
        let options = options.ssl_mode(MySqlSslMode::Preferred); // MySQL has not seen it yet
        let pool = waiting::<S>(2).connect_with(options).await.unwrap();
        FencedStore::new(pool)
    }
}

impl<S: MySqlServer> Harness for MySqlStore<S> {
    type Db = MySql;

    async fn fresh() -> Self {
        migrated().await
    }

    fn store(&self) -> &MySqlFencedStore {
        &self.store
    }

    async fn impatient(&self) -> MySqlFencedStore {
        let options = one_second().terminate_older(false);
        self.ending().with_options(options)
    }

    async fn add(connection: &mut MySqlConnection, amount: i64) -> Result<(), FenceError> {
        sqlx::query("UPDATE accounts SET balance = balance + ? WHERE id = 42")
            .bind(amount)
            .execute(connection)
            .await?;
        Ok(())
    }

    async fn balance(connection: &mut MySqlConnection) -> i64 {
        sqlx::query_scalar("SELECT balance FROM accounts WHERE id = 42")
            .fetch_one(connection)
            .await
            .unwrap()
    }

    async fn add_unfenced(store: &MySqlFencedStore, amount: i64) -> Result<(), FenceError> {
        Self::add_by_itself(&mut *store.pool().acquire().await?, amount).await
    }
}

impl<S: MySqlServer> SqlHarness for MySqlStore<S> {
    const BOOKS: &'static str = "_fenced_migrations";

    const QUOTE: char = '`';

    async fn unmigrated() -> Self {
        let database = S::database().await;
        let pool = waiting::<S>(20).max_connections(16);
        let pool = pool.connect(database.url()).await.unwrap();
        pool.execute("CREATE TABLE accounts (id INT PRIMARY KEY, balance BIGINT NOT NULL)")
            .await
            .unwrap();
        pool.execute("INSERT INTO accounts VALUES (42, 100)")
            .await
            .unwrap();
        // Here an impatient store waits ten times as long as an impatient store on another
        // database.
        let options = MySqlTxOptions::default().lock_timeout(Some(Duration::from_secs(20)));
        Self {
            store: FencedStore::new(pool).with_options(options),
            database,
            server: PhantomData,
        }
    }

    async fn store_of_one(&self) -> MySqlFencedStore {
        FencedStore::new(self.pool_of_one().await)
    }

    async fn execute(
        connection: &mut MySqlConnection,
        statement: &str,
    ) -> Result<u64, sqlx::Error> {
        let statement = sqlx::raw_sql(AssertSqlSafe(statement));
        Ok(connection.execute(statement).await?.rows_affected())
    }

    async fn add_at_once(
        store: &MySqlFencedStore,
        grant: &Sequencer,
        account: i64,
        amount: i64,
    ) -> Result<Executed, FenceError> {
        let add = sqlx::query("UPDATE accounts SET balance = balance + ? WHERE id = ?");
        store
            .begin(grant)
            .execute(add.bind(amount).bind(account))
            .await
    }

    async fn dump(&self) -> String {
        let issuers: Vec<(i8, String)> = sqlx::query_as("SELECT * FROM fenced_lock_service")
            .fetch_all(self.store.pool())
            .await
            .unwrap();
        let marks: Vec<(String, i64, String, String, String)> = sqlx::query_as(
            "SELECT resource, token, holder, issuer, CAST(claimed_at AS CHAR)
             FROM fenced_high_water_mark",
        )
        .fetch_all(self.store.pool())
        .await
        .unwrap();
        format!("{issuers:?} {marks:?}")
    }

    async fn administration(&self) -> Vec<String> {
        let deeds: Vec<Deed> = sqlx::query_as(
            "SELECT action, resource, from_token, to_token, from_issuer, to_issuer, reason
             FROM fenced_admin_log ORDER BY id",
        )
        .fetch_all(self.store.pool())
        .await
        .unwrap();
        deeds.into_iter().map(line_of).collect()
    }

    async fn triggers(&self) -> Vec<String> {
        sqlx::query_scalar(
            "SELECT trigger_name FROM information_schema.triggers
             WHERE trigger_schema = DATABASE() ORDER BY 1",
        )
        .fetch_all(self.store.pool())
        .await
        .unwrap()
    }

    async fn delete_mark(&self, resource: &ResourceName) {
        sqlx::query("DELETE FROM fenced_high_water_mark WHERE resource = ?")
            .bind(resource.as_str())
            .execute(self.store.pool())
            .await
            .unwrap();
    }
}

impl<S: MySqlServer> Server for MySqlStore<S> {
    const SEAL: &'static str = "UPDATE fenced_lock_service SET name = 'etcd' WHERE name = 'redis'";

    fn ending(&self) -> MySqlFencedStore {
        let pool = on::<S, _>(self.store.pool().clone(), self.pool_of_waiting(1));
        FencedStore::new(pool).with_options(one_second())
    }

    async fn end_session(&self, connection: &mut MySqlConnection) {
        let session = sqlx::query_scalar("SELECT CONNECTION_ID()");
        let session: u64 = session.fetch_one(connection).await.unwrap();
        let kill = AssertSqlSafe(format!("KILL CONNECTION {session}"));
        self.store.pool().execute(kill).await.unwrap();
    }
}

/// The value, of two, that belongs to this server.
pub(crate) fn on<S: MySqlServer, T>(mariadb: T, mysql: T) -> T {
    if S::KIND == ServerKind::MariaDb {
        mariadb
    } else {
        mysql
    }
}

/// The statement that limits the lock waits of a session. The store limits single statements, which
/// MySQL cannot.
pub(crate) fn limits<S: MySqlServer>(seconds: u32) -> String {
    let limits =
        format!("SET SESSION lock_wait_timeout = {seconds}, innodb_lock_wait_timeout = {seconds}");
    on::<S, _>("DO 0".to_owned(), limits)
}

/// Options of a pool whose sessions have these limits.
pub(crate) fn waiting<S: MySqlServer>(seconds: u32) -> MySqlPoolOptions {
    MySqlPoolOptions::new().after_connect(move |connection, _| {
        let limits = AssertSqlSafe(limits::<S>(seconds));
        Box::pin(async move { connection.execute(limits).await.map(drop) })
    })
}

/// The shortest time that InnoDB waits.
pub(crate) fn one_second() -> MySqlTxOptions {
    MySqlTxOptions::default().lock_timeout(Some(Duration::from_secs(1)))
}
