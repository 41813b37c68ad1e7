//! An SQLite file as lock service, for the processes of one host.
//!
//! # Use it
//! The URL is `sqlite:FILE`. The file is made if it is missing, and so are its tables; the folder
//! has to exist. The file may be that of the fenced store: then a lease is granted and its token
//! claimed in one transaction.
//!
//! [`ConnectOptions`](lock_core::backend::ConnectOptions) has the settings. The response timeout is
//! 2 s by default, and may be 10 ms to 10 s. A request waits this time for others that write the
//! file. Another initial token than the clock is an error. The parameters are those of sqlx:
//! `mode`, `cache`, `immutable`, `vfs`.
//!
//! Any language that has SQLite can take part: the page about this lock service has the statements.
//!
//! # One host
//! All processes have to be on the host that has the file. SQLite cannot rely on the locks of a
//! network file system. If it can be seen that the file is on such a file system, connecting fails.
//!
//! # One writer
//! A transaction that writes keeps out all others that write the same file, renewals as well. If
//! the data of an application are in the same file, the application's transactions have to be
//! shorter than a third of the ttl. Otherwise give the leases a file of their own. A process that
//! is stopped while it writes stops all others until it goes on or ends. SQLite has no remedy for
//! that.
//!
//! The requests of a process take turns, and processes try again after pauses of 0.5 to 5 ms, so
//! that no process keeps the others from the file.
//!
//! # Tokens
//! A token is the greatest of three numbers: the last token of the resource plus one, the host's
//! clock in units of 10 µs, and the floor of [`at_least`](lock_core::Acquire::at_least). If the row
//! of the resource was forgotten, the greatest token of all forgotten rows stands for its last
//! token. So tokens rise even if the file was lost, if the clock did not go back.
//!
//! # Waiting
//! First come, first served, across all processes. A waiter of the process that releases is woken
//! at once. A waiter of another process sees the release within 20 ms, because a process with
//! waiters asks every 5 to 20 ms whether the file has changed, for all of them together. A waiter
//! that is silent for 3 s is passed over.
//!
//! # Power cuts
//! The file has a write-ahead log. A grant and a renewal are flushed to disk before they are
//! answered. A release and a place in the queue are not: a lease whose release is lost ends by its
//! ttl.
#![forbid(unsafe_code)]

mod backend;
mod client;
mod connections;
mod error;
mod file;
mod look;
mod requests;
mod row;
mod rows;
mod visit;

pub use self::backend::SqliteBackend;

/// The kind that errors name and the default issuer.
const KIND: &str = "sqlite";
