//! What a role, a page in a browser, a file and an argument get, and that they get nothing more.

mod browser;
mod compose;
mod database;
mod secrets;
mod unread;
