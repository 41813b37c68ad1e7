//! Claiming.

use lock_core::Sequencer;
use sqlx::{Sqlite, SqliteConnection, SqlitePool};

use crate::{
    FenceError,
    dialect::sealed::Operations,
    marks,
    queries::Queries,
    rule::{self, Claim},
    statement::Value::{Number, Text},
    strays::{begin_unfenced, to_look},
};

pub(super) async fn claim(pool: &SqlitePool, sequencer: &Sequencer) -> Result<(), FenceError> {
    // A claim that cannot win is refused before it queues for the file.
    let mark = Sqlite::mark(sequencer.resource());
    let seen = marks::mark::<Sqlite>(&mut *to_look(pool).await?, mark.clone()).await?;
    rule::claim(seen.as_ref(), sequencer)?;

    let mut tx = begin_unfenced(pool).await?;
    check_issuer(&mut tx, sequencer).await?;
    let mark = marks::mark::<Sqlite>(&mut tx, mark).await?;
    match rule::claim(mark.as_ref(), sequencer)? {
        Claim::Replay => {}
        Claim::Raise => raise(&mut tx, sequencer).await?,
    }
    Ok(tx.commit().await?)
}

/// A transaction is the only writer of the file: once this one has begun, all others are over.
pub(super) async fn settle(pool: &SqlitePool, sequencer: &Sequencer) -> Result<(), FenceError> {
    let mut tx = begin_unfenced(pool).await?;
    let mark = marks::mark::<Sqlite>(&mut tx, Sqlite::mark(sequencer.resource())).await?;
    rule::enter(mark.as_ref(), sequencer)?;
    Ok(tx.rollback().await?)
}

/// The first claim sets the issuer.
async fn check_issuer(
    connection: &mut SqliteConnection,
    sequencer: &Sequencer,
) -> Result<(), FenceError> {
    let first = "INSERT INTO main.fenced_lock_service (only_row, name) VALUES (1, ?) \
                 ON CONFLICT DO NOTHING";
    let first = Sqlite::statement(first.to_owned(), &[Text(sequencer.issuer().as_str())])?;
    Sqlite::run(connection, first).await?;
    let current = marks::issuer::<Sqlite>(connection).await?;
    current.map_or(Ok(()), |current| rule::issuer(&current, sequencer))
}

async fn raise(connection: &mut SqliteConnection, sequencer: &Sequencer) -> Result<(), FenceError> {
    let values = [
        Text(sequencer.resource().as_str()),
        Number(sequencer.token().into()),
        Text(&sequencer.holder().digest()),
        Text(sequencer.issuer().as_str()),
    ];
    let raise = Sqlite::statement(include_str!("sql/raise.sql").to_owned(), &values)?;
    Sqlite::run(connection, raise).await?;
    Ok(())
}
