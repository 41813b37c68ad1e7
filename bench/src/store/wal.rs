//! What a transaction adds to the write-ahead log of Postgres.

use lock_core::Sequencer;
use sqlx::PgPool;

use super::{
    load::add,
    postgres::{self, STATEMENTS},
    server::Server,
};
use crate::{
    figure::{BoxError, Measured, Setting, Unit},
    paired::{Samples, take_turns},
};

/// In one turn.
const TRANSACTIONS: u32 = 50;

/// One client, whose transactions update one row each.
pub(super) async fn bytes_vs_plain(setting: Setting) -> Result<Measured, BoxError> {
    let server = Server::postgres(setting.pinning).await?;
    let load = postgres::ONE_CLIENT;
    let store = postgres::store(server.url().parse()?, load).await?;
    let grants: Vec<Sequencer> = load.claim(&store).await?;
    let pool = store.pool();
    let medians = take_turns(
        setting.rounds,
        async |samples| {
            let written = written(pool).await?;
            for _ in 0..TRANSACTIONS {
                let mut tx = store.begin(&grants[0]).await?;
                add::<sqlx::Postgres>(&mut tx, STATEMENTS.update, 0).await?;
                tx.commit().await?;
            }
            since(pool, written, samples).await
        },
        async |samples| {
            let written = written(pool).await?;
            for _ in 0..TRANSACTIONS {
                let mut tx = pool.begin().await?;
                add::<sqlx::Postgres>(&mut tx, STATEMENTS.update, 0).await?;
                tx.commit().await?;
            }
            since(pool, written, samples).await
        },
    )
    .await?;
    Ok(medians.ours_by_other(Unit::Bytes))
}

/// How many bytes were ever written to the log.
async fn written(pool: &PgPool) -> sqlx::Result<f64> {
    let written = "SELECT (pg_current_wal_insert_lsn() - '0/0')::float8";
    sqlx::query_scalar(written).fetch_one(pool).await
}

/// Keeps what a transaction of this turn has written.
async fn since(pool: &PgPool, before: f64, samples: &mut Samples) -> Result<(), BoxError> {
    samples.push((written(pool).await? - before) / f64::from(TRANSACTIONS));
    Ok(())
}
