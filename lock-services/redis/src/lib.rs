//! Redis 7.0 or newer: one server, Sentinel or Cluster.
//!
//! # Use it
//! The URL says which servers are used and how, see [Servers](#servers).
//! [`ConnectOptions`](lock_core::backend::ConnectOptions) has the other settings. The response
//! timeout is 2 s by default, and may be 10 ms to 60 s. Redis has these parameters of its own:
//!
//! - `shards`: the number of token counters over which resources are spread, 1 to 1024, 64 by
//!   default. All clients of a prefix must agree, and the first client fixes the number.
//! - `replicas` and `replicas_ms`: the number of replicas that must have a grant before it is
//!   returned, and the milliseconds within which they must have it. By default no replica must have
//!   it. See [Replicas](#replicas).
//!
//! Redis replicates asynchronously and its clock may jump, so neither the order of tokens nor the
//! length of leases is guaranteed in every case (see [Tokens](#tokens)): use a store that checks
//! tokens. See [Failover](#failover) for the settings of the servers, and [Rights](#rights) for
//! the rights of the user. A server with an `allkeys-*` eviction policy is refused, because it
//! would evict counters. A replica and a version before 7.0 are also refused.
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
//! | `palisade:{n}:lease:NAME` | string | ttl + [`ENDED_TTL`] | holder, end, state |
//! | `palisade:{n}:queue:NAME` | sorted set | [`QUEUE_TTL`] | the waiters, by ticket |
//! | `palisade:{n}:suspended:NAME` | sorted set | [`QUEUE_TTL`] | suspended waiters; tombstones |
//! | `palisade:{n}:waiters:NAME` | hash | [`QUEUE_TTL`] | the request of each waiter |
//! | `palisade:{n}:forced:NAME` | string | [`ENDED_TTL`] | release by force: token, revocation |
//!
//! The key of a lease exists as long as any other key of its resource exists. So a script needs to
//! look only at this key if there is nothing but the lease. Scripts get the keys of the counter and
//! of leases, and derive the names of the other keys from these. All keys of a shard have one hash
//! tag.
//!
//! Holders are digests: the secret itself is never sent. The keys of a queue are gone with its last
//! waiter. A client, which is a [`RedisBackend`], receives the grants of a shard on the channel
//! `palisade:{n}:grants:CLIENT`. Nothing of an idle resource remains after [`QUEUE_TTL`]. The
//! formats of the values are described in `lua/lease.lua` and `lua/queue.lua`.
//!
//! A release leaves a tombstone only if a late request may arrive: if the holder was given, for
//! example by an [`Owner`](lock_core::Owner), if the caller released a sequencer and not a guard,
//! or if a request had no answer. Otherwise nothing is left, and the next acquire takes the fast
//! path.
//!
//! ## Tokens
//! A token is the result of `INCR` on the shard's counter, inside the script that grants. A missing
//! counter starts at the server's clock in units of 10 µs, and the first acquire of a shard in any
//! second, on every connection, lifts the counter to that clock. So tokens rise even after a
//! failover, or if a server came back empty, as long as there are fewer than 100 000 tokens a
//! second in each shard and clocks differ by less than the outage. NOT guaranteed are the order of
//! tokens if the last writes within that time were lost, and the length of leases when the server's
//! clock jumps. The store refuses tokens that are out of order, and the floor repairs their order.
//!
//! ## Waiting
//! First come, first served, across all clients. The script that ends a lease also grants to the
//! head of the queue and pushes the grant to that client's channel: the waiter holds the lock when
//! the push arrives. Such a grant is *provisional*: until its waiter confirms it, its lease is
//! [`PROVISIONAL`] long, or the ttl if that is shorter. The waiter confirms the grant before the
//! caller gets it. So the queue waits only one provisional lease for a client that is paused or
//! gone, and not one ttl for each of its waiters. The waiters of such a client are suspended, keep
//! their tickets, and return to the queue when they ask again. The waiters of a client whose
//! channel has no subscriber are suspended, too. A waiter that does not ask for [`QUEUE_TTL`] is
//! forgotten.
//!
//! A waiter of the client that releases needs no push: the answer to the release has its lease,
//! which is full, because that client is present. This works only for a release without a
//! tombstone, and without `replicas`.
//!
//! A waiter finds out about a lost message when it asks again. The first waiters ask every 300 ms,
//! and when the present lease must have run out. Waiters behind them ask less often, up to every 15
//! s. Requests are repeated after a lost answer, which is safe because they carry the identity of
//! the acquisition. A server that does not answer is asked again for 10 s, or until the wait is
//! over. Late requests find tombstones. Without pub/sub, as under an ACL that denies it, waiters
//! poll, and there is no order.
//!
//! ## Connections
//! There are three connections. The first is for commands and the second for renewals. Both are
//! replaced when an answer is late or unreadable. The third is for grants. It is made, together
//! with the second, when a caller first waits. Only subscriptions are sent on the third connection,
//! one channel at a time (see decision 0004).
//!
//! ## Scripts
//! Each script begins with a header: its keys, arguments, answers and promises. Scripts read the
//! time from the server, write counters before leases because an error does not roll back, and can
//! be sent again. A script that would have to suspend more than 64 waiters stops and asks to be run
//! again. Clients of two versions may share a prefix as long as `version` is the same: it changes
//! with every change of a value's format, and then all clients have to be stopped first.
//!
//! ## Attempts
//! A lease remembers the attempts that rely on it: each hold of an [`Owner`](lock_core::Owner), and
//! each request that was repeated as a new attempt. It distinguishes 128 attempts. If there are
//! more, the lease does not end any more when single attempts are given back or cancelled. Then it
//! ends only when it is released as a whole, or when it is not renewed.
//!
//! ## Memory
//! Renew, release and cancel also run when the server is out of memory (`noeviction`). Acquire does
//! not.
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

/// The time for which a place in the queue is kept for a waiter that cannot be reached and does not
/// ask. All keys of a queue live this long after the last waiter has asked.
pub const QUEUE_TTL: Duration = Duration::from_secs(30);

/// The least time for which an ended acquisition is remembered if a late request of it may arrive.
/// The key of a lease stays for this time after the end of the lease. It must stay as long as a
/// queue of the same resource may stay.
pub const ENDED_TTL: Duration = QUEUE_TTL;

/// The longest lease of a pushed grant until it is confirmed. The queue waits this long for a
/// waiter that has vanished.
pub const PROVISIONAL: Duration = Duration::from_secs(1);

/// The greatest number of waiters that one script suspends before it lets others run.
const MOVES: u32 = 64;
