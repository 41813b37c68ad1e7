//! A fenced statement compared with the same one without the fence, one round trip each.

use fenced_store::PgFencedStore;

use super::{load::Load, transactions::POSTGRES};
use crate::{
    figure::{BoxError, Measured, Unit},
    paired::take_turns,
};

/// One update, on the same connections.
pub(super) async fn fenced_vs_plain(
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
