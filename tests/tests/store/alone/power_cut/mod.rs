//! What was answered is still there after the power was cut: commits, and marks.
//!
//! The machine itself stays up. What is killed is every process of the database, so all that it had
//! in its own memory is gone.

mod accounts;
mod clients;
mod mariadb;
mod postgres;
mod sqlite;

use accounts::Accounts;
