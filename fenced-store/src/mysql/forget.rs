//! Forgets marks and leases, each batch in one message, so that a client that is stopped meanwhile
//! keeps no lock.

use lock_core::Sequencer;
use sqlx::{MySql, MySqlPool};

use super::options::MySqlTxOptions;
use crate::{
    FenceError,
    admin::AdminError,
    dialect::{
        Operations, Queries,
        Value::{Number, Text},
        literal::literal,
    },
    forget::{
        Batch, Forget,
        by_statements::{self, MOST},
    },
    transaction::leaked::to_read,
};

/// Forgets idle marks in one transaction. A claim of a resource without a mark share-locks the row
/// of the floor. So the claim comes either before this transaction, which then finds the new mark,
/// or after it. Marks that open transactions share are passed over. The floor may rise to the token
/// of such a mark, which does no harm, because the floor is below the clock in any case.
pub(super) async fn forget(
    pool: &MySqlPool,
    options: &MySqlTxOptions,
    order: &Forget,
    after: &str,
) -> Result<Batch, AdminError> {
    let mut connection = to_read(pool).await?;
    let idle = by_statements::idle::<MySql>(&mut connection, order, after).await?;
    let Some(mut idle) = idle else {
        return Ok(Batch::default());
    };
    let leased = by_statements::leased::<MySql>(&mut connection, "end_us").await?;
    idle.marks
        .retain(|(resource, _)| !leased.contains(resource));
    let Some(top) = idle.top() else {
        return Ok(Batch {
            forgotten: 0,
            last: idle.last,
        });
    };
    let (limit, condition) = (options.limit(), idle.condition());
    let forget = format!(
        "COMMIT; START TRANSACTION; \
         {limit}UPDATE fenced_forgotten SET marks = GREATEST(marks, {top}); \
         {limit}DELETE m FROM (SELECT resource FROM fenced_high_water_mark \
         WHERE {condition} AND EXISTS \
         (SELECT 1 FROM fenced_lock_service WHERE name = issuer LOCK IN SHARE MODE) \
         FOR UPDATE SKIP LOCKED) AS idle \
         STRAIGHT_JOIN fenced_high_water_mark AS m ON m.resource = idle.resource; \
         SET @fenced_forgotten = ROW_COUNT(); COMMIT; SELECT CAST(@fenced_forgotten AS SIGNED)"
    );
    match MySql::look(&mut connection, &forget, &[]).await {
        Ok(rows) => {
            let row = rows
                .first()
                .ok_or(sqlx::Error::RowNotFound)
                .map_err(FenceError::from)?;
            let forgotten = MySql::number(row, 0).map_err(FenceError::from)?;
            Ok(Batch {
                forgotten: forgotten.unsigned_abs(),
                last: idle.last,
            })
        }
        Err(error) => {
            // The transaction may still be open, and lock the floor.
            connection.close_on_drop();
            Err(error.into())
        }
    }
}

/// Forgets rows of leases, by a procedure.
pub(super) async fn forget_leases(
    pool: &MySqlPool,
    order: &Forget,
    after: &str,
) -> Result<Batch, AdminError> {
    let mut connection = to_read(pool).await?;
    let (age, after) = (order.older_than.as_millis(), literal(after));
    let forget = format!(
        "COMMIT; SET @fenced_zone = @@time_zone, time_zone = '+00:00'; \
         CALL fenced_forget_leases({age}, {after}, {MOST}, @fenced_forgotten, @fenced_last); \
         SET time_zone = @fenced_zone; \
         SELECT CAST(@fenced_forgotten AS SIGNED), CAST(@fenced_last AS CHAR)"
    );
    let rows = match MySql::look(&mut connection, &forget, &[]).await {
        Ok(rows) => rows,
        Err(error) => {
            // The session may have another time zone.
            connection.close_on_drop();
            return Err(error.into());
        }
    };
    let row = rows.first().ok_or(sqlx::Error::RowNotFound);
    let row = row.map_err(FenceError::from)?;
    let forgotten = MySql::number(row, 0).map_err(FenceError::from)?;
    let last = MySql::text(row, 1).map_err(FenceError::from)?;
    Ok(Batch {
        forgotten: forgotten.unsigned_abs(),
        last: (!last.is_empty()).then_some(last),
    })
}

pub(super) async fn refresh(pool: &MySqlPool, grant: &Sequencer) -> Result<bool, FenceError> {
    let refresh = "UPDATE (SELECT resource FROM fenced_high_water_mark WHERE resource = ? \
         AND token = ? AND holder = ? AND issuer = ? FOR UPDATE SKIP LOCKED) AS own \
         STRAIGHT_JOIN fenced_high_water_mark AS m ON m.resource = own.resource \
         SET m.claimed_at = NOW(3)";
    let digest = grant.holder().kept_digest();
    let values = [
        Text(grant.resource().as_str()),
        Number(grant.token().into()),
        Text(&digest),
        Text(grant.issuer().as_str()),
    ];
    let mut connection = to_read(pool).await?;
    Ok(MySql::change(&mut connection, refresh, &values).await? > 0)
}
