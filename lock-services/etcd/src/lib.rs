//! etcd 3.4 or newer, one node or a cluster. Use 3.5.24 or newer, see
//! [below](#faults-of-etcd-34-and-early-35).
//!
//! # Use it
//! The URL is `etcd://[user:password@]HOST[:PORT],..`, with one node, or some nodes of a cluster;
//! `etcds` is the same over TLS, with the feature `tls` (of `palisade`: `etcd-tls`). The default
//! port is 2379.
//! [`ConnectOptions`](lock_core::backend::ConnectOptions) has the other settings. Names and
//! passwords in the URL are those of etcd's own users. Such a user needs read and write rights on
//! `palisade/`. A login is repeated when the server forgets it.
//!
//! # Unsupported
//! Several resources in one step: [`ErrorKind::Unsupported`].
//!
//! # Keys
//! All keys begin with the prefix (`palisade`) and a slash.
//!
//! | key | lives as long as | what |
//! |---|---|---|
//! | `palisade/lock/RESOURCE/..` | the lease | a queue entry; the oldest one holds |
//! | `palisade/tombstone/..` | see [below](#memory) | the memory of an acquisition |
//! | `palisade/floor` | for ever | the number to add to revisions to get tokens |
//!
//! A queue has the layout of etcd's own recipe: `etcdctl lock palisade/lock/RESOURCE` and an
//! acquisition of RESOURCE exclude each other, and are served in the order in which they came. In
//! RESOURCE, `/` is written `%2F` and `%` is `%25`. The names of an entry and of a tombstone are
//! derived from the holder, but reveal nothing about it. The floor is not in a queue, because
//! `etcdctl lock` would wait for it there for ever. The `Lock` call of etcd's server is not used:
//! before 3.5 it grants the lock to waiters whose lease has run out, and two such waiters get the
//! same revision.
//!
//! # Tokens
//! A token is the floor, plus twice the revision of the cluster's history that created the
//! queue entry. So tokens rise in the order in which entries were taken, two acquisitions never
//! have the same token, and everybody can check them. A release by force revokes with the number
//! between two tokens. The floor is written into the entry in the same step, on the condition that
//! it is still the present floor, and is never read afterwards: a waiter keeps the floor with which
//! it came.
//!
//! A missing floor begins at the client's clock in units of 10 µs, and every client that connects
//! lifts tokens to the clock. So tokens rise even if a cluster lost its data or was restored from a
//! snapshot, as long as it made fewer than 50 000 changes a second and clocks differ by less than
//! the outage. The order is NOT guaranteed for a client that stays connected during the outage: the
//! store refuses such tokens, and [`at_least`](lock_core::Acquire::at_least) raises the floor. The
//! holder of the resource raises the floor and then goes to the end of the queue, so that tokens
//! stay in order.
//!
//! All resources share the floor. An entry also has the least token that its acquisition accepts,
//! because an acquisition may ask for a floor while its entry is behind another one.
//!
//! # Leases
//! There is one lease of etcd for each acquisition. After a release the next acquisition of the
//! client uses the lease, until the lease is half a minute old. Then it is revoked. The lease of an
//! acquisition that does not wait and finds the resource held is used again in the same way. A
//! lease that was ended by force, cancelled or lost is revoked and never used again.
//!
//! etcd counts whole seconds and has a least ttl, one and a half of its election timeout (2 s by
//! default). A ttl is rounded up, and a lease is longer than that by a slack: an eighth, and at
//! least a second. While the slack is left, the lease can be used again without a request.
//! [`LeaseGuard`] and all clients see the lease without the slack, but never shorter than the
//! requested ttl. A lease keeps its length: a renewal with another ttl renews for the first ttl. A
//! lease ends up to half a second late. After a change of leader the other clients see it with its
//! full length again. The holder's deadline does not change, because it is counted from before the
//! holder's request was sent.
//!
//! A renewal is a read of the entry, which a majority has to confirm, and a keep-alive that was
//! answered in the same term. So the keep-alive of a deposed leader does not count. The lease is
//! counted from before the read. An attempt also keeps its lease alive while it waits. Such a
//! keep-alive counts if the look that found no entry before the attempt's own was answered in the
//! same term.
//!
//! # Waiting
//! First come, first served, across all clients. A waiter watches the entry before its own, and
//! looks again every half ttl, because some versions lose events. It keeps its own lease alive.
//! One step finds out that no entry is before its own and that its own entry is there. So a waiter
//! that slept past the end of its lease gets [`ErrorKind::Released`], never the lock. When the turn
//! of a dead waiter comes, the queue waits for the rest of its lease. A limit of waiters is checked
//! after the entry was taken, so an entry that is being refused counts, too.
//!
//! # Nodes
//! All requests go to one node until it refuses, or does not answer within the response timeout (2
//! s; 10 ms to 3 s). Then they go to the next node, and later requests to the silent node have a
//! new connection. One request asks each node once. Repetitions and waits have the [bounds of all
//! lock services](lock_core::backend::Bounds). A look that does not wait, a release and a cancel
//! last as long as it takes to ask each node once, but at most 10 s. All requests compare before
//! they change anything, and can be sent again, even to another node. A node without a leader
//! refuses.
//!
//! # Without space
//! A cluster whose space is used up (alarm `NOSPACE`) still deletes, but writes nothing. Then a
//! client can connect, look, renew, release, cancel and end leases by force. It cannot acquire:
//! [`ErrorKind::Unavailable`]. A lease that ends in this state leaves no tombstone. It is revoked
//! instead, so that a late copy of its request finds no lease. A release that is sent again later
//! gets the answer for a lease that ran out. An attempt that shares its entry with another attempt,
//! or that this client does not know, cannot be cancelled in this state.
//!
//! # Faults of etcd 3.4 and early 3.5
//! Debian 12 has 3.4.23. All tests run on it, and it has these faults: a revision may go
//! back when a node crashes while it compacts (fixed in 3.4.32 and 3.5.14); a single node may lose
//! a write that it acknowledged; a watch may miss a deletion (3.4.36, 3.5.18); a leader that was
//! deposed may revoke leases (3.4.31, 3.5.13); a keep-alive may succeed on a lease that was
//! revoked (3.4.38, 3.5.23). None of them lets two holders past the store.
//!
//! # Memory
//! An acquisition costs about 150 bytes until two minutes after its end. It costs them longer if
//! later acquisitions have used its lease and the last of these still uses it. Also, etcd keeps the
//! history of all keys until it is compacted: run it with `--auto-compaction-retention`. Tombstones
//! are attached to one lease of the client, which is kept alive while the client lives, and are
//! deleted together. The tombstones of a client that died stay for the longest ttl that it had
//! asked for, and a minute and a half. A client that renews a lease of another client takes over
//! its tombstone: this is one more change, for which neither a renewal nor a waiter waits.
//!
//! [`LeaseGuard`]: lock_core::LeaseGuard
//! [`ErrorKind::Released`]: lock_core::ErrorKind::Released
//! [`ErrorKind::Unavailable`]: lock_core::ErrorKind::Unavailable
//! [`ErrorKind::Unsupported`]: lock_core::ErrorKind::Unsupported
#![forbid(unsafe_code)]

mod acquire;
mod attempt;
mod backend;
mod client;
mod ending;
mod enqueue;
mod failure;
mod floor;
mod grant;
mod inspect;
mod keys;
mod leases;
mod leaving;
mod node;
mod queued;
mod record;
mod renew;
mod revoker;
mod service;
mod service_url;
mod tls;
mod tombstone_lease;
mod tombstones;
mod waiting;
mod wire;

use std::time::Duration;

pub use self::backend::EtcdBackend;

/// The kind that errors name and the default issuer.
const KIND: &str = "etcd";

/// The least time for which an ended acquisition is remembered, so that its late requests are
/// refused, whether it was released or its lease ran out.
pub const ENDED_TTL: Duration = Duration::from_secs(60);
