//! Entering a transaction.

use lock_core::Sequencer;
use sqlx::{Executor, SqliteConnection};

use super::error::of_our_call;
use crate::{
    FenceError,
    begin::{Entering, Entrant},
    rule::{self, Mark},
};

/// The mark, and whether any table is protected.
const MARK: &str = "SELECT token, holder, issuer, EXISTS (SELECT 1 FROM fenced_protected) \
    FROM fenced_mark WHERE resource = $1";

/// Forgets what transactions have entered that are over. The condition keeps SQLite from emptying
/// the table as a whole, which would write its page even if it is empty already.
pub(super) const LEAVE: &str = "DELETE FROM fenced_entered WHERE true";

/// Checks the marks, inside a transaction that is the one writer. If there are triggers to look at
/// it, notes what has been entered, and says so: the commit has to delete the note.
pub(super) async fn enter(
    connection: &mut SqliteConnection,
    entering: &Entering,
) -> Result<bool, FenceError> {
    let mut is_noted = false;
    for sequencer in entering.entrants().iter().map(Entrant::sequencer) {
        is_noted |= check(connection, sequencer).await?;
    }
    if is_noted {
        note(connection, entering).await?;
    }
    Ok(is_noted)
}

/// Whether a table is protected.
async fn check(
    connection: &mut SqliteConnection,
    sequencer: &Sequencer,
) -> Result<bool, FenceError> {
    let row: Option<(i64, String, String, bool)> = sqlx::query_as(MARK)
        .bind(sequencer.resource().as_str())
        .fetch_optional(connection)
        .await
        .map_err(of_our_call)?;
    let Some((token, holder, issuer, is_protected)) = row else {
        rule::enter(None, sequencer)?;
        return Ok(false);
    };
    let mark = Mark::from_columns((token, holder, issuer))?;
    rule::enter(Some(&mark), sequencer)?;
    Ok(is_protected)
}

async fn note(connection: &mut SqliteConnection, entering: &Entering) -> Result<(), FenceError> {
    connection.execute(LEAVE).await?;
    for sequencer in entering.entrants().iter().map(Entrant::sequencer) {
        sqlx::query("INSERT INTO fenced_entered (resource, token) VALUES ($1, $2)")
            .bind(sequencer.resource().as_str())
            .bind(i64::from(sequencer.token()))
            .execute(&mut *connection)
            .await?;
    }
    Ok(())
}
