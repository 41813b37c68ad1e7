//! The cost of the fence on Postgres.

use std::time::Duration;

use e2e::{
    proxy::{Fault, Proxy},
    servers::DatabaseServer,
};
use fenced_store::{FencedStore, PgFencedStore};
use sqlx::{
    Executor,
    postgres::{PgConnectOptions, PgPoolOptions},
};

use super::{
    load::{Load, ONE_CLIENT},
    transactions::{POSTGRES, fenced_vs_plain, single_vs_plain},
};
use crate::{
    figure::{BoxError, Measured},
    pinning::start_server,
};

/// The rows of the table.
const ACCOUNTS: u32 = 10_000;

/// Those of a server that tests start save time where a crash may lose something.
const DURABLE: [&str; 4] = [
    "fsync=on",
    "full_page_writes=on",
    "shared_buffers=128MB",
    "checkpoint_timeout=1h",
];

/// One statement by each client.
pub(super) async fn single(rounds: u32, load: Load) -> Result<Measured, BoxError> {
    let server = durable()?;
    let store = store(server.url().parse()?, load).await?;
    single_vs_plain(store, load, rounds).await
}

/// A transaction by each client.
pub(super) async fn tx(rounds: u32, load: Load) -> Result<Measured, BoxError> {
    let server = durable()?;
    let store = store(server.url().parse()?, load).await?;
    fenced_vs_plain(store, POSTGRES, load, rounds).await
}

/// One client at the other end of a network.
pub(super) async fn tx_over_network(rounds: u32) -> Result<Measured, BoxError> {
    let load = Load {
        transactions: 5,
        ..ONE_CLIENT
    };
    let server = durable()?;
    let direct: PgConnectOptions = server.url().parse()?;
    let network = Proxy::start(&format!("tcp://127.0.0.1:{}", direct.get_port())).await;
    // In each direction; a timer adds up to one more.
    network.inflict_on_new(Fault::Delay(Duration::from_millis(1)));
    let address = network.url("tcp");
    let port = address.rsplit(':').next().unwrap_or_default().parse()?;
    let store = store(direct.port(port), load).await?;
    fenced_vs_plain(store, POSTGRES, load, rounds).await
}

/// A server that loses nothing in a crash.
pub(crate) fn durable() -> Result<DatabaseServer, BoxError> {
    start_server(async || DatabaseServer::postgres(&DURABLE).await)
}

/// A store with a connection and an account for each client.
async fn store(options: PgConnectOptions, load: Load) -> Result<PgFencedStore, BoxError> {
    let pool = PgPoolOptions::new()
        .min_connections(load.clients)
        .max_connections(load.clients);
    let store = FencedStore::new(pool.connect_with(options).await?);
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
