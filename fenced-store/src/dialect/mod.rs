//! The traits that a database has to implement, besides [`Storage`](crate::Storage), which has the
//! calls of a fenced write. The rest of the crate is generic over them.
//!
//! [`Errors`] says what an error means, [`Operations`] has the statements of a fenced write, and
//! [`Installation`] has the rest: migrations, rights, protected tables. The folders `postgres`,
//! `mysql` and `sqlite` implement each trait in the file that has its name here. `by_statements.rs`
//! is for the two databases whose SQL differs only in some words. `queries.rs`, `statement.rs` and
//! `literal.rs` send statements to any of the three.

#[cfg(any(feature = "mysql", feature = "sqlite"))]
pub(crate) mod by_statements;
mod errors;
mod installation;
pub(crate) mod literal;
mod operations;
mod queries;
mod statement;

pub(crate) use self::{
    errors::Errors,
    installation::Installation,
    operations::Operations,
    queries::Queries,
    statement::{Statement, Value},
};

/// A [`Storage`](crate::Storage) in a database of sqlx: Postgres, SQLite, MySQL or MariaDB. Sealed.
///
/// Everything else is written once, generic over the database.
#[diagnostic::on_unimplemented(
    message = "a store cannot be in `{Self}`: it is not a supported database of sqlx",
    note = "name the database: `FencedLocks<sqlx::Postgres>`, or `PgFencedLocks` for short"
)]
pub trait Dialect: Operations + Installation {}

impl<DB: Operations + Installation> Dialect for DB {}
