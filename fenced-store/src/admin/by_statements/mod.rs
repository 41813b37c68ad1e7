//! The administrator's orders for databases whose own functions cannot hold them. Each order is a
//! transaction of the database; its statements are the same for all databases.

mod orders;

use std::time::Duration;

use lock_core::{FencingToken, Issuer, ResourceName};
use sqlx::{
    Encode, Executor, FromRow, IntoArguments, Pool, Transaction, Type, pool::PoolConnection,
};

use super::{
    AdminError, Reset, Seal,
    dialect::{Administer, Survey},
};
use crate::{
    FenceError,
    dialect::sealed::Operations,
    high_water::columns::undecodable,
    marks::{ISSUER, issuer},
    statement::Statement,
    strays::{not_a_stray, past_strays},
};

/// Carries out orders by such transactions.
#[derive(Clone, Copy, Debug)]
#[expect(unnameable_types, reason = "in the sealed part of `Dialect`")]
pub struct ByStatements;

/// The wording that differs between these databases.
pub(crate) trait Wording: Operations {
    /// Begins a transaction that may write.
    const BEGIN: &'static str;

    /// The user who has logged in.
    const WHO: &'static str;

    /// The present time, in the form that a claim writes.
    const NOW: &'static str;

    /// Locks the rows that a statement only reads, if there can be other writers.
    const SHARED: &'static str;

    /// The same, and lets nobody else lock them.
    const EXCLUSIVE: &'static str;

    /// Limits how long the following statement waits, if the database has such a limit.
    fn limit(lock_timeout: Option<Duration>) -> String;

    /// An error of one of our own calls.
    fn of_our_call(source: sqlx::Error) -> FenceError;

    /// An error of one of our own commits.
    fn of_commit(source: sqlx::Error) -> FenceError;
}

/// Begins one of our transactions, which is not fenced.
pub(crate) async fn begin_unfenced<DB: Wording>(
    pool: &Pool<DB>,
) -> Result<Transaction<'static, DB>, FenceError> {
    past_strays(pool, || pool.begin_with(DB::BEGIN))
        .await
        .map_err(DB::of_our_call)
}

async fn to_look<DB: Wording>(pool: &Pool<DB>) -> Result<PoolConnection<DB>, FenceError> {
    not_a_stray(pool).await.map_err(DB::of_our_call)
}

async fn commit<DB: Wording>(tx: Transaction<'static, DB>) -> Result<(), FenceError> {
    tx.commit().await.map_err(DB::of_commit)
}

