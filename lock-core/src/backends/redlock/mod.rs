//! Redlock: several independent Redis servers, a majority of which grants. NOT promised is mutual
//! exclusion: leases rest on the clocks of the nodes, and one that jumps, a node that lost its
//! state, or a holder that was paused can make two believers; no order of service either, and
//! nobody is woken. The token is right all the same. It rests on no clock: a token is returned only
//! when a majority of all nodes has raised its counter to it, so it is greater than every token
//! that was returned before its request began, and nobody else gets it; a store that checks it
//! refuses the believer that came first. The maximum of what the nodes count, which is what
//! Redlock libraries offer if they offer a number at all, is not such a token: it repeats and falls
//! with no fault beyond one node out of reach at a time.
//!
//! # How a lease is acquired
//! Each try has a nonce of its own, and asks all nodes at once. A node grants its lease if nobody
//! else has it, and counts up its counter of the resource. The nodes that have granted by then,
//! which have to be a majority of all, are fixed, and the token is the greatest count of them. They
//! are raised to it, each on condition that its lease is still that of this try, that nothing was
//! counted there since, and that it has not lost its state. The token counts when a majority of
//! *all* nodes was raised, however many have granted, and what is left of the ttl since before the
//! first request is the validity. Otherwise everything is undone, and tried again after a random
//! pause. A node keeps a lease 1 % and 2 ms longer than its holder is told, for clocks that run
//! unevenly. A majority renews; a release goes to all. Waiting means polling, every 250 ms at
//! most.
//!
//! The rules were checked exhaustively for three and five nodes, and each is known to be needed:
//! `docs/models.md` tells the stories.
//!
//! # The life of a node
//! A node without state is new or has lost its state, and cannot tell which. So nothing begins by
//! itself: [`RedlockNodes::provision`] brings new nodes into service,
//! [`RedlockNodes::heal`] one that lost its state, [`RedlockNodes::complete`] makes that one whole,
//! and [`RedlockNodes::retire`] takes one out. A *life* is a number that the node draws whenever it
//! is taken in without state; grants tell it, and what follows a grant is refused in another life.
//! A node that was healed has its counters made anew from N/2 + 1 others, resource by resource, as
//! they are asked for, each counted up first; and grants no lease before the longest time to live
//! is over, which protects the holders that it has forgotten.
//!
//! A server that was started again may have lost the end of what it knew, and does not know. It
//! goes on as it is only if its last run was seen with `appendfsync always`, which the marker says
//! with a `+`, and the present one has it too; the setting must not be taken back while it runs.
//! Otherwise, and without any persistence, it has to be healed.
//!
//! A node that was healed has gaps: what it has no counter for may be new, or forgotten, and it
//! cannot tell which. So it is made whole: all counters of N/2 + 1 others that have no gaps are
//! listed, each counted up there and made here, and when the node has been quiet for long enough it
//! serves as they do; why that is enough is told in `complete.rs` and decision 21. Until then a
//! resource is refused that too few others can count, and it stands for no other node. Do it before
//! the next one loses its state: a majority that has gaps cannot be made whole, and one that has
//! lost its state cannot be healed. Then empty all nodes, and provision them above the greatest
//! mark of the stores. So nodes of Redlock need persistence, and heal is for the rare loss.
//!
//! # Keys
//! | key | time to live | what |
//! |---|---|---|
//! | `palisade:redlock:node` | none | the marker: `life:state:base:longest:run_id[+]` |
//! | `palisade:redlock:counter:NAME` | none | the counter of a resource |
//! | `palisade:redlock:lease:NAME` | ttl + drift + delay + [`ENDED_TTL`] | who holds it |
//! | `palisade:redlock:ended:NAME:HOLDER` | [`ENDED_TTL`] | what has ended of an acquisition |
//!
//! Counters are one for each resource, and stay: a counter that others share changes between grant
//! and raise. HOLDER is a digest: the secret itself is never sent. Whoever connects needs
//! `EVALSHA`, `SCRIPT LOAD`, `GET`, `MGET`, `SET`, `INCR`, `EXISTS`, `DEL`, `PTTL` and `TIME`,
//! `INFO` and `CONFIG GET`; whoever heals `SCAN` and `UNLINK`, too.
//!
//! # What it lacks
//! A fair queue, waking, limits of a queue, reserved tokens (and so cohorts that pass the lock on),
//! several holds of an owner, release by force, lists, and several resources at once:
//! [`Capabilities`](crate::Capabilities) says so, and asking for one is
//! [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported).

mod attempt;
mod backend;
mod ballot;
mod call;
mod complete;
mod healing;
mod keys;
mod look;
mod marker;
mod node;
mod nodes;
mod operate;
mod options;
mod scripts;
mod service;
mod take_in;
mod trouble;

use std::time::Duration;

pub use self::{
    backend::RedlockBackend,
    complete::HealProgress,
    operate::{NodeState, NodeStatus, RedlockNodes},
    options::RedlockOptions,
};

/// The kind that errors name and the default issuer.
pub const KIND: &str = "redlock";

/// How long an ended acquisition is remembered at least, so that a late request of it is refused.
pub const ENDED_TTL: Duration = Duration::from_secs(15);
