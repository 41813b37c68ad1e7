//! A claim: checks the issuer and raises the mark.

use lock_core::Sequencer;
use sqlx::{Sqlite, SqliteConnection};

use crate::{
    FenceError,
    dialect::{
        Operations,
        Value::{Number, Text},
    },
    rule::{self, marks},
};

/// Fails unless the store takes the tokens of this issuer. The first claim sets the issuer.
pub(super) async fn check_issuer(
    connection: &mut SqliteConnection,
    sequencer: &Sequencer,
) -> Result<(), FenceError> {
    let first = "INSERT INTO main.fenced_lock_service (only_row, name) VALUES (1, ?) \
                 ON CONFLICT DO NOTHING";
    Sqlite::change(connection, first, &[Text(sequencer.issuer().as_str())]).await?;
    let current = marks::issuer::<Sqlite>(connection).await?;
    current.map_or(Ok(()), |current| rule::issuer(&current, sequencer))
}

pub(super) async fn raise(
    connection: &mut SqliteConnection,
    sequencer: &Sequencer,
) -> Result<(), FenceError> {
    let values = [
        Text(sequencer.resource().as_str()),
        Number(sequencer.token().into()),
        Text(&sequencer.holder().kept_digest()),
        Text(sequencer.issuer().as_str()),
    ];
    let raised = Sqlite::change(connection, include_str!("sql/raise.sql"), &values).await;
    raised.map(drop)
}
