//! Redis 7.0 or newer: one server, Sentinel or Cluster.
//!
//! # Use it
//! The URL says which servers are used and how, see [Servers](#servers).
//! [`ConnectOptions`](lock_core::backend::ConnectOptions) has the other settings; the response
//! timeout is 2 s, or 10 ms to 60 s. Parameters of Redis alone:
//!
//! - `shards`: over how many token counters resources are spread, 1 to 1024, by default 64. All
//!   clients of a prefix must agree; the first one fixes it.
//! - `replicas` and `replicas_ms`: how many replicas must have a grant before it is returned, and
//!   within how many milliseconds; by default none. See [Replicas](#replicas).
//!
//! Redis replicates asynchronously and its clock may jump, so neither the order of tokens nor the
//! length of leases is guaranteed in every case (see [Tokens](#tokens)): use a store that checks
//! tokens. See [Failover](#failover) for the settings of the servers, and [Rights](#rights) for
//! those of the user. An `allkeys-*` eviction policy would evict counters: a server with one is
//! refused, and so are a replica and a version before 7.0.
//!
#![doc = include_str!("servers.md")]
//!
//! # How it works
//! ## Keys
//! All keys begin with the prefix (`palisade`) and, except for the configuration, with the number
//! `n` of a shard: the hash of the resource's name, or of its `{tag}`, modulo the shard count (64).
//!
//! | key | type | time to live | content |
//! |---|---|---|---|
//! | `palisade:config` | string | none | `version:shards`, written once; a mismatch is fatal |
//! | `palisade:{n}:counter` | string | none | the last token of the shard; deleted by nothing |
//! | `palisade:{n}:lease:NAME` | string | ttl + [`ENDED_TTL`] | holder, end, and if more is there |
//! | `palisade:{n}:queue:NAME` | sorted set | [`QUEUE_TTL`] | the waiters, by ticket |
//! | `palisade:{n}:suspended:NAME` | sorted set | [`QUEUE_TTL`] | suspended waiters; tombstones |
//! | `palisade:{n}:waiters:NAME` | hash | [`QUEUE_TTL`] | the request of each of them |
//! | `palisade:{n}:forced:NAME` | string | [`ENDED_TTL`] | release by force: token, revocation |
//!
//! The key of a lease is there as long as any other key of its resource is. So a script looks at
//! this key alone if nothing but the lease is there. Scripts are given the counter and leases, and
//! name the other keys after these; all keys of a shard have one hash tag.
//!
//! Holders are digests: the secret itself is never sent. The keys of a queue are gone with its last
//! waiter. A client, which is a [`RedisBackend`], receives the grants of a shard on the channel
//! `palisade:{n}:grants:CLIENT`. Nothing of an idle resource remains after [`QUEUE_TTL`]. The
//! formats of the values are described in `lua/lease.lua` and `lua/queue.lua`.
//!
//! A release leaves a tombstone only if a late request may arrive: if the holder was given, as by
//! an [`Owner`](lock_core::Owner), if the sequencer is released and not the guard, or if a request
//! had no answer. Otherwise nothing is left at all, and the next acquire takes the fast path.
//!
//! ## Tokens
//! A token is the result of `INCR` on the shard's counter, inside the script that grants. A missing
//! counter starts at the server's clock in units of 10 µs, and the first acquire of a shard in any
//! second, on every connection, lifts the counter to that clock. So tokens rise across a failover
//! or a server that came back empty, below 100 000 tokens a second and shard, and as long as clocks
//! differ by less than the outage. NOT guaranteed are the order across a lost tail of writes within
//! that time, and the length of leases when the server's clock jumps: the store refuses such
//! tokens, and the floor repairs them.
//!
//! ## Waiting
//! First come, first served, across all clients. The script that ends a lease also grants to the
//! head of the queue and pushes the grant to that client's channel: the waiter holds the lock when
//! the push arrives. Such a grant is *provisional*: until its waiter confirms it, its lease is
//! [`PROVISIONAL`] long, or the ttl if that is shorter. The waiter confirms it before the caller
//! gets it. So a client that is paused or gone costs the queue one provisional lease, not one ttl
//! for each of its waiters: its waiters are suspended, keep their tickets, and are back in the
//! queue when they ask again. The same goes for a client whose channel has no subscriber. A waiter
//! that does not ask for [`QUEUE_TTL`] is forgotten.
//!
//! A waiter of the client that releases needs no push: the answer to the release has its lease,
//! which is full, because that client is there. This needs a release without a tombstone, and no
//! `replicas`.
//!
//! Lost messages are found by asking. The first waiters ask again every 300 ms and when the present
//! lease must have run out, those behind them less often, up to 15 s. Requests are repeated after a
//! lost answer, which is safe because they carry the identity of the acquisition. A server that
//! does not answer is asked again for 10 s, or until the wait is over. Late requests find
//! tombstones. Without pub/sub, as under an ACL that denies it, waiters poll, and there is no
//! order.
//!
//! ## Connections
//! There are three. One is for commands and one for renewals; both are replaced when an answer is
//! late or unreadable. One is for grants; it is made, with the second, when a caller first waits.
//! Only subscriptions are ever sent on the last one, one channel at a time (see decision 0004).
//!
//! ## Scripts
//! Each begins with a header: its keys, arguments, answers and promises. They read the time from
//! the server, write counters before leases because an error does not roll back, and can be sent
//! again. A script that would have to suspend more than 64 waiters stops and asks to be run again.
//! Clients of two versions may share a prefix as long as `version` is the same: it changes with
//! every change of a value's format, and then all clients have to be stopped first.
//!
//! ## Attempts
//! A lease remembers the attempts that rely on it: each hold of an [`Owner`](lock_core::Owner), and
//! each request that was repeated as a new one. It distinguishes 128 of them. With more, giving
//! back or cancelling single ones does not end the lease any more: it ends when it is released as a
//! whole, or when it is not renewed.
//!
//! ## Memory
//! Renew, release and cancel run when the server is out of memory (`noeviction`), acquire does not.
#![forbid(unsafe_code)]

mod acquire;
mod answers;
mod backend;
mod call;
mod error;
#[doc(hidden)]
pub mod independent;
mod keys;
mod lease_text;
mod list;
mod look;
mod options;
mod pushes;
mod release;
mod renew;
mod replicas;
mod scripts;
mod servers;
mod service;
mod together;

use std::time::Duration;

pub use self::backend::RedisBackend;

/// The kind that errors name and the default issuer.
const KIND: &str = "redis";

/// How long a place in the queue is kept for a waiter that cannot be reached and does not ask. All
/// keys of a queue live that long after the last waiter has asked.
pub const QUEUE_TTL: Duration = Duration::from_secs(30);

/// How long an ended acquisition is remembered at least if a late request of it may arrive. So long
/// the key of a lease stays after its end, which has to be as long as a queue beside it may stay.
pub const ENDED_TTL: Duration = QUEUE_TTL;

/// Longest lease of a pushed grant until it is confirmed: the cost of a vanished waiter to the
/// queue.
pub const PROVISIONAL: Duration = Duration::from_secs(1);

/// How many waiters one script suspends at most before it lets others run.
const MOVES: u32 = 64;
