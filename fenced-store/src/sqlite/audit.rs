use sqlx::SqliteConnection;

use crate::{FenceError, begin::Entering};

/// Writes the rows of an audited transaction; they are committed or rolled back with it.
pub(super) async fn record(
    connection: &mut SqliteConnection,
    entering: &Entering,
) -> Result<(), FenceError> {
    for entrant in entering.entrants().iter().filter(|_| entering.audited()) {
        let sequencer = entrant.sequencer();
        sqlx::query(include_str!("sql/record.sql"))
            .bind(entering.entry().to_string())
            .bind(sequencer.resource().as_str())
            .bind(i64::from(sequencer.token()))
            .bind(sequencer.issuer().as_str())
            .bind(sequencer.holder().fingerprint())
            .bind(entrant.seq().map(i64::from))
            .execute(&mut *connection)
            .await?;
    }
    Ok(())
}
