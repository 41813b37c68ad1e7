use std::time::Duration;

use lock_core::{Issuer, ResourceName};
use sqlx::Pool;

use super::{AdminError, Reset, Seal};
use crate::FenceError;

/// What differs between databases. To be run [uninterrupted](crate::uninterrupted::uninterrupted).
#[expect(unnameable_types, reason = "in the sealed part of `Dialect`")]
pub trait Administer: sqlx::Database {
    /// Reads the issuer.
    fn issuer(pool: &Pool<Self>)
    -> impl Future<Output = Result<Option<Issuer>, FenceError>> + Send;

    /// Changes the issuer behind the claims that are under way, or finds it changed.
    fn change_issuer(
        pool: &Pool<Self>,
        seal: &Seal,
    ) -> impl Future<Output = Result<(), AdminError>> + Send;

    /// The resources whose marks are of an issuer, in the order of their names, after one name.
    fn marks_of(
        pool: &Pool<Self>,
        issuer: &Issuer,
        after: &str,
        count: i64,
    ) -> impl Future<Output = Result<Vec<ResourceName>, FenceError>> + Send;

    /// Seals one mark behind the transactions that have entered, or finds it sealed.
    fn seal_mark(
        pool: &Pool<Self>,
        lock_timeout: Option<Duration>,
        seal: &Seal,
        resource: &ResourceName,
    ) -> impl Future<Output = Result<(), AdminError>> + Send;

    /// Sets a mark that stands where it is expected, behind the transactions that have entered.
    fn reset(
        pool: &Pool<Self>,
        lock_timeout: Option<Duration>,
        reset: &Reset,
    ) -> impl Future<Output = Result<(), AdminError>> + Send;
}
