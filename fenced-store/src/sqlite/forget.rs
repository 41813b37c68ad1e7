//! Forgets marks as the one writer of the file.

use std::collections::HashSet;

use lock_core::Sequencer;
use sqlx::{Sqlite, SqliteConnection, SqlitePool};

use crate::{
    FenceError,
    admin::AdminError,
    dialect::{
        Errors, Operations,
        Value::{Number, Text},
    },
    forget::{Batch, Forget, by_statements},
    transaction::leaked::{begin_unfenced, to_read},
};

pub(super) async fn forget(
    pool: &SqlitePool,
    order: &Forget,
    after: &str,
) -> Result<Batch, AdminError> {
    let leased = leased(&mut *to_read(pool).await?).await?;
    let mut tx = begin_unfenced(pool).await?;
    let idle = by_statements::idle::<Sqlite>(&mut tx, order, after).await?;
    let Some(mut idle) = idle else {
        return Ok(Batch::default());
    };
    idle.marks
        .retain(|(resource, _)| !leased.contains(resource));
    let mut forgotten = 0;
    if let Some(top) = idle.top() {
        let rise = "UPDATE main.fenced_forgotten SET marks = ? WHERE marks < ?";
        let top = Number(top.into());
        Sqlite::change(&mut tx, rise, &[top, top]).await?;
        let delete = format!(
            "DELETE FROM main.fenced_high_water_mark WHERE resource IN ({})",
            idle.list()
        );
        forgotten = Sqlite::change(&mut tx, &delete, &[]).await?;
    }
    tx.commit().await.map_err(Sqlite::of_commit)?;
    Ok(Batch {
        forgotten,
        last: idle.last,
    })
}

/// The resources whose leases live in this file, of any prefix. It looks before the transaction,
/// which keeps other writers out: a lease that is granted meanwhile has a token above the floor.
async fn leased(connection: &mut SqliteConnection) -> Result<HashSet<String>, FenceError> {
    let has_leases = "SELECT 1 FROM main.sqlite_schema WHERE name = 'fenced_lease'";
    if Sqlite::look(connection, has_leases, &[]).await?.is_empty() {
        return Ok(HashSet::new());
    }
    by_statements::leased::<Sqlite>(connection, "expires_at").await
}

pub(super) async fn refresh(pool: &SqlitePool, grant: &Sequencer) -> Result<bool, FenceError> {
    let refresh = "UPDATE main.fenced_high_water_mark \
         SET claimed_at = strftime('%Y-%m-%dT%H:%M:%fZ', 'now') \
         WHERE resource = ? AND token = ? AND holder = ? AND issuer = ?";
    let digest = grant.holder().kept_digest();
    let values = [
        Text(grant.resource().as_str()),
        Number(grant.token().into()),
        Text(&digest),
        Text(grant.issuer().as_str()),
    ];
    let mut tx = begin_unfenced(pool).await?;
    let refreshed = Sqlite::change(&mut tx, refresh, &values).await?;
    tx.commit().await.map_err(Sqlite::of_commit)?;
    Ok(refreshed > 0)
}
