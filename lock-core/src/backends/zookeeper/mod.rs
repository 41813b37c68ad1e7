//! ZooKeeper 3.5 or newer: one server or an ensemble.
//!
//! # Nodes
//! Everything is below `CHROOT/palisade`, or what the prefix is:
//!
//! | node | kind | data | what |
//! |---|---|---|---|
//! | `locks/NAME` | persistent | none | the lock directory of a resource |
//! | `locks/NAME/_c_UUID-lock-N` | ephemeral, sequential | who, for how long | a place in line |
//! | `floors/NAME` | persistent | a number | the floor of its tokens |
//! | `service` | persistent | a number | the floor of all tokens, and whether it is retired |
//!
//! NAME is the resource, with `/` as `%2F` and `%` as `%25`. A resource that was locked once leaves
//! two small nodes for ever; deleting those of an idle resource loses its floor and nothing else.
//!
//! The names are Curator's, and an `InterProcessMutex` on `locks/NAME` stands in the same line as
//! we do. So does a `Lock` of kazoo with `extra_lock_patterns=["-lock-"]`. NOT honoured are read
//! and write locks of either. All clients of one resource have to be of one ensemble, and those
//! that are not ours get no token.
//!
//! # Tokens
//! The number of the transaction that created our node (`czxid`), plus the floor of the resource.
//! ZooKeeper agrees on these numbers before it answers, so they rise across failovers and
//! restarts. They do NOT survive that data directories are wiped or restored from a backup: the
//! store refuses the low tokens then, and the floor repairs them. Sequence numbers are no tokens:
//! they begin again when the directory is deleted, and wrap around at 2^31.
//!
//! The floor is written into the node: when it is created, and, if the floor turns out to have
//! changed or a higher one is asked for, by the first in line, in one transaction with a check that
//! its node is still there. It is never read after that. Whoever was paused and has lost its node
//! cannot get a token that outranks the present holder's.
//!
//! Each election of a leader adds 2^32 to the numbers, which is half a day in units of 10 µs. That
//! makes no difference to tokens that began at zero. After a floor near the clock was asked for, as
//! when a lock service that counted from the clock was replaced, elections may take the tokens
//! further ahead of the clock than a store takes for plausible: give it a bound of its own.
//!
//! The service as a whole has a floor of its own, which no resource is below, and the word that it
//! is retired. Whoever changes one of these writes the lock directories too, and a client watches
//! those whose floors it remembers, up to ten thousand: what is remembered still holds, or it was
//! told. A server tells a client of changes in their order, its answers among them.
//!
//! # Leases
//! One session per [`ZooKeeperBackend`] owns all its nodes. Within it, each lease has a ttl of its
//! own, which stands in the node, and three look after it:
//!
//! - its process deletes the node when the lease was not renewed in time,
//! - the next in line deletes it after it has seen no renewal for a whole ttl: the process may be
//!   stopped. Renewals change the node's version, and the deletion is bound to the version,
//! - the servers delete it with the session, which is what other libraries wait for.
//!
//! The deadline that a holder is told is counted from before its last write to the node, and a
//! lease is at most two thirds of the session. So it has passed before any of the three may act,
//! and nothing depends on when a client notices that it is cut off. A ttl that is too long for the
//! session is an error.
//!
//! A lease belongs to the session, so to the process, that acquired it. Anybody may release it;
//! another process can neither renew it nor cancel its attempt, held or in line
//! ([`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported)), nor replay its acquisition: to it
//! the resource is held. NOT seen by a cancel is an attempt of another process that is not in line
//! yet. Several gateways behind one balancer therefore need another lock service, or a balancer
//! that keeps a client with its gateway. And all leases end when the [`ZooKeeperBackend`] is
//! dropped.
//!
//! # Waiting
//! First come, first served, across all clients of all kinds. Each waiter watches the node before
//! its own, so a release wakes one, and is the first without a look if nobody else was before it.
//! It watches its own, and the one before the next: when that is gone it looks whether the next one
//! is the first, whose ttl it counts from then. It looks again after 15 s even so. Who loses its
//! session while it waits goes to the end of the line. Servers that do not answer are asked again
//! for 10 s, or until the wait is over.
//!
//! # Login
//! With `user:password@` in the URL the client authenticates by digest, and its nodes are for that
//! user alone: other clients of the same locks need the same login. Without, anybody who can reach
//! the servers may change them. There is NO TLS: where others can listen, a tunnel has to do it.

mod acquire;
mod backend;
mod error;
mod floors;
mod keeper;
mod line;
mod look;
mod note;
mod options;
mod paths;
mod place;
mod service;
mod service_url;
mod session;
mod standing;
mod table;
mod upkeep;
mod waiting;
mod watch;

use std::time::Duration;

pub use self::{backend::ZooKeeperBackend, options::ZooKeeperOptions};

/// The kind that errors name and the default issuer.
pub const KIND: &str = "zookeeper";

/// How long an ended acquisition is remembered by its process, so that a late request is refused.
pub const ENDED_TTL: Duration = Duration::from_secs(60);

/// How long servers are asked again that do not answer.
pub const PATIENCE: Duration = Duration::from_secs(10);
