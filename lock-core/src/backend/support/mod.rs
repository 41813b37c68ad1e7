//! For those who write a lock service of their own: what several of ours share.
//!
//! - [`connecting`] and [`tls_files`]: settings and URLs with several hosts, files in PEM format.
//! - [`database_url`]: URLs whose client library ignores what it does not know.
//! - [`Tombstones`]: the memory of ended acquisitions, for lock services that have none.
//! - [`fingerprint`]: what may be shown of a text that is presented.
//! - [`unlogged()`]: sends statements whose text has secrets.
//! - [`Tasks`]: where requests run, whether or not their callers are polled.
//! - [`lock`]: locks a mutex whatever has panicked before.

pub mod connecting;
pub mod database_url;
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

/// What all keys at a lock service begin with, unless its user says otherwise.
pub const PREFIX: &str = "palisade";
