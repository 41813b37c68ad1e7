use std::time::Duration;

use lock_core::{FencingToken, Issuer, ResourceName};
use sqlx::{Database, Pool};

use super::{AdminError, Reset, Seal};
use crate::FenceError;

/// Where the marks stand.
#[derive(Clone, Debug, Default)]
#[expect(unnameable_types, reason = "in the sealed part of `Dialect`")]
pub struct Survey {
    /// The greatest of all.
    pub greatest: Option<(ResourceName, FencingToken)>,
    /// How many are of the issuer.
    pub marks: u64,
}

/// How a database carries out an administrator's orders. To be run
/// [uninterrupted](crate::uninterrupted::uninterrupted).
#[expect(unnameable_types, reason = "in the sealed part of `Dialect`")]
pub trait Administer<DB: Database> {
    /// Reads the issuer.
    fn issuer(pool: &Pool<DB>) -> impl Future<Output = Result<Option<Issuer>, FenceError>> + Send;

    /// Changes the issuer behind the claims that are under way, or finds it changed.
    fn change_issuer(
        pool: &Pool<DB>,
        lock_timeout: Option<Duration>,
        seal: &Seal,
    ) -> impl Future<Output = Result<(), AdminError>> + Send;

    /// The resources whose marks are of an issuer, in the order of their names, after one name.
    fn marks_of(
        pool: &Pool<DB>,
        issuer: &Issuer,
        after: &str,
        count: i64,
    ) -> impl Future<Output = Result<Vec<ResourceName>, FenceError>> + Send;

    /// The greatest mark of all, and how many marks are of an issuer.
    fn survey(
        pool: &Pool<DB>,
        of: &Issuer,
    ) -> impl Future<Output = Result<Survey, FenceError>> + Send;

    /// Another lock service than this of which there are marks, and how many; the first by name.
    fn marks_left(
        pool: &Pool<DB>,
        of: &Issuer,
    ) -> impl Future<Output = Result<Option<(Issuer, u64)>, FenceError>> + Send;

    /// Seals one mark behind the transactions that have entered, or finds it sealed.
    fn seal_mark(
        pool: &Pool<DB>,
        lock_timeout: Option<Duration>,
        seal: &Seal,
        resource: &ResourceName,
    ) -> impl Future<Output = Result<(), AdminError>> + Send;

    /// Sets a mark that stands where it is expected, behind the transactions that have entered.
    fn reset(
        pool: &Pool<DB>,
        lock_timeout: Option<Duration>,
        reset: &Reset,
    ) -> impl Future<Output = Result<(), AdminError>> + Send;
}
