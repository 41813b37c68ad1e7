//! One Redis server, 7.0 or newer.
//!
//! # Keys
//! All keys begin with the prefix (`palisade`) and, but for the configuration, with the number `n`
//! of a shard: the hash of the resource's name, or of its `{tag}`, modulo the shard count (64).
//!
//! | key | type | time to live | what |
//! |---|---|---|---|
//! | `palisade:config` | string | none | `version:shards`, written once; a mismatch is fatal |
//! | `palisade:{n}:counter` | string | none | the last token of the shard; deleted by nothing |
//! | `palisade:{n}:lease:NAME` | string | ttl + [`ENDED_TTL`] | token, holder, attempts, end |
//! | `palisade:{n}:ended:HOLDER` | string | [`ENDED_TTL`] | tombstone of a release: its token |
//! | `palisade:{n}:ended:HOLDER:ATTEMPT` | string | [`ENDED_TTL`] | tombstone of an attempt |
//!
//! HOLDER is a digest: the secret itself is never sent. The channel `palisade:{n}:free:NAME` wakes
//! waiters. Of an idle resource nothing remains after [`ENDED_TTL`].
//!
//! # Tokens
//! `INCR` of the shard's counter, inside the script that grants. A missing counter starts at the
//! server's clock in units of 10 µs, and the first acquire of a shard on every connection lifts the
//! counter to that clock: so tokens rise across a failover or a server that came back empty, below
//! 100 000 tokens a second and shard and as long as clocks differ by less than the outage. NOT
//! guaranteed is the order across a lost tail of writes within that time, and the length of leases
//! when the server's clock jumps: the store refuses such tokens, and the floor repairs them.
//!
//! # Waiting
//! A waiter subscribes, looks again, and sleeps until a release is announced, the lease that it saw
//! must have run out, or one second has passed. A release wakes one waiter per process, and waiters
//! may be overtaken. Requests are repeated after a lost answer, which is safe because they carry
//! the identity of the acquisition. A server that does not answer is asked again for 10 s, or until
//! the wait is over.
//!
//! # Connections
//! Two: one for commands, which is replaced when an answer is late or unreadable, and one for
//! wake-ups, which is made when somebody waits.
//!
//! # Memory
//! Renew, release and cancel run when the server is out of memory (`noeviction`), acquire does not.
//! An `allkeys-*` eviction policy would evict counters: a server with one is refused, and so are a
//! replica and a version before 7.0.

mod acquire;
mod address;
mod backend;
mod cluster;
mod connection;
mod error;
mod fitness;
mod keys;
mod layout;
mod link;
mod nodes;
mod options;
mod renew;
mod scripts;
mod sentinel;
mod service_url;
mod slots;
mod tls;
mod wakeups;

use std::time::Duration;

pub use self::{backend::RedisBackend, options::RedisOptions};

/// The kind that errors name and the default issuer.
pub const KIND: &str = "redis";

/// How long an ended acquisition is remembered, so that a late request of it is refused. One whose
/// lease ran out is forgotten earlier if another one takes the resource.
///
/// Each costs the server about 110 bytes for as long.
pub const ENDED_TTL: Duration = Duration::from_secs(15);
