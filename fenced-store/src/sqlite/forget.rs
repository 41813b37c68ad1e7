//! Forgets marks and leases as the one writer of the file.

use std::collections::HashSet;

use lock_core::Sequencer;
use sqlx::{Sqlite, SqliteConnection, SqlitePool};

use crate::{
    FenceError,
    admin::AdminError,
    dialect::{
        Errors, Operations, Queries,
        Value::{Number, Text},
    },
    forget::{
        Batch, Forget,
        by_statements::{self, MOST},
    },
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
            "DELETE FROM main.fenced_high_water_mark WHERE {}",
            idle.condition()
        );
        forgotten = Sqlite::change(&mut tx, &delete, &[]).await?;
    }
    tx.commit().await.map_err(Sqlite::of_commit)?;
    Ok(Batch {
        forgotten,
        last: idle.last,
    })
}

/// The resources whose leases live in this file, whatever the prefix of the lock service is. The
/// look comes before the transaction, because the transaction keeps other writers out. A lease that
/// is granted after the look has a token above the floor.
async fn leased(connection: &mut SqliteConnection) -> Result<HashSet<String>, FenceError> {
    let has_leases = "SELECT 1 FROM main.sqlite_schema WHERE name = 'fenced_lease'";
    if Sqlite::look(connection, has_leases, &[]).await?.is_empty() {
        return Ok(HashSet::new());
    }
    by_statements::leased::<Sqlite>(connection, "expires_at").await
}

/// Forgets rows of free leases whose tokens and waiters are as old as the order says, if this file
/// has leases. After the last batch, forgets the tombstones of that age, too.
pub(super) async fn forget_leases(
    pool: &SqlitePool,
    order: &Forget,
    after: &str,
) -> Result<Batch, AdminError> {
    let mut tx = begin_unfenced(pool).await?;
    let has_floor = "SELECT 1 FROM main.sqlite_schema WHERE name = 'fenced_lease_floor'";
    if Sqlite::look(&mut tx, has_floor, &[]).await?.is_empty() {
        return Ok(Batch::default());
    }
    let (longest_hold, now) = by_statements::times::<Sqlite>(&mut tx).await?;
    order.check_age(longest_hold)?;
    let before = now.saturating_sub(order.older_than).as_micros();
    let idle = format!(
        "FROM main.fenced_lease l WHERE resource > ? AND resource <= ? \
         AND max(token, revocation) < {before} / 10 AND (holder = '' OR expires_at < {before}) \
         AND NOT EXISTS (SELECT 1 FROM main.fenced_waiter w \
         WHERE w.resource = l.resource AND w.seen_at >= {before})"
    );
    let first = format!(
        "SELECT count(*), coalesce(max(resource), ''), coalesce(max(last_token), 0) FROM \
         (SELECT resource, max(token, revocation) AS last_token {idle} \
         ORDER BY resource LIMIT {MOST})"
    );
    let all = [Text(after), Text("~")];
    let rows = Sqlite::look(&mut tx, &first, &all).await?;
    let row = rows.first().ok_or(sqlx::Error::RowNotFound);
    let row = row.map_err(FenceError::from)?;
    let seen = Sqlite::number(row, 0).map_err(FenceError::from)?;
    let last = Sqlite::text(row, 1).map_err(FenceError::from)?;
    let top = Number(Sqlite::number(row, 2).map_err(FenceError::from)?);
    let rise = "INSERT INTO main.fenced_lease_floor (only_row, token) VALUES (1, ?) \
                ON CONFLICT DO UPDATE SET token = max(token, excluded.token)";
    Sqlite::change(&mut tx, rise, &[top]).await?;
    let these = [Text(after), Text(&last)];
    let waiters =
        format!("DELETE FROM main.fenced_waiter WHERE resource IN (SELECT l.resource {idle})");
    Sqlite::change(&mut tx, &waiters, &these).await?;
    let leases =
        format!("DELETE FROM main.fenced_lease WHERE resource IN (SELECT l.resource {idle})");
    let forgotten = Sqlite::change(&mut tx, &leases, &these).await?;
    let is_over = seen < i64::from(MOST);
    if is_over {
        for table in ["fenced_tombstone", "fenced_forced_release"] {
            let served = format!("DELETE FROM main.{table} WHERE ended_at < {before}");
            Sqlite::change(&mut tx, &served, &[]).await?;
        }
    }
    tx.commit().await.map_err(Sqlite::of_commit)?;
    Ok(Batch {
        forgotten,
        last: (!is_over).then_some(last),
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
