//! How much a transaction adds to the write-ahead log of Postgres.

use sqlx::{PgPool, Postgres};

use super::{
    load::{Load, add},
    postgres::{self, ACCOUNTS, ONE_CLIENT},
    server::Server,
    transactions::POSTGRES,
};
use crate::{
    figure::{BoxError, Measured, Setting, Unit},
    paired::{Samples, take_turns},
};

/// The number in one turn.
const TRANSACTIONS: u32 = 50;
/// One row for each resource; the rows are on different pages of the table.
const ROWS: u32 = 200;
const BETWEEN_ROWS: u32 = ACCOUNTS / ROWS;

/// One client, whose transactions update one row after the other.
pub(super) async fn bytes_vs_plain(setting: Setting) -> Result<Measured, BoxError> {
    let server = Server::postgres(setting.pinning).await?;
    let store = postgres::store(server.url().parse()?, ONE_CLIENT).await?;
    let resources = Load {
        clients: ROWS,
        ..ONE_CLIENT
    };
    let grants = resources.claim(&store).await?;
    let pool = store.pool();
    let (mut ours, mut theirs) = ((0..ROWS).cycle(), (0..ROWS).cycle());
    let medians = take_turns(
        setting.rounds,
        async |samples| {
            let written = written(pool).await?;
            for row in ours.by_ref().take(TRANSACTIONS as usize) {
                let mut tx = store.begin(&grants[row as usize]).await?;
                add::<Postgres>(&mut tx, POSTGRES.update, row * BETWEEN_ROWS).await?;
                tx.commit().await?;
            }
            since(pool, written, samples).await
        },
        async |samples| {
            let written = written(pool).await?;
            for row in theirs.by_ref().take(TRANSACTIONS as usize) {
                let mut tx = pool.begin().await?;
                add::<Postgres>(&mut tx, POSTGRES.update, row * BETWEEN_ROWS).await?;
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

/// Records how much a transaction of this turn has written.
async fn since(pool: &PgPool, before: f64, samples: &mut Samples) -> Result<(), BoxError> {
    samples.push((written(pool).await? - before) / f64::from(TRANSACTIONS));
    Ok(())
}
