//! Forgets marks as the one writer of the file.

use lock_core::Sequencer;
use sqlx::{Sqlite, SqlitePool};

use crate::{
    FenceError,
    admin::AdminError,
    dialect::{
        Errors, Operations,
        Value::{Number, Text},
    },
    forget::{Batch, Forget, by_statements},
    transaction::leaked::begin_unfenced,
};

pub(super) async fn forget(
    pool: &SqlitePool,
    order: &Forget,
    after: &str,
) -> Result<Batch, AdminError> {
    let mut tx = begin_unfenced(pool).await?;
    let idle = by_statements::idle::<Sqlite>(&mut tx, order, after).await?;
    let Some(idle) = idle else {
        return Ok(Batch::default());
    };
    let rise = "UPDATE main.fenced_forgotten SET marks = ? WHERE marks < ?";
    let top = Number(idle.top.into());
    Sqlite::change(&mut tx, rise, &[top, top]).await?;
    let delete = format!(
        "DELETE FROM main.fenced_high_water_mark WHERE resource IN ({})",
        idle.list()
    );
    let forgotten = Sqlite::change(&mut tx, &delete, &[]).await?;
    tx.commit().await.map_err(Sqlite::of_commit)?;
    Ok(Batch {
        forgotten,
        last: idle.last(),
    })
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
