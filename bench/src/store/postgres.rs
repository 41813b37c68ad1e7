//! Servers for the cost of the fence on Postgres, and the figures that compare two sides.

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
    load::{Load, MANY_CLIENTS, ONE_CLIENT},
    protections::{ALTERNATIVES, Protection, Writers},
};
use crate::{
    figure::{BoxError, Measured, Unit},
    pinning::start_server,
};

/// The rows of the table.
const ACCOUNTS: u32 = 10_000;

/// Settings of a server that loses nothing in a crash. A server of the tests is faster, but may
/// lose data in a crash.
const DURABLE: [&str; 4] = [
    "fsync=on",
    "full_page_writes=on",
    "shared_buffers=128MB",
    "checkpoint_timeout=1h",
];

/// No commit waits for the disk, so that many clients keep the processor of the server busy.
const SATURATED: [&str; 3] = [
    "synchronous_commit=off",
    "shared_buffers=128MB",
    "checkpoint_timeout=1h",
];

/// Each client writes with one protection, and then with the other.
pub(super) async fn one_by_other(
    rounds: u32,
    load: Load,
    one: Protection,
    other: Protection,
) -> Result<Measured, BoxError> {
    let server = durable()?;
    one_by_best(server.url().parse()?, rounds, load, one, &[other]).await
}

/// As [`one_by_other`], on a server that is busy all the time.
pub(super) async fn one_by_other_saturated(
    rounds: u32,
    one: Protection,
    other: Protection,
) -> Result<Measured, BoxError> {
    let server = start_server(async || DatabaseServer::postgres(&SATURATED).await)?;
    one_by_best(server.url().parse()?, rounds, MANY_CLIENTS, one, &[other]).await
}

/// As [`one_by_other`], for one client at the other end of a network.
pub(super) async fn one_by_other_over_network(
    rounds: u32,
    one: Protection,
    other: Protection,
) -> Result<Measured, BoxError> {
    let load = Load {
        transactions: 5,
        ..ONE_CLIENT
    };
    let server = durable()?;
    let (_network, address) = over_network(&server, Duration::from_millis(3)).await?;
    one_by_best(address, rounds, load, one, &[other]).await
}

/// A protection, compared with the best of the protections that an application could use instead.
pub(super) async fn one_by_alternatives(
    rounds: u32,
    load: Load,
    one: Protection,
) -> Result<Measured, BoxError> {
    let server = durable()?;
    one_by_best(server.url().parse()?, rounds, load, one, &ALTERNATIVES).await
}

async fn one_by_best(
    address: PgConnectOptions,
    rounds: u32,
    load: Load,
    one: Protection,
    others: &[Protection],
) -> Result<Measured, BoxError> {
    let writers = Writers::claim(store(address, load).await?, load).await?;
    let all = [&[one], others].concat();
    let medians = writers.medians(rounds, &all).await?;
    let [ours, others @ ..] = medians.as_slice() else {
        return Err("nothing was measured".into());
    };
    let best = others.iter().copied().fold(f64::INFINITY, f64::min);
    Ok(Measured {
        ratio: ours / best,
        ours: *ours,
        other: best,
        unit: Unit::Micros,
    })
}

/// A server that loses nothing in a crash.
pub(crate) fn durable() -> Result<DatabaseServer, BoxError> {
    start_server(async || DatabaseServer::postgres(&DURABLE).await)
}

/// Puts a network with round trips of this length in front of a server. Returns the address to
/// connect to.
pub(crate) async fn over_network(
    server: &DatabaseServer,
    round_trip: Duration,
) -> Result<(Proxy, PgConnectOptions), BoxError> {
    let direct: PgConnectOptions = server.url().parse()?;
    let network = Proxy::start(&format!("tcp://127.0.0.1:{}", direct.get_port())).await;
    network.inflict_on_new(Fault::Delay(round_trip / 2));
    let port = network.port();
    Ok((network, direct.port(port)))
}

/// A store with an account for each client. The pool has the settings of an application in which
/// messages count: a connection is given back while another one is taken, and no connection is
/// tested when it is taken, because a test would be one more message for each write.
pub(super) async fn store(
    address: PgConnectOptions,
    load: Load,
) -> Result<PgFencedStore, BoxError> {
    let connections = 2 * load.clients;
    let pool = PgPoolOptions::new()
        .min_connections(connections)
        .max_connections(connections)
        .test_before_acquire(false);
    let store = FencedStore::new(pool.connect_with(address).await?);
    store.migrate().await?;
    store
        .pool()
        .execute(
            "CREATE TABLE accounts (id bigint PRIMARY KEY, balance bigint NOT NULL,
                                    version bigint NOT NULL)",
        )
        .await?;
    sqlx::query("INSERT INTO accounts SELECT id, 0, 0 FROM generate_series(0, $1 - 1) AS id")
        .bind(i64::from(ACCOUNTS))
        .execute(store.pool())
        .await?;
    Ok(store)
}
