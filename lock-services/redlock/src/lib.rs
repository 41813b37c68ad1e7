//! Redlock: several independent Redis servers, a majority of which grants.
//!
//! NOT promised is mutual exclusion. Leases rest on the clocks of the nodes, and a clock that
//! jumps, a node that lost its state, or a holder that was paused can make two clients believe that
//! they hold the lock.
//!
//! The token is right nevertheless, because it rests on no clock. A token is returned only after a
//! majority of all nodes has raised its counter to it. So it is greater than every token that was
//! returned before its request began, and no other holder gets it. A store that checks it refuses
//! the client that came first. The maximum of the nodes' counts, which Redlock libraries offer if
//! they offer a number at all, is not such a token: it repeats and falls with no worse fault than
//! one node out of reach at a time.
//!
//! # Use it
//! The URL is `redlock+redis://[user:password@]HOST[:PORT],HOST[:PORT],HOST[:PORT][/DB]`, with all
//! nodes; with `redlock+rediss` it is the same over TLS, with the feature `tls` (of `palisade`:
//! `redis-tls`).
//! [`ConnectOptions`](lock_core::backend::ConnectOptions) has the settings. Counters begin at the
//! initial token when the nodes are provisioned; it also says how far above them a floor may lie.
//! When enough nodes have answered within the response timeout (250 ms; 5 ms to 10 s), the others
//! are waited for as long again and 20 ms; a node that did not answer then is not waited for during
//! the next second. A release waits for no more than enough.
//!
//! The nodes need persistence, and they have to be brought into service once:
//!
//! - [`RedlockNodes::provision`] brings new nodes into service.
//! - [`RedlockNodes::heal`] brings back a node that lost its state.
//! - [`RedlockNodes::retire`] takes a node out of service.
//!
//! A client needs the rights `EVALSHA`, `SCRIPT LOAD`, `GET`, `MGET`, `SET`, `INCR`, `EXISTS`,
//! `DEL`, `PTTL` and `TIME`, `INFO` and `CONFIG GET`; lists also need `SCAN`, and healing `UNLINK`.
//!
//! # Limits
//! An order of service and waking: waiters poll, every 250 ms at most. Limits of a queue, several
//! holds of an owner, several resources in one step: [`Capabilities`](lock_core::Capabilities) says
//! that these are missing, and asking for one of them is
//! [`ErrorKind::Unsupported`](lock_core::ErrorKind::Unsupported).
//!
//! # How it works
//! ## How a lease is acquired
//! Each try has a nonce of its own, and asks all nodes at once. A node grants its lease if the
//! resource is free there, and counts up its counter of the resource. When a majority of all nodes
//! has granted, the nodes that have granted so far are fixed, and the token is the greatest of
//! their counts. They are then raised to it, each on condition that its lease is still that of this
//! try, that nothing was counted there since, and that it has not lost its state. The token counts
//! when a majority of *all* nodes was raised, however many have granted. The validity is the rest
//! of the ttl, counted from before the first request. Otherwise everything is undone, and tried
//! again after a random pause. A node keeps a lease 1 % and 2 ms longer than its holder counts it,
//! because clocks run unevenly. A majority renews; a release goes to all.
//!
//! The end of an attempt that got no lease goes to all, too. A node that did not answer may have
//! granted it, and may come back with that grant. So the end is sent to it again until it answers,
//! or until the longest lease is over.
//!
//! The rules were checked exhaustively for three and five nodes, and each of them is known to be
//! needed: `tests/models` has the stories.
//!
//! A release by force is such a try, too, which takes the place of a lease at each node where it
//! is. Decision 25 has the argument for it; the model does not have it.
//!
//! ## The incarnation of a node
//! A node without state is either new or has lost its state, and cannot tell which. So nothing
//! begins by itself: an operator provisions, heals and retires nodes. An *incarnation* is a number
//! that the node draws whenever it is taken in without state. Grants contain it, and whatever
//! follows a grant is refused in another incarnation.
//!
//! A node that lost its state does not serve until it was *healed*: it cannot tell a resource that
//! is new from one that it has forgotten. All counters of N/2 + 1 others that serve are listed,
//! each is counted up there and created here; and it waits until the longest ttl is over, which
//! protects the holders that it has forgotten. Then it serves as they do. Why that is enough is
//! explained in `heal.rs` and decision 21. Heal a node before the next one loses its state: a
//! majority that does not serve cannot be healed. In that case empty all nodes, and provision them
//! above the greatest mark of the stores.
//!
//! A server that was started again may have lost the end of its data without knowing. It goes on as
//! it is only if its last run was seen with `appendfsync always`, which the marker shows with a
//! `+`, and the present one has it, too; the setting must not be taken back while it runs.
//! Otherwise, and without any persistence, it has to be healed.
//!
//! ## Keys
//! | key | time to live | what |
//! |---|---|---|
//! | `palisade:redlock:node` | none | the marker: `incarnation:state:base:longest:run_id[+]` |
//! | `palisade:redlock:counter:NAME` | none | the counter of a resource |
//! | `palisade:redlock:lease:NAME` | ttl + drift + [`ENDED_TTL`] | the holder |
//! | `palisade:redlock:ended:NAME:HOLDER` | [`ENDED_TTL`] | the acquisitions that have ended |
//!
//! There is one counter for each resource, and it stays: a counter that several resources share
//! would change between grant and raise. HOLDER is a digest: the secret itself is never sent.
#![forbid(unsafe_code)]

mod acquire;
mod answers;
mod attempt;
mod backend;
mod call;
mod force;
mod heal;
mod inspect;
mod keys;
mod list;
mod look;
mod marker;
mod node;
mod node_error;
mod nodes;
mod operate;
mod owed;
mod scripts;
mod service;
mod service_url;
mod take_in;

use std::time::Duration;

pub use self::{
    backend::RedlockBackend,
    heal::HealProgress,
    operate::{NodeState, NodeStatus, RedlockNodes},
};

/// The kind that errors name and the default issuer.
const KIND: &str = "redlock";

/// How long an ended acquisition is remembered at least, so that a late request of it is refused.
pub const ENDED_TTL: Duration = Duration::from_secs(15);
