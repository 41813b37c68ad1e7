//! Entering a transaction.

use lock_core::Sequencer;
use sqlx::{
    AssertSqlSafe, MySql, MySqlConnection, MySqlPool, SqlSafeStr, mysql::MySqlTransactionManager,
};
use sqlx_core::transaction::TransactionManager;

use super::{error::of_our_call, options::MySqlTxOptions};
use crate::{
    FenceError,
    dialect::sealed::Operations,
    entering::{Entering, Entrant},
    entry::Entry,
    literal::literal,
    marks,
    open_tx::{OpenTx, PATIENCE},
    rule,
    strays::past_strays,
    uninterrupted::uninterrupted,
};

/// Begins and enters. If a deadlock or a statement ends the transaction, the savepoint is gone;
/// this is how the commit notices. The variables are there for the triggers of protected tables.
pub(super) async fn begin(
    pool: &MySqlPool,
    options: &MySqlTxOptions,
    entering: &Entering,
) -> Result<OpenTx<MySql>, FenceError> {
    let entry = entering.entry();
    let begin = format!(
        "START TRANSACTION; SAVEPOINT {entry}; \
         SET @fenced_entry = '{entry}', @fenced_resources = {}",
        literal(&resources(entering)),
    );
    let begin = AssertSqlSafe(begin).into_sql_str();
    let begun = past_strays(pool, || async {
        let (begin, pool) = (begin.clone(), pool.clone());
        let mut connection = pool.acquire().await?;
        uninterrupted(async move {
            MySqlTransactionManager::begin(&mut connection, Some(begin)).await?;
            Ok(OpenTx::new(&pool, connection, entry, Some(PATIENCE)))
        })
        .await
    });
    let mut tx = begun.await?;
    for sequencer in entering.entrants().iter().map(Entrant::sequencer) {
        enter(&mut tx, options, sequencer, entry).await?;
    }
    Ok(tx)
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
    let shared = MySql::mark(sequencer.resource()) + " LOCK IN SHARE MODE";
    let mark = marks::mark::<MySql>(connection, shared).await?;
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
