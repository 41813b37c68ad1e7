use sqlx::SqliteConnection;

use crate::{
    FenceError,
    begin::{Entering, Entrant, Seq},
    high_water::columns::undecodable,
    rule,
};

/// Takes the numbers that the transaction has under its grants. It must have entered before.
pub(super) async fn take(
    connection: &mut SqliteConnection,
    entering: &Entering,
) -> Result<(), FenceError> {
    for entrant in entering.entrants() {
        if let Some(seq) = entrant.seq() {
            let last = last(connection, entrant).await?;
            rule::in_order(last, entrant.sequencer(), seq)?;
            replace(connection, entrant, seq).await?;
        }
    }
    Ok(())
}

/// The last number of this very grant: one that an older grant has left does not count.
async fn last(
    connection: &mut SqliteConnection,
    entrant: &Entrant,
) -> Result<Option<u64>, FenceError> {
    let sequencer = entrant.sequencer();
    let last: Option<i64> = sqlx::query_scalar(
        "SELECT seq FROM main.fenced_sequence WHERE resource = $1 AND token = $2 AND holder = $3",
    )
    .bind(sequencer.resource().as_str())
    .bind(i64::from(sequencer.token()))
    .bind(sequencer.holder().digest())
    .fetch_optional(connection)
    .await?;
    last.map(u64::try_from).transpose().map_err(undecodable)
}

async fn replace(
    connection: &mut SqliteConnection,
    entrant: &Entrant,
    seq: Seq,
) -> Result<(), FenceError> {
    let sequencer = entrant.sequencer();
    sqlx::query(include_str!("sql/in_order.sql"))
        .bind(sequencer.resource().as_str())
        .bind(i64::from(sequencer.token()))
        .bind(sequencer.holder().digest())
        .bind(i64::from(seq))
        .execute(connection)
        .await?;
    Ok(())
}
