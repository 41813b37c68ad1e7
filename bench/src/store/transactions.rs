//! A fenced transaction or statement compared with the same one without the fence.

use fenced_store::{Dialect, FencedStore, PgFencedStore};
use sqlx::{Encode, Executor, IntoArguments, Type};

use super::load::{Load, add};
use crate::{
    figure::{BoxError, Measured, Unit},
    paired::take_turns,
};

/// The statements that differ between databases.
#[derive(Clone, Copy)]
pub(super) struct Statements {
    /// Begins a transaction that may write.
    pub(super) begin: &'static str,
    /// Adds one to an account.
    pub(super) update: &'static str,
}

/// Those of Postgres.
pub(super) const POSTGRES: Statements = Statements {
    begin: "BEGIN",
    update: "UPDATE accounts SET balance = balance + 1 WHERE id = $1",
};

/// Begin, one update, commit; on the same connections.
pub(super) async fn fenced_vs_plain<DB>(
    store: FencedStore<DB>,
    statements: Statements,
    load: Load,
    rounds: u32,
) -> Result<Measured, BoxError>
where
    DB: Dialect,
    DB::Arguments: IntoArguments<DB>,
    for<'c> &'c mut DB::Connection: Executor<'c, Database = DB>,
    for<'q> i64: Encode<'q, DB> + Type<DB>,
{
    let Statements { begin, update } = statements;
    let grants = load.claim(&store).await?;
    let medians = take_turns(
        rounds,
        async |samples| {
            let transaction = |client: u32| {
                let (store, grant) = (&store, &grants[client as usize]);
                async move {
                    let mut tx = store.begin(grant).await?;
                    add::<DB>(&mut tx, update, client).await?;
                    tx.commit().await?;
                    Ok(())
                }
            };
            load.turn(samples, transaction).await
        },
        async |samples| {
            let transaction = |client: u32| {
                let pool = store.pool();
                async move {
                    let mut tx = pool.begin_with(begin).await?;
                    add::<DB>(&mut tx, update, client).await?;
                    tx.commit().await?;
                    Ok(())
                }
            };
            load.turn(samples, transaction).await
        },
    )
    .await?;
    Ok(medians.ours_by_other(Unit::Micros))
}

/// One update, on the same connections.
pub(super) async fn single_vs_plain(
    store: PgFencedStore,
    load: Load,
    rounds: u32,
) -> Result<Measured, BoxError> {
    let grants = load.claim(&store).await?;
    let update = |client: u32| sqlx::query(POSTGRES.update).bind(i64::from(client));
    let medians = take_turns(
        rounds,
        async |samples| {
            let statement = |client: u32| {
                let begin = store.begin(&grants[client as usize]);
                async move {
                    begin.execute(update(client)).await?;
                    Ok(())
                }
            };
            load.turn(samples, statement).await
        },
        async |samples| {
            let statement = |client: u32| {
                let pool = store.pool();
                async move {
                    update(client).execute(pool).await?;
                    Ok(())
                }
            };
            load.turn(samples, statement).await
        },
    )
    .await?;
    Ok(medians.ours_by_other(Unit::Micros))
}
