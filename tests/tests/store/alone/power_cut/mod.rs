//! Answered commits and marks are still there after the power was cut.
//!
//! The machine itself stays up. Every process of the database is killed, so all that it had in its
//! own memory is gone.

mod accounts;
mod clients;
mod mysql;
mod postgres;
mod sqlite;

use accounts::Accounts;
