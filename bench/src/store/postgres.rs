//! The cost of the fence on Postgres.

use std::{net::SocketAddr, time::Duration};

use fenced_store::{FencedStore, PgFencedStore};
use sqlx::{
    Executor, PgPool,
    postgres::{PgConnectOptions, PgPoolOptions},
};

use super::{
    delay::Delay,
    floor,
    load::Load,
    server::Server,
    single,
    transactions::{POSTGRES, fenced_vs_plain},
};
use crate::figure::{BoxError, Measured, Setting};

/// The rows of the table.
pub(super) const ACCOUNTS: u32 = 10_000;

pub(super) const ONE_CLIENT: Load = Load {
    clients: 1,
    transactions: 50,
    shared_resource: false,
};

const MANY_CLIENTS: Load = Load {
    clients: 32,
    transactions: 8,
    shared_resource: false,
};

/// One statement by one client.
pub(super) async fn single(setting: Setting) -> Result<Measured, BoxError> {
    let server = Server::postgres(setting.pinning).await?;
    let store = store(server.url().parse()?, ONE_CLIENT).await?;
    single::fenced_vs_plain(store, ONE_CLIENT, setting.rounds).await
}

/// One statement by each of 32 clients.
pub(super) async fn single_of_many(setting: Setting) -> Result<Measured, BoxError> {
    let server = Server::postgres(setting.pinning).await?;
    let store = store(server.url().parse()?, MANY_CLIENTS).await?;
    single::fenced_vs_plain(store, MANY_CLIENTS, setting.rounds).await
}

/// 32 clients on loopback, each with a resource of its own.
pub(super) async fn tx_on_loopback(setting: Setting) -> Result<Measured, BoxError> {
    let server = Server::postgres(setting.pinning).await?;
    let store = store(server.url().parse()?, MANY_CLIENTS).await?;
    fenced_vs_plain(store, POSTGRES, MANY_CLIENTS, setting.rounds).await
}

/// 32 clients that write different rows of the same resource.
pub(super) async fn tx_on_hot_resource(setting: Setting) -> Result<Measured, BoxError> {
    let load = Load {
        shared_resource: true,
        ..MANY_CLIENTS
    };
    let server = Server::postgres(setting.pinning).await?;
    let store = store(server.url().parse()?, load).await?;
    fenced_vs_plain(store, POSTGRES, load, setting.rounds).await
}

/// The same as `tx_on_loopback`, but with a fence that only reads the mark.
pub(super) async fn tx_with_mark(setting: Setting) -> Result<Measured, BoxError> {
    let server = Server::postgres(setting.pinning).await?;
    let store = store(server.url().parse()?, MANY_CLIENTS).await?;
    floor::tx_with_mark_vs_plain(store, MANY_CLIENTS, setting.rounds).await
}

/// The same as `single_of_many`, but with a fence that only reads the mark.
pub(super) async fn single_with_mark(setting: Setting) -> Result<Measured, BoxError> {
    let server = Server::postgres(setting.pinning).await?;
    let store = store(server.url().parse()?, MANY_CLIENTS).await?;
    floor::single_with_mark_vs_plain(store, MANY_CLIENTS, setting.rounds).await
}

/// One client at the other end of a network.
pub(super) async fn tx_over_network(setting: Setting) -> Result<Measured, BoxError> {
    let load = Load {
        transactions: 5,
        ..ONE_CLIENT
    };
    let server = Server::postgres(setting.pinning).await?;
    let direct: PgConnectOptions = server.url().parse()?;
    let address = SocketAddr::from(([127, 0, 0, 1], direct.get_port()));
    let network = Delay::before(address, Duration::from_millis(3)).await?;
    let store = store(direct.port(network.address().port()), load).await?;
    fenced_vs_plain(store, POSTGRES, load, setting.rounds).await
}

/// A store with a connection and an account for each client.
pub(super) async fn store(
    options: PgConnectOptions,
    load: Load,
) -> Result<PgFencedStore, BoxError> {
    let pool = PgPoolOptions::new()
        .min_connections(load.clients)
        .max_connections(load.clients);
    let store = FencedStore::new(until_ready(pool, options).await?);
    store.migrate().await?;
    store
        .pool()
        .execute("CREATE TABLE accounts (id bigint PRIMARY KEY, balance bigint NOT NULL)")
        .await?;
    sqlx::query("INSERT INTO accounts SELECT id, 0 FROM generate_series(0, $1 - 1) AS id")
        .bind(i64::from(ACCOUNTS))
        .execute(store.pool())
        .await?;
    Ok(store)
}

/// A server listens a moment before it accepts clients.
async fn until_ready(pool: PgPoolOptions, options: PgConnectOptions) -> sqlx::Result<PgPool> {
    let starting = |error: &sqlx::Error| {
        let error = error.as_database_error();
        error
            .and_then(|error| error.code())
            .is_some_and(|code| code == "57P03")
    };
    loop {
        match pool.clone().connect_with(options.clone()).await {
            Err(error) if starting(&error) => tokio::time::sleep(Duration::from_millis(10)).await,
            done => return done,
        }
    }
}
