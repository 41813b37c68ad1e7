//! Entering a transaction.

use lock_core::Sequencer;
use sqlx::{AssertSqlSafe, MySql, MySqlConnection, MySqlPool, SqlSafeStr};

use super::{error::of_our_call, options::MySqlTxOptions, tx::MySqlTx};
use crate::{
    FenceError,
    entering::{Entering, Entrant},
    entry::Entry,
    literal::literal,
    marks, rule,
    strays::past_strays,
};

const MARK_SHARED: &str = concat!(
    "SELECT token, holder, issuer FROM fenced_high_water_mark WHERE resource = ?",
    " LOCK IN SHARE MODE"
);

/// Begins and enters. If a deadlock or a statement ends the transaction, the savepoint is gone;
/// this is how the commit notices. The variables are there for the triggers of protected tables.
pub(super) async fn begin(
    pool: &MySqlPool,
    options: &MySqlTxOptions,
    entering: &Entering,
) -> Result<(MySqlTx, Entry), FenceError> {
    let entry = entering.entry();
    let begin = format!(
        "START TRANSACTION; SAVEPOINT {entry}; \
         SET @fenced_entry = '{entry}', @fenced_resources = {}",
        literal(&resources(entering)),
    );
    let begin = AssertSqlSafe(begin).into_sql_str();
    let mut tx = past_strays(pool, || MySqlTx::begin(pool, begin.clone())).await?;
    for sequencer in entering.entrants().iter().map(Entrant::sequencer) {
        enter(&mut tx, options, sequencer, entry).await?;
    }
    Ok((tx, entry))
}

/// The names of all resources, each between spaces, which no name contains.
fn resources(entering: &Entering) -> String {
    let entrants = entering.entrants().iter();
    let names = entrants.map(|entrant| entrant.sequencer().resource().as_str());
    names.fold(" ".to_owned(), |all, name| all + name + " ")
}

/// Checks the mark and keeps claims out until the transaction ends.
async fn enter(
    connection: &mut MySqlConnection,
    options: &MySqlTxOptions,
    sequencer: &Sequencer,
    entry: Entry,
) -> Result<(), FenceError> {
    if share_and_note(connection, options, sequencer, entry).await? {
        return Ok(());
    }
    let resource = sequencer.resource();
    let mark = marks::mark::<MySql>(connection, MARK_SHARED, resource).await?;
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
        .map_err(of_our_call)?;
    Ok(entered.rows_affected() > 0)
}
