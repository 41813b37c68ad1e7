use sqlx::{AssertSqlSafe, MySqlConnection};

use super::options::MySqlTxOptions;
use crate::{
    FenceError,
    begin::{Entering, Entrant, Seq},
    entry::Entry,
    high_water::columns::undecodable,
    rule,
};

/// Takes the numbers that the transaction has under its grants. It must have entered before.
pub(super) async fn take(
    connection: &mut MySqlConnection,
    options: &MySqlTxOptions,
    entering: &Entering,
) -> Result<(), FenceError> {
    for entrant in entering.entrants() {
        if let Some(seq) = entrant.seq() {
            replace(connection, options, entrant, seq, entering.entry()).await?;
            let last = last_before(connection, entrant, entering.entry()).await?;
            rule::in_order(last, entrant.sequencer(), seq)?;
        }
    }
    Ok(())
}

/// Written before it is read: two transactions that both share-locked the gap of a row that does
/// not exist yet would deadlock.
async fn replace(
    connection: &mut MySqlConnection,
    options: &MySqlTxOptions,
    entrant: &Entrant,
    seq: Seq,
    entry: Entry,
) -> Result<(), FenceError> {
    let sequencer = entrant.sequencer();
    let statement = options.limit() + include_str!("sql/in_order.sql");
    sqlx::query(AssertSqlSafe(statement))
        .bind(sequencer.resource().as_str())
        .bind(i64::from(sequencer.token()))
        .bind(sequencer.holder().digest())
        .bind(i64::from(seq))
        .bind(entry.to_string())
        .execute(connection)
        .await?;
    Ok(())
}

/// The number that is in the way; `None` if ours was taken.
async fn last_before(
    connection: &mut MySqlConnection,
    entrant: &Entrant,
    entry: Entry,
) -> Result<Option<u64>, FenceError> {
    let last: Option<i64> = sqlx::query_scalar(
        "SELECT seq FROM fenced_sequence WHERE resource = ? AND tx <> ? LOCK IN SHARE MODE",
    )
    .bind(entrant.sequencer().resource().as_str())
    .bind(entry.to_string())
    .fetch_optional(connection)
    .await?;
    last.map(u64::try_from).transpose().map_err(undecodable)
}
