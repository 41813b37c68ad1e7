//! The cost of a fence that only reads the mark: nobody compares it, holds a lock, or ensures that
//! this very transaction is committed. A check on the server cannot cost less.

use fenced_store::PgFencedStore;
use sqlx::{Postgres, postgres::PgQueryResult};

use super::{
    load::{Load, add},
    transactions::POSTGRES,
};
use crate::{
    figure::{BoxError, Measured, Unit},
    paired::take_turns,
};

const MARK: &str = "SELECT token FROM fenced.high_water_mark WHERE resource = $1";

const UPDATE_BY_MARK: &str = "UPDATE accounts SET balance = balance + 1 \
    WHERE id = $1 AND EXISTS (SELECT FROM fenced.high_water_mark WHERE resource = $2)";

/// Begin, read the mark, one update and commit, compared with the same without the mark.
pub(super) async fn tx_with_mark_vs_plain(
    store: PgFencedStore,
    load: Load,
    rounds: u32,
) -> Result<Measured, BoxError> {
    let grants = load.claim(&store).await?;
    let transaction = |client: u32, reads_mark: bool| {
        let (pool, grant) = (store.pool(), &grants[client as usize]);
        async move {
            let mut tx = pool.begin().await?;
            if reads_mark {
                let mark = sqlx::query_scalar(MARK).bind(grant.resource().as_str());
                let _token: i64 = mark.fetch_one(&mut *tx).await?;
            }
            add::<Postgres>(&mut tx, POSTGRES.update, client).await?;
            Ok(tx.commit().await?)
        }
    };
    let medians = take_turns(
        rounds,
        async |samples| load.turn(samples, |client| transaction(client, true)).await,
        async |samples| {
            load.turn(samples, |client| transaction(client, false))
                .await
        },
    )
    .await?;
    Ok(medians.ours_by_other(Unit::Micros))
}

/// One update that only finds a row if there is a mark, compared with the same without the mark.
pub(super) async fn single_with_mark_vs_plain(
    store: PgFencedStore,
    load: Load,
    rounds: u32,
) -> Result<Measured, BoxError> {
    let grants = load.claim(&store).await?;
    let medians = take_turns(
        rounds,
        async |samples| {
            let statement = |client: u32| {
                let update = sqlx::query(UPDATE_BY_MARK).bind(i64::from(client));
                let update = update.bind(grants[client as usize].resource().as_str());
                written(update.execute(store.pool()))
            };
            load.turn(samples, statement).await
        },
        async |samples| {
            let statement = |client: u32| {
                let update = sqlx::query(POSTGRES.update).bind(i64::from(client));
                written(update.execute(store.pool()))
            };
            load.turn(samples, statement).await
        },
    )
    .await?;
    Ok(medians.ours_by_other(Unit::Micros))
}

/// An update that finds no row costs less, so it must find one.
async fn written(
    update: impl Future<Output = sqlx::Result<PgQueryResult>>,
) -> Result<(), BoxError> {
    match update.await?.rows_affected() {
        1 => Ok(()),
        rows => Err(format!("an update wrote {rows} rows").into()),
    }
}