impl<DB> Administer<DB> for ByStatements
where
    DB: Wording,
    String: Encode<'static, DB> + Type<DB>,
    i64: Encode<'static, DB> + Type<DB>,
    for<'c> &'c mut DB::Connection: Executor<'c, Database = DB>,
    for<'r> (String,): FromRow<'r, DB::Row>,
    for<'r> (String, i64): FromRow<'r, DB::Row>,
    DB::Arguments: IntoArguments<DB>,
{
    async fn issuer(pool: &Pool<DB>) -> Result<Option<Issuer>, FenceError> {
        let mut connection = to_look(pool).await?;
        issuer::<DB>(&mut connection, ISSUER, DB::of_our_call).await
    }

    async fn change_issuer(
        pool: &Pool<DB>,
        lock_timeout: Option<Duration>,
        seal: &Seal,
    ) -> Result<Option<Issuer>, FenceError> {
        let mut tx = begin_unfenced(pool).await?;
        let changed = orders::change_issuer::<DB>(&mut tx, lock_timeout, seal).await;
        if changed.map_err(DB::of_our_call)? {
            return commit(tx).await.map(|()| None);
        }
        let current = issuer::<DB>(&mut tx, ISSUER, DB::of_our_call).await?;
        tx.rollback().await?;
        Ok(current)
    }

    async fn marks_of(
        pool: &Pool<DB>,
        issuer: &Issuer,
        after: &str,
        count: i64,
    ) -> Result<Vec<ResourceName>, FenceError> {
        let marks = "SELECT resource FROM fenced_high_water_mark WHERE issuer = ? AND resource > ? \
                     ORDER BY resource LIMIT ?";
        let marks = sqlx::query_as(marks)
            .bind(issuer.as_str().to_owned())
            .bind(after.to_owned())
            .bind(count);
        let mut connection = to_look(pool).await?;
        let names = marks.fetch_all(&mut *connection).await;
        let names: Vec<(String,)> = names.map_err(DB::of_our_call)?;
        let names = names.into_iter().map(|(name,)| ResourceName::new(name));
        names.collect::<Result<_, _>>().map_err(undecodable)
    }

    async fn survey(pool: &Pool<DB>, of: &Issuer) -> Result<Survey, FenceError> {
        let greatest =
            "SELECT resource, token FROM fenced_high_water_mark ORDER BY token DESC LIMIT 1";
        let mut connection = to_look(pool).await?;
        let greatest: Option<(String, i64)> = sqlx::query_as(greatest)
            .fetch_optional(&mut *connection)
            .await
            .map_err(DB::of_our_call)?;
        let greatest = greatest.map(|(resource, token)| {
            let resource = ResourceName::new(resource).map_err(undecodable)?;
            Ok::<_, FenceError>((resource, token.try_into().map_err(undecodable)?))
        });
        let marks =
            "SELECT issuer, COUNT(*) FROM fenced_high_water_mark WHERE issuer = ? GROUP BY issuer";
        let marks = sqlx::query_as(marks).bind(of.as_str().to_owned());
        let marks = marks.fetch_optional(&mut *connection).await;
        let marks: Option<(String, i64)> = marks.map_err(DB::of_our_call)?;
        Ok(Survey {
            greatest: greatest.transpose()?,
            marks: marks.map_or(0, |(_, marks)| marks.unsigned_abs()),
        })
    }

    async fn marks_left(pool: &Pool<DB>, of: &Issuer) -> Result<Option<(Issuer, u64)>, FenceError> {
        let left = "SELECT issuer, COUNT(*) FROM fenced_high_water_mark WHERE issuer <> ? \
                    GROUP BY issuer ORDER BY issuer LIMIT 1";
        let left = sqlx::query_as(left).bind(of.as_str().to_owned());
        let left = left.fetch_optional(&mut *to_look(pool).await?).await;
        let left: Option<(String, i64)> = left.map_err(DB::of_our_call)?;
        let Some((name, marks)) = left else {
            return Ok(None);
        };
        let name = Issuer::new(name).map_err(undecodable)?;
        Ok(Some((name, marks.unsigned_abs())))
    }

    async fn seal_mark(
        pool: &Pool<DB>,
        lock_timeout: Option<Duration>,
        seal: &Seal,
        floor: FencingToken,
        resource: &ResourceName,
    ) -> Result<Option<Issuer>, FenceError> {
        let mut tx = begin_unfenced(pool).await?;
        let sealed = orders::seal_mark::<DB>(&mut tx, lock_timeout, seal, floor, resource).await;
        if sealed.map_err(DB::of_our_call)? {
            return commit(tx).await.map(|()| None);
        }
        // It is sealed already, or another handover has continued from here.
        let current = issuer::<DB>(&mut tx, ISSUER, DB::of_our_call).await?;
        tx.rollback().await?;
        Ok(current.filter(|current| *current != seal.to))
    }

    async fn reset(
        pool: &Pool<DB>,
        lock_timeout: Option<Duration>,
        reset: &Reset,
    ) -> Result<(), AdminError> {
        let mut tx = begin_unfenced(pool).await?;
        let was_reset = orders::reset::<DB>(&mut tx, lock_timeout, reset).await;
        if was_reset.map_err(DB::of_our_call)? {
            return Ok(commit(tx).await?);
        }
        tx.rollback().await.map_err(FenceError::from)?;
        let mark = DB::high_water(pool, reset.resource()).await?;
        Err(AdminError::NotAsExpected {
            resource: reset.resource().clone(),
            expected: reset.expected(),
            current: mark.map(|mark| mark.token()),
        })
    }
}
