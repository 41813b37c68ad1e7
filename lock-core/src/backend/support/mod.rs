//! For implementors of a lock service: parts that several of ours share.
//!
//! - [`connecting`] and [`tls_files`]: settings and URLs with several hosts, files in PEM format.
//! - [`database`]: a lock service in a database, without the database itself.
//! - [`database_url`]: URLs whose client library ignores unknown parameters.
//! - [`rule`]: the decisions of a lock service that decides in this process.
//! - [`Tombstones`]: the memory of ended acquisitions, for lock services without such a memory.
//! - [`fingerprint`]: the part that may be shown of a presented text.
//! - [`unlogged()`]: sends statements whose text has secrets.
//! - [`Tasks`]: tasks on which requests run, whether or not their callers are polled.
//! - [`lock`]: locks a mutex even if a thread has panicked while it held it.

pub mod connecting;
pub mod database;
pub mod database_url;
pub mod rule;
mod tasks;
pub mod tls_files;
mod tombstones;
mod unlogged;

pub use self::{
    tasks::{OwnedTask, RuntimeEnded, Tasks},
    tombstones::{End, Tombstones},
    unlogged::unlogged,
};
pub use crate::{error::OURSELVES, holder::fingerprint_of as fingerprint, unpoisoned::lock};

/// The prefix of all keys at a lock service, unless its user sets another one.
pub const PREFIX: &str = "palisade";
