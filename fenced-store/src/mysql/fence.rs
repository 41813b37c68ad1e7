//! The check of one resource when a transaction begins.

use lock_core::Sequencer;
use sqlx::{AssertSqlSafe, MySql, MySqlConnection};

use super::options::MySqlTxOptions;
use crate::{
    FenceError,
    dialect::{Errors, Operations},
    rule::{self, marks},
    transaction::{begin_request::BeginRequest, tx_name::TxName},
};

/// The names of all resources, each between spaces, which no name contains.
pub(super) fn resources(request: &BeginRequest) -> String {
    let names = request.fences().map(|fence| fence.resource().as_str());
    names.fold(" ".to_owned(), |all, name| all + name + " ")
}

/// Checks the mark and keeps claims out until the transaction ends.
pub(super) async fn fence(
    connection: &mut MySqlConnection,
    options: &MySqlTxOptions,
    sequencer: &Sequencer,
    tx_name: TxName,
) -> Result<(), FenceError> {
    if share_and_note(connection, options, sequencer, tx_name).await? {
        return Ok(());
    }
    let shared = MySql::mark(sequencer.resource()) + " LOCK IN SHARE MODE";
    let standing = marks::standing::<MySql>(connection, &shared).await?;
    rule::check(&standing, sequencer)?;
    // The mark was claimed between the two reads. The second read has locked the mark.
    share_and_note(connection, options, sequencer, tx_name).await?;
    Ok(())
}

/// If the mark shows this grant, share-locks it, and notes the grant in the transaction. The
/// triggers read this note. A claim that has waited in vain reads the note, too, and ends the
/// session.
///
/// A locking read sees the latest committed mark at every isolation level. Lock and note are one
/// statement, so that there is no lock without a note.
async fn share_and_note(
    connection: &mut MySqlConnection,
    options: &MySqlTxOptions,
    sequencer: &Sequencer,
    tx_name: TxName,
) -> Result<bool, FenceError> {
    let statement = options.limit() + include_str!("sql/begin_fenced.sql");
    let noted = sqlx::query(AssertSqlSafe(statement))
        .bind(tx_name.to_string())
        .bind(sequencer.resource().as_str())
        .bind(i64::from(sequencer.token()))
        .bind(sequencer.holder().kept_digest())
        .bind(sequencer.issuer().as_str())
        .execute(connection)
        .await
        .map_err(MySql::of_our_call)?;
    Ok(noted.rows_affected() > 0)
}
