use std::time::Duration;

use lock_core::{FencingToken, Issuer, ResourceName};
use sqlx::{Pool, Transaction};

use super::{AdminError, Reset, Seal};
use crate::{
    FenceError,
    dialect::sealed::{Installation, Operations},
    marks::{token, word},
    strays::{begin_unfenced, to_look},
};

/// How a database carries out an administrator's orders: three looks, and three orders. Each order
/// is the work of a transaction, which is rolled back if it is refused.
#[expect(unnameable_types, reason = "in the sealed part of `Dialect`")]
pub trait Administer<DB: Operations> {
    /// The resources whose marks belong to an issuer, in the order of their names, after one name.
    fn marks_of(issuer: &Issuer, after: &str, count: usize) -> String;

    /// The greatest mark of all, as resource and token, and how many marks belong to an issuer.
    fn survey(of: &Issuer) -> String;

    /// Another lock service that still has marks, and how many; the first one by name.
    fn marks_left(of: &Issuer) -> String;

    /// Changes the issuer after the claims that are in progress, or finds it changed. Returns the
    /// issuer if that is a third one: a refusal.
    fn change_issuer(
        connection: &mut DB::Connection,
        lock_timeout: Option<Duration>,
        seal: &Seal,
    ) -> impl Future<Output = Result<Option<Issuer>, FenceError>> + Send;

    /// Seals one mark below a floor, after the transactions that have entered it, or finds it
    /// sealed. Returns the issuer if that is not, or no longer, the new one: a refusal.
    fn seal_mark(
        connection: &mut DB::Connection,
        lock_timeout: Option<Duration>,
        seal: &Seal,
        floor: FencingToken,
        resource: &ResourceName,
    ) -> impl Future<Output = Result<Option<Issuer>, FenceError>> + Send;

    /// Sets a mark that is where the order expects it, after the transactions that have entered it.
    fn reset(
        connection: &mut DB::Connection,
        lock_timeout: Option<Duration>,
        reset: &Reset,
    ) -> impl Future<Output = Result<(), AdminError>> + Send;
}

/// The positions of the marks.
#[derive(Clone, Debug, Default)]
pub(super) struct Survey {
    /// The greatest mark of all.
    pub(super) greatest: Option<(ResourceName, FencingToken)>,
    /// How many marks belong to the issuer.
    pub(super) marks: u64,
}

pub(super) async fn marks_of<DB: Installation>(
    pool: &Pool<DB>,
    issuer: &Issuer,
    after: &str,
    count: usize,
) -> Result<Vec<ResourceName>, FenceError> {
    let marks = look(pool, DB::Admin::marks_of(issuer, after, count)).await?;
    marks.iter().map(|row| word::<DB, _>(row, 0)).collect()
}

pub(super) async fn survey<DB: Installation>(
    pool: &Pool<DB>,
    of: &Issuer,
) -> Result<Survey, FenceError> {
    let survey = look(pool, DB::Admin::survey(of)).await?;
    let Some(row) = survey.first() else {
        return Ok(Survey::default());
    };
    Ok(Survey {
        greatest: Some((word::<DB, _>(row, 0)?, token::<DB>(row, 1)?)),
        marks: DB::number(row, 2)?.unsigned_abs(),
    })
}

pub(super) async fn marks_left<DB: Installation>(
    pool: &Pool<DB>,
    of: &Issuer,
) -> Result<Option<(Issuer, u64)>, FenceError> {
    let left = look(pool, DB::Admin::marks_left(of)).await?;
    let left = left.first().map(|row| {
        let marks = DB::number(row, 1)?.unsigned_abs();
        Ok((word::<DB, _>(row, 0)?, marks))
    });
    left.transpose()
}

async fn look<DB: Operations>(
    pool: &Pool<DB>,
    statement: String,
) -> Result<Vec<DB::Row>, FenceError> {
    let rows = DB::rows(&mut *to_look(pool).await?, statement).await;
    rows.map_err(DB::of_our_call)
}

pub(super) async fn change_issuer<DB: Installation>(
    pool: &Pool<DB>,
    lock_timeout: Option<Duration>,
    seal: &Seal,
) -> Result<Option<Issuer>, FenceError> {
    let mut tx = begin_unfenced(pool).await?;
    let other = DB::Admin::change_issuer(&mut tx, lock_timeout, seal).await?;
    unless_refused(tx, other).await
}

pub(super) async fn seal_mark<DB: Installation>(
    pool: &Pool<DB>,
    lock_timeout: Option<Duration>,
    seal: &Seal,
    floor: FencingToken,
    resource: &ResourceName,
) -> Result<Option<Issuer>, FenceError> {
    let mut tx = begin_unfenced(pool).await?;
    let other = DB::Admin::seal_mark(&mut tx, lock_timeout, seal, floor, resource).await?;
    unless_refused(tx, other).await
}

async fn unless_refused<DB: Operations>(
    tx: Transaction<'static, DB>,
    other: Option<Issuer>,
) -> Result<Option<Issuer>, FenceError> {
    match other {
        None => tx.commit().await.map_err(DB::of_commit)?,
        Some(_) => tx.rollback().await?,
    }
    Ok(other)
}

pub(super) async fn reset<DB: Installation>(
    pool: &Pool<DB>,
    lock_timeout: Option<Duration>,
    reset: &Reset,
) -> Result<(), AdminError> {
    let mut tx = begin_unfenced(pool).await?;
    DB::Admin::reset(&mut tx, lock_timeout, reset).await?;
    Ok(tx.commit().await.map_err(DB::of_commit)?)
}
