//! Claims, and the end of the sessions that keep a claim waiting: a holder may be paused inside a
//! transaction.

use lock_core::{Sequencer, backend::support::unlogged};
use sqlx::{PgPool, Postgres, Row, SqlStr};
use tracing::warn;

use super::calls;
use crate::{
    FenceError, counted,
    dialect::Errors,
    transaction::leaked::{past_leaked, unless_read_only},
};

/// How often a claim queues, including the first time. After the first time, every paused holder
/// that kept the claim waiting is gone. More transactions of an older holder may come before the
/// claim queues again. If all of these are paused, too, the second time ends them.
pub(super) const ATTEMPTS: u32 = 3;

pub(super) async fn execute(pool: &PgPool, statement: &SqlStr) -> Result<(), sqlx::Error> {
    let send = || async {
        let mut connection = pool.acquire().await?;
        let sent = sqlx::raw_sql(statement.clone()).execute(&mut *connection);
        let sent = unlogged(sent).await;
        unless_read_only(&mut connection, sent)
    };
    past_leaked(pool, send).await.map(drop)
}

/// The database checks the mark again first, so a claim that has become stale ends no session.
pub(super) async fn terminate_older(
    pool: &PgPool,
    sequencer: &Sequencer,
) -> Result<(), FenceError> {
    let terminate = calls::terminate_older(sequencer);
    let row = past_leaked(pool, || sqlx::raw_sql(terminate.clone()).fetch_one(pool))
        .await
        .map_err(Postgres::of_our_call)?;
    for session in row.try_get::<Vec<i32>, _>("terminated")? {
        warn!(
            resource = %sequencer.resource(),
            token = %sequencer.token(),
            session,
            "ended a session of an older holder: it kept a claim waiting inside a transaction"
        );
        counted::termination();
    }
    Ok(())
}
