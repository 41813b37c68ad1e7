use std::time::Duration;

use lock_core::{FencingToken, Issuer, ResourceName};
use sqlx::{Database, Pool};

use super::{AdminError, Reset, Seal};
use crate::FenceError;

/// The positions of the marks.
#[derive(Clone, Debug, Default)]
#[expect(unnameable_types, reason = "in the sealed part of `Dialect`")]
pub struct Survey {
    /// The greatest mark of all.
    pub greatest: Option<(ResourceName, FencingToken)>,
    /// How many marks belong to the issuer.
    pub marks: u64,
}

/// How a database carries out an administrator's orders. Must be run
/// [uninterrupted](crate::uninterrupted::uninterrupted).
#[expect(unnameable_types, reason = "in the sealed part of `Dialect`")]
pub trait Administer<DB: Database> {
    /// Reads the issuer.
    fn issuer(pool: &Pool<DB>) -> impl Future<Output = Result<Option<Issuer>, FenceError>> + Send;

    /// Changes the issuer after the claims that are in progress, or finds it changed. Returns the
    /// issuer if that is a third one, and then nothing was changed.
    fn change_issuer(
        pool: &Pool<DB>,
        lock_timeout: Option<Duration>,
        seal: &Seal,
    ) -> impl Future<Output = Result<Option<Issuer>, FenceError>> + Send;

    /// The resources whose marks belong to an issuer, in the order of their names, after one name.
    fn marks_of(
        pool: &Pool<DB>,
        issuer: &Issuer,
        after: &str,
        count: i64,
    ) -> impl Future<Output = Result<Vec<ResourceName>, FenceError>> + Send;

    /// The greatest mark of all, and how many marks belong to an issuer.
    fn survey(
        pool: &Pool<DB>,
        of: &Issuer,
    ) -> impl Future<Output = Result<Survey, FenceError>> + Send;

    /// Another lock service that still has marks, and how many; the first one by name.
    fn marks_left(
        pool: &Pool<DB>,
        of: &Issuer,
    ) -> impl Future<Output = Result<Option<(Issuer, u64)>, FenceError>> + Send;

    /// Seals one mark below a floor, after the transactions that have entered it, or finds it
    /// sealed. Returns the issuer if that is not, or no longer, the new one, and then nothing was
    /// changed.
    fn seal_mark(
        pool: &Pool<DB>,
        lock_timeout: Option<Duration>,
        seal: &Seal,
        floor: FencingToken,
        resource: &ResourceName,
    ) -> impl Future<Output = Result<Option<Issuer>, FenceError>> + Send;

    /// Sets a mark that is where the order expects it, after the transactions that have entered it.
    fn reset(
        pool: &Pool<DB>,
        lock_timeout: Option<Duration>,
        reset: &Reset,
    ) -> impl Future<Output = Result<(), AdminError>> + Send;
}
