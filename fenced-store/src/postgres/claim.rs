//! Claims do not wait for a holder that is paused inside a transaction.

use lock_core::Sequencer;
use sqlx::{PgPool, Row, SqlStr};
use tracing::warn;

use super::{
    calls,
    error::{has_waited_for_entrants, of_our_call},
    options::PgTxOptions,
};
use crate::{FenceError, counted, strays::past_strays};

/// How often a claim gets in line, the first time included. After the first time, any holder that
/// was paused in its way is gone. While the claim was not in line, more transactions of an older
/// holder may have come; if all of them are paused, too, the second time ends them.
const ATTEMPTS: u32 = 3;

/// Raises the mark. Ends the sessions of older holders that block it for a whole lock timeout; a
/// claim that was blocked by anything else ends nobody.
pub(super) async fn claim(
    pool: &PgPool,
    options: &PgTxOptions,
    sequencer: &Sequencer,
) -> Result<(), FenceError> {
    let claim = calls::claim(sequencer, options);
    for _ in 1..ATTEMPTS {
        match execute(pool, &claim).await {
            Err(error)
                if options.terminate_older
                    && has_waited_for_entrants(&error, sequencer.resource()) =>
            {
                terminate_older(pool, sequencer).await?;
            }
            result => return result.map_err(of_our_call),
        }
    }
    execute(pool, &claim).await.map_err(of_our_call)
}

/// Gets in line behind the transactions of this grant.
pub(super) async fn settle(
    pool: &PgPool,
    options: &PgTxOptions,
    sequencer: &Sequencer,
) -> Result<(), FenceError> {
    let settle = calls::settle(sequencer, options);
    execute(pool, &settle).await.map_err(of_our_call)
}

async fn execute(pool: &PgPool, statement: &SqlStr) -> Result<(), sqlx::Error> {
    past_strays(pool, || sqlx::raw_sql(statement.clone()).execute(pool))
        .await
        .map(drop)
}

/// The database checks the mark again first: a claim that has become stale ends nobody's session.
async fn terminate_older(pool: &PgPool, sequencer: &Sequencer) -> Result<(), FenceError> {
    let terminate = calls::terminate_older(sequencer);
    let row = past_strays(pool, || sqlx::raw_sql(terminate.clone()).fetch_one(pool))
        .await
        .map_err(of_our_call)?;
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
