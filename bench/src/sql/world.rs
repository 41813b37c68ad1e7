//! A server with accounts, and clients of it.

use e2e::servers::DatabaseServer;
use fenced_store::{PgFencedLocks, PgFencedStore};
use sqlx::{
    Executor, PgConnection, PgPool,
    postgres::{PgConnectOptions, PgPoolOptions},
};

use crate::{figure::BoxError, store::durable_postgres};

/// The number of accounts. Each client has one account.
pub(super) const ACCOUNTS: u32 = 1000;

/// A server that flushes its commits, and a pool of this many connections to it.
pub(super) struct World {
    pub(super) server: DatabaseServer,
    pub(super) pool: PgPool,
    /// Lock service and store in this server, over the same pool.
    pub(super) accounts: PgFencedLocks,
}

impl World {
    pub(super) async fn new(connections: u32) -> Result<Self, BoxError> {
        let server = durable_postgres()?;
        let address = server.url().parse()?;
        Self::reached_by(address, server, connections).await
    }

    /// A world whose clients reach the server at this address.
    pub(super) async fn reached_by(
        address: PgConnectOptions,
        server: DatabaseServer,
        connections: u32,
    ) -> Result<Self, BoxError> {
        let pool = PgPoolOptions::new()
            .min_connections(connections)
            .max_connections(connections);
        let pool = pool.connect_with(address).await?;
        let store = PgFencedStore::new(pool.clone());
        store.migrate().await?;
        pool.execute(
            "CREATE TABLE accounts (id integer PRIMARY KEY, balance bigint NOT NULL)
             WITH (fillfactor = 50);
             CREATE TABLE lease (resource text PRIMARY KEY, holder text, until timestamptz)
             WITH (fillfactor = 50)",
        )
        .await?;
        for table in [
            "INSERT INTO accounts SELECT id, 0 FROM generate_series(0, $1 - 1) AS id",
            "INSERT INTO lease SELECT id, '', '-infinity' FROM generate_series(0, $1 - 1) AS id",
        ] {
            let count = i32::try_from(ACCOUNTS)?;
            sqlx::query(table).bind(count).execute(&pool).await?;
        }
        let accounts = palisade::open(store).await?;
        // The very first claim also sets the issuer, so it is not measured.
        accounts.acquire("first").await?.release().await?;
        Ok(Self {
            server,
            pool,
            accounts,
        })
    }

    /// Acquires, claims and releases.
    pub(super) async fn cycle(&self, resource: &str) -> Result<(), BoxError> {
        let guard = self.accounts.acquire(resource).await?;
        guard.release().await?;
        Ok(())
    }
}

/// A fenced write with everything that belongs to it.
pub(super) async fn fenced_write(accounts: &PgFencedLocks, client: u32) -> Result<(), BoxError> {
    let guard = accounts.acquire(format!("account:{client}")).await?;
    let mut tx = guard.begin().await?;
    update(&mut tx, client).await?;
    tx.commit_and_release(guard).await?;
    Ok(())
}

/// The statement with which everything is compared.
pub(super) async fn update(connection: &mut PgConnection, client: u32) -> Result<(), BoxError> {
    let update = "UPDATE accounts SET balance = balance + 1 WHERE id = $1";
    let update = sqlx::query(update).bind(i32::try_from(client)?);
    update.execute(connection).await?;
    Ok(())
}
