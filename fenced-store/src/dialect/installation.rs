use std::future;

use sqlx::{Pool, SqlStr};

use super::Operations;
use crate::{
    FenceError, Protection, Rights, admin::order::Administer, schema::migrations::Migrations,
};

/// The calls that prepare a database for fenced writes, and those of its administrators.
#[expect(unnameable_types, reason = "what seals `Dialect`")]
pub trait Installation: Operations {
    /// Carries out administrators' orders.
    type Admin: Administer<Self>;

    /// The migrations of our tables.
    fn migrations() -> Migrations;

    /// Applies the missing migrations. Concurrent callers do not interfere with each other.
    fn apply_migrations(pool: &Pool<Self>) -> impl Future<Output = Result<(), FenceError>> + Send;

    /// Fails if this role must not use our schemas, because code that another role has put there
    /// would run with the rights of this one. Without schemas there is nothing to check.
    fn check_owner(_: &Pool<Self>) -> impl Future<Output = Result<(), FenceError>> + Send {
        future::ready(Ok(()))
    }

    /// Fails unless all migrations were applied.
    fn check_migrations(pool: &Pool<Self>) -> impl Future<Output = Result<(), FenceError>> + Send;

    /// Fails unless the role has these rights. The caller has found that all migrations were
    /// applied, or that the role may not read the migrations table. Without roles there is nothing
    /// to check.
    fn check_rights(
        _: &Pool<Self>,
        _: Rights,
    ) -> impl Future<Output = Result<(), FenceError>> + Send {
        future::ready(Ok(()))
    }

    /// Makes the server write something to its disk, and leaves nothing behind.
    fn try_to_write(pool: &Pool<Self>) -> impl Future<Output = Result<(), FenceError>> + Send;

    /// The statement that begins a transaction of ours that is not fenced, and may write.
    fn begin_unfenced() -> SqlStr;

    /// Creates the triggers of a protected table, if they do not exist yet.
    fn protect(
        pool: &Pool<Self>,
        protection: &Protection,
    ) -> impl Future<Output = Result<(), FenceError>> + Send;

    /// The query for the names of protected tables, or of their triggers.
    const GUARDED: &'static str;

    /// Drops the triggers of a protected table.
    fn unprotect(
        pool: &Pool<Self>,
        protection: &Protection,
    ) -> impl Future<Output = Result<(), FenceError>> + Send;
}
