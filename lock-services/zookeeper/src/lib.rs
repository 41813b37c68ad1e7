//! ZooKeeper 3.5 or newer: one server or an ensemble.
//!
//! # Use it
//! The URL is `zookeeper://[user:password@]HOST[:PORT],..[/CHROOT][?session_ms=..]`, with the
//! servers of the ensemble. The default port is 2181.
//! [`ConnectOptions`](lock_core::backend::ConnectOptions) has the other settings. Before you use
//! it:
//!
//! - `session_ms` says how long the servers keep the nodes of a silent client: 100 ms to 24 h, by
//!   default 30 s. The servers may make this time shorter or longer. Our own waiters act by the ttl
//!   of a lease, so only other libraries wait for this time after a client has died.
//! - The longest lease is two thirds of the session timeout that the servers agree to. A longer ttl
//!   is an error.
//! - All leases end when the [`ZooKeeperBackend`] is dropped.
//! - With `user:password@` in the URL the client authenticates by digest, and only that user may
//!   use the client's nodes. So other clients of the same locks need the same login. Without a
//!   login, anybody who can reach the servers may change the nodes.
//! - There is NO TLS: if others can listen to the network, use a tunnel.
//!
//! # Limits
//! Several holds of an [`Owner`](lock_core::Owner), and several resources in one step, fail with
//! [`ErrorKind::Unsupported`](lock_core::ErrorKind::Unsupported).
//!
//! A lease belongs to the session, and so to the process, that acquired it. Anybody may release it,
//! but another process can neither renew it nor cancel its attempt, whether it holds the lease or
//! waits in the queue ([`ErrorKind::Unsupported`](lock_core::ErrorKind::Unsupported)). Another
//! process cannot replay the acquisition either: to that process the resource is held. A cancel
//! does NOT find an attempt of another process that is not in the queue yet. Several gateways
//! behind one balancer therefore need another lock service, or a balancer that keeps each client
//! with its gateway.
//!
//! # How it works
//! ## Nodes
//! Everything is below `CHROOT/palisade`, or another prefix:
//!
//! | node | kind | data | what |
//! |---|---|---|---|
//! | `locks/NAME` | persistent | none | the lock directory of a resource |
//! | `locks/NAME/_c_UUID-lock-N` | ephemeral, sequential | holder, ttl | a queue entry |
//! | `floors/NAME` | persistent | a number | the floor of its tokens |
//!
//! NAME is the resource, with `/` as `%2F` and `%` as `%25`. A resource that was locked once leaves
//! two small nodes for ever. If these nodes of an idle resource are deleted, only its floor is
//! lost.
//!
//! The names are Curator's, and an `InterProcessMutex` on `locks/NAME` waits in the same queue as
//! our clients. A `Lock` of kazoo with `extra_lock_patterns=["-lock-"]` waits there, too. Read and
//! write locks of either library are NOT honoured. All clients of one resource have to use the same
//! ensemble, and clients of other libraries get no token.
//!
//! ## Tokens
//! A token is the number of the transaction that created our node (`czxid`), plus the floor of the
//! resource. ZooKeeper agrees on these numbers before it answers, so they rise across failovers and
//! restarts. They do NOT survive when data directories are wiped or restored from a backup. In that
//! case the store refuses the low tokens, and the floor repairs their order. Sequence numbers
//! cannot be tokens: they begin again when the directory is deleted, and wrap around at 2^31.
//!
//! The floor is written into the node when the node is created. If the floor has changed, or the
//! acquisition asks for a higher one, the first in the queue writes the floor again, in one
//! transaction with a check that its node still exists. The floor is never read after that. So a
//! client that was paused and has lost its node cannot get a token above the present holder's
//! token.
//!
//! Each election of a leader adds 2^32 to the numbers, which is half a day in units of 10 µs. This
//! does not matter for tokens that began at zero. But if ZooKeeper has replaced a lock service that
//! counted from the clock, acquisitions have asked for a floor near the clock. Then elections may
//! take the tokens further ahead of the clock than a store considers plausible, so give the store a
//! bound of its own.
//!
//! Changing a floor also writes the lock directory, and a client watches the directories whose
//! floors it remembers, up to ten thousand. So either the client was notified of a change, or the
//! floor that it remembers is still right. A server notifies a client of changes in their order,
//! and its answers come in the same order.
//!
//! ## Leases
//! One session per [`ZooKeeperBackend`] owns all its nodes. Within it, each lease has a ttl of its
//! own, which is written in the node. One of three parties deletes the node of a lease that is
//! over:
//!
//! - the process of the lease, when the lease was not renewed in time,
//! - the next in the queue, after it has seen no renewal for a whole ttl, because the process may
//!   be stopped. Renewals change the node's version, and the deletion names the version,
//! - the servers, together with the session. Other libraries wait for this.
//!
//! The deadline of a holder is counted from before its last write to the node, and a lease is at
//! most two thirds of the session. So the deadline has passed before any of the three may act, and
//! it does not matter when a client notices that it is cut off.
//!
//! ## Waiting
//! First come, first served, across all clients of all kinds. Each waiter watches the node ahead of
//! its own, its predecessor, so a release wakes one waiter. If no other node was ahead, that waiter
//! is then the first, without another look. It also watches its own node, and the node ahead of its
//! predecessor. When the latter is deleted, the waiter checks whether its predecessor now holds the
//! lock, and starts counting the predecessor's ttl. In any case it looks again after 15 s. A waiter
//! that loses its session goes to the end of the queue. Servers that do not answer are asked again
//! for 10 s, or until the wait is over. An acquire that does not wait asks them for 4 s. The
//! response timeout (5 s; 10 ms to 60 s) is for one request.
#![forbid(unsafe_code)]

mod acquire;
mod backend;
mod entry;
mod error;
mod floors;
mod granting;
mod inspect;
mod note;
mod paths;
mod queue;
mod reaper;
mod service;
mod service_url;
mod session;
mod table;
mod upkeep;
mod waiting;
mod watch;

use std::time::Duration;

pub use self::backend::ZooKeeperBackend;

/// The kind that errors name and the default issuer.
const KIND: &str = "zookeeper";

/// The time for which a process remembers an ended acquisition, so that late requests are refused.
const ENDED_TTL: Duration = Duration::from_secs(60);
