//! Entering a transaction.

use lock_core::Sequencer;
use sqlx::{Executor, Row, Sqlite, SqliteConnection, SqlitePool, sqlite::SqliteRow};

use super::{error::of_our_call, tx::SqliteTx};
use crate::{
    FenceError,
    entering::{Entering, Entrant},
    marks, rule,
    strays::past_strays,
};

/// Deletes the notes of transactions that are over.
pub(super) const LEAVE: &str = include_str!("sql/leave.sql");

/// Begins as the only writer of the file, and checks the marks. If there are triggers that look for
/// it, also notes what was entered, and returns true: the commit has to delete the note.
pub(super) async fn enter(
    pool: &SqlitePool,
    entering: &Entering,
) -> Result<(SqliteTx, bool), FenceError> {
    let mut entrants = entering.entrants().iter().map(Entrant::sequencer);
    let first = entrants.next().expect("a transaction has a first grant");
    let (mut tx, first_mark) = past_strays(pool, || SqliteTx::begin(pool, first.resource()))
        .await
        .map_err(of_our_call)?;
    let mut is_noted = check(first_mark, first)?;
    for sequencer in entrants {
        is_noted |= check(
            tx.mark(sequencer.resource()).await.map_err(of_our_call)?,
            sequencer,
        )?;
    }
    if is_noted {
        note(&mut tx, entering).await?;
    }
    Ok((tx, is_noted))
}

/// Checks a mark. Returns whether any table is protected.
fn check(row: Option<SqliteRow>, sequencer: &Sequencer) -> Result<bool, FenceError> {
    let mark = row.as_ref().map(marks::mark_of::<Sqlite>).transpose()?;
    rule::enter(mark.as_ref(), sequencer)?;
    Ok(row.is_some_and(|row| row.get(3)))
}

async fn note(connection: &mut SqliteConnection, entering: &Entering) -> Result<(), FenceError> {
    connection.execute(LEAVE).await?;
    for sequencer in entering.entrants().iter().map(Entrant::sequencer) {
        sqlx::query("INSERT INTO main.fenced_open_transaction (resource, token) VALUES ($1, $2)")
            .bind(sequencer.resource().as_str())
            .bind(i64::from(sequencer.token()))
            .execute(&mut *connection)
            .await?;
    }
    Ok(())
}
