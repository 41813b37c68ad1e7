//! The mark of a resource, and what it lets a grant do.

use lock_core::Sequencer;
use sqlx::{MySql, MySqlConnection};

use super::error::of_our_call;
use crate::{
    FenceError,
    marks::{self, ISSUER, MARK},
    rule::{self, Claim, Mark},
};

/// Whether this grant may claim, according to the present tables.
pub(super) async fn may_claim(
    connection: &mut MySqlConnection,
    sequencer: &Sequencer,
) -> Result<Claim, FenceError> {
    let mark = committed_mark(connection, sequencer).await?;
    let claim = rule::claim(mark.as_ref(), sequencer)?;
    if let Some(issuer) = marks::issuer::<MySql>(connection, ISSUER, of_our_call).await? {
        rule::issuer(&issuer, sequencer)?;
    }
    Ok(claim)
}

pub(super) async fn committed_mark(
    connection: &mut MySqlConnection,
    sequencer: &Sequencer,
) -> Result<Option<Mark>, FenceError> {
    marks::mark::<MySql>(connection, MARK, sequencer.resource(), of_our_call).await
}
