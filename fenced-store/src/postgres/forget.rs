//! Forgets marks and leases by calling the SQL functions.

use std::time::Duration;

use lock_core::Sequencer;
use serde::Deserialize;
use sqlx::{PgPool, Postgres, Row};

use super::{errors::detail_of, rights::of_refused_call};
use crate::{
    FenceError,
    admin::AdminError,
    dialect::{
        Errors, Queries,
        Value::{Number, Text},
    },
    forget::{Batch, Forget, Rows},
    transaction::leaked::begin_unfenced,
};

/// The most rows of one batch. A transaction locks each of them, and Postgres has room for 6400
/// locks by default.
const MOST: u32 = 200;

pub(super) async fn forget(
    pool: &PgPool,
    order: &Forget,
    rows: Rows,
    after: &str,
) -> Result<Batch, AdminError> {
    let age = Number(order.older_than.as_millis().try_into().unwrap_or(i64::MAX));
    let below = order
        .below
        .map_or("NULL".to_owned(), |below| below.to_string());
    let (routine, arguments) = match rows {
        Rows::Marks => ("forget_marks", format!("{below}, $2, {MOST}")),
        Rows::Leases => ("forget_leases", format!("$2, {MOST}")),
    };
    let call = format!(
        "SELECT forgotten::pg_catalog.int8, last \
         FROM fenced.{routine}($1 * interval '1 ms', {arguments})"
    );
    let mut tx = begin_unfenced(pool).await?;
    let rows = match Postgres::rows(&mut tx, &call, &[age, Text(after)]).await {
        Ok(rows) => rows,
        Err(refused) => {
            // The pool may have one connection.
            drop(tx);
            return Err(refusal(pool, routine, refused).await);
        }
    };
    tx.commit().await.map_err(Postgres::of_commit)?;
    let row = rows
        .first()
        .ok_or(sqlx::Error::RowNotFound)
        .map_err(FenceError::from)?;
    let forgotten: i64 = row.try_get(0).map_err(FenceError::from)?;
    let last = row.try_get(1).map_err(FenceError::from)?;
    Ok(Batch {
        forgotten: forgotten.unsigned_abs(),
        last,
    })
}

async fn refusal(pool: &PgPool, routine: &str, source: sqlx::Error) -> AdminError {
    match detail_of(&source, "FN022") {
        Some(NotForgettable { reason }) => AdminError::NotForgettable { reason },
        None => of_refused_call(pool, routine, source).await.into(),
    }
}

#[derive(Deserialize)]
struct NotForgettable {
    reason: String,
}

pub(super) async fn state_longest_hold(pool: &PgPool, hold: Duration) -> Result<(), FenceError> {
    let millis = Number(hold.as_millis().try_into().unwrap_or(i64::MAX));
    let state = "SELECT fenced.state_longest_hold($1 * interval '1 ms')";
    let mut tx = begin_unfenced(pool).await?;
    if let Err(refused) = Postgres::rows(&mut tx, state, &[millis]).await {
        // The pool may have one connection.
        drop(tx);
        return Err(of_refused_call(pool, "state_longest_hold", refused).await);
    }
    tx.commit().await.map_err(Postgres::of_commit)
}

pub(super) async fn refresh(pool: &PgPool, grant: &Sequencer) -> Result<bool, FenceError> {
    let call = "SELECT CASE WHEN fenced.refresh_mark($1, $2, $3, $4) THEN 1::int8 ELSE 0::int8 END";
    let holder = grant.holder().digest();
    let values = [
        Text(grant.resource().as_str()),
        Number(grant.token().into()),
        Text(&holder),
        Text(grant.issuer().as_str()),
    ];
    let mut tx = begin_unfenced(pool).await?;
    let rows = Postgres::rows(&mut tx, call, &values).await;
    let rows = rows.map_err(Postgres::of_our_call)?;
    tx.commit().await.map_err(Postgres::of_commit)?;
    Ok(rows
        .first()
        .map(|row| Postgres::number(row, 0))
        .transpose()?
        == Some(1))
}
