//! Claiming.

use lock_core::Sequencer;
use sqlx::{SqliteConnection, SqlitePool};

use super::{error::of_our_call, mark};
use crate::{
    FenceError, marks,
    rule::{self, Claim},
    strays::{not_a_stray, past_strays},
};

const ISSUER: &str = "SELECT name FROM main.fenced_lock_service";

pub(super) async fn claim(pool: &SqlitePool, sequencer: &Sequencer) -> Result<(), FenceError> {
    // A claim that cannot win is refused before it queues for the file.
    let seen = {
        let mut connection = not_a_stray(pool).await.map_err(of_our_call)?;
        mark(&mut connection, sequencer.resource()).await?
    };
    rule::claim(seen.as_ref(), sequencer)?;

    let mut tx = past_strays(pool, || pool.begin_with("BEGIN IMMEDIATE"))
        .await
        .map_err(of_our_call)?;
    check_issuer(&mut tx, sequencer).await?;
    let mark = mark(&mut tx, sequencer.resource()).await?;
    match rule::claim(mark.as_ref(), sequencer)? {
        Claim::Replay => {}
        Claim::Raise => raise(&mut tx, sequencer).await?,
    }
    Ok(tx.commit().await?)
}

/// A transaction is the only writer of the file: once this one has begun, all others are over.
pub(super) async fn settle(pool: &SqlitePool, sequencer: &Sequencer) -> Result<(), FenceError> {
    let mut tx = past_strays(pool, || pool.begin_with("BEGIN IMMEDIATE"))
        .await
        .map_err(of_our_call)?;
    let mark = mark(&mut tx, sequencer.resource()).await?;
    rule::enter(mark.as_ref(), sequencer)?;
    Ok(tx.rollback().await?)
}

/// The first claim sets the issuer.
async fn check_issuer(
    connection: &mut SqliteConnection,
    sequencer: &Sequencer,
) -> Result<(), FenceError> {
    sqlx::query(
        "INSERT INTO main.fenced_lock_service (only_row, name) VALUES (1, $1)
         ON CONFLICT DO NOTHING",
    )
    .bind(sequencer.issuer().as_str())
    .execute(&mut *connection)
    .await?;
    let current = marks::issuer::<sqlx::Sqlite>(connection, ISSUER, of_our_call).await?;
    current.map_or(Ok(()), |current| rule::issuer(&current, sequencer))
}

async fn raise(connection: &mut SqliteConnection, sequencer: &Sequencer) -> Result<(), FenceError> {
    sqlx::query(include_str!("sql/raise.sql"))
        .bind(sequencer.resource().as_str())
        .bind(i64::from(sequencer.token()))
        .bind(sequencer.holder().digest())
        .bind(sequencer.issuer().as_str())
        .execute(connection)
        .await?;
    Ok(())
}
