//! The rights of a role, of a page in a browser, of a file and of an argument, and their limits.

mod browser;
mod compose;
mod database;
mod secrets;
mod unread;
