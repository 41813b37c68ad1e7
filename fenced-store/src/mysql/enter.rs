//! Entering a transaction.

use lock_core::Sequencer;
use sqlx::{AssertSqlSafe, MySql, MySqlConnection};

use super::options::MySqlTxOptions;
use crate::{
    FenceError,
    dialect::sealed::{Errors, Operations},
    entering::Entering,
    entry::Entry,
    marks, rule,
};

/// The names of all resources, each between spaces, which no name contains.
pub(super) fn resources(entering: &Entering) -> String {
    let entrants = entering.entrants().iter();
    let names = entrants.map(|entrant| entrant.sequencer().resource().as_str());
    names.fold(" ".to_owned(), |all, name| all + name + " ")
}

/// Checks the mark and keeps claims out until the transaction ends.
pub(super) async fn enter(
    connection: &mut MySqlConnection,
    options: &MySqlTxOptions,
    sequencer: &Sequencer,
    entry: Entry,
) -> Result<(), FenceError> {
    if share_and_note(connection, options, sequencer, entry).await? {
        return Ok(());
    }
    let shared = MySql::mark(sequencer.resource()) + " LOCK IN SHARE MODE";
    let mark = marks::mark::<MySql>(connection, &shared).await?;
    rule::enter(mark.as_ref(), sequencer)?;
    // The mark was claimed between the two looks; since the second one it is locked.
    share_and_note(connection, options, sequencer, entry).await?;
    Ok(())
}

/// If the mark shows this grant, share-locks it, and notes in the transaction that it has entered.
/// Triggers read this note, and so does a claim that has waited in vain, which ends the session.
///
/// A locking read sees the latest committed mark at every isolation level. In one statement, so
/// that there is no lock without a note.
async fn share_and_note(
    connection: &mut MySqlConnection,
    options: &MySqlTxOptions,
    sequencer: &Sequencer,
    entry: Entry,
) -> Result<bool, FenceError> {
    let statement = options.limit() + include_str!("sql/enter.sql");
    let entered = sqlx::query(AssertSqlSafe(statement))
        .bind(entry.to_string())
        .bind(sequencer.resource().as_str())
        .bind(i64::from(sequencer.token()))
        .bind(sequencer.holder().digest())
        .bind(sequencer.issuer().as_str())
        .execute(connection)
        .await
        .map_err(MySql::of_our_call)?;
    Ok(entered.rows_affected() > 0)
}
