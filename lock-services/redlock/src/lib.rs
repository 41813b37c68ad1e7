//! Redlock: several independent Redis servers. A majority of them grants a lease.
//!
//! NOT promised is mutual exclusion. Leases rest on the clocks of the nodes, and a clock that
//! jumps, a node that lost its state, or a holder that was paused can make two clients believe that
//! they hold the lock.
//!
//! Tokens are right nevertheless, because they rest on no clock. A token is returned only after a
//! majority of all nodes has raised its counter to the token. So the token is greater than every
//! token that was returned before its request began, and no other holder gets it. A store that
//! checks tokens refuses the client that came first. If other Redlock libraries offer a number, it
//! is the maximum of the nodes' counts. That number is not such a token: it can repeat and fall
//! even if only one node at a time is out of reach.
//!
//! # Use it
//! The URL is `redlock+redis://[user:password@]HOST[:PORT],HOST[:PORT],HOST[:PORT][/DB]`, with all
//! nodes; `redlock+rediss` is the same over TLS, with the feature `tls` (of `palisade`:
//! `redis-tls`). [`ConnectOptions`](lock_core::backend::ConnectOptions) has the settings. Counters
//! begin at the initial token when the nodes are provisioned. The initial token also decides how
//! far above the counters a floor may lie. A client waits for enough answers for the response
//! timeout (250 ms; 5 ms to 10 s). After enough answers it waits for the other nodes as long again
//! and 20 ms. If a node has not answered by then, the client does not wait for this node during the
//! next second. A release waits only until enough nodes have answered.
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
//! Waiters are served in no order and are not woken: they poll, every 250 ms at most. Limits of a
//! queue, several holds of an owner, and several resources in one step are missing.
//! [`Capabilities`](lock_core::Capabilities) shows this, and a request for one of them fails with
//! [`ErrorKind::Unsupported`](lock_core::ErrorKind::Unsupported).
//!
//! # How it works
//! ## How a lease is acquired
//! Each try has a nonce of its own, and asks all nodes at once. A node grants its lease if the
//! resource is free there, and counts up its counter of the resource. When a majority of all nodes
//! has granted, the nodes that have granted so far are fixed, and the token is the greatest of
//! their counts. These nodes are then raised to the token. A node is raised only if its lease still
//! belongs to this try, if its counter has not changed since, and if it has not lost its state. The
//! token counts when a majority of *all* nodes was raised, however many have granted. The validity
//! is the rest of the ttl, counted from before the first request. If there is no majority,
//! everything is undone, and tried again after a random pause. A node keeps a lease 1 % and 2 ms
//! longer than its holder counts, because clocks run unevenly. A renewal needs a majority. A
//! release goes to all nodes.
//!
//! The end of an attempt that got no lease goes to all nodes, too. A node that did not answer may
//! have granted a lease, and may come back with that grant. So the end is sent again to this node
//! until it answers, or until the longest lease is over.
//!
//! The rules were checked exhaustively for three and five nodes, and each rule is known to be
//! needed: `tests/models` shows why.
//!
//! A release by force is a try, too. It takes the place of the lease at each node that has the
//! lease. Decision 25 explains why this is right. The model does not include it.
//!
//! ## The incarnation of a node
//! A node without state is either new or has lost its state, and does not know which. So nothing
//! begins by itself: an operator provisions, heals and retires nodes. An *incarnation* is a number
//! that the node draws whenever it is taken in without state. Grants contain the incarnation, and
//! each request that follows a grant is refused in another incarnation.
//!
//! A node that lost its state does not serve until it was *healed*, because it cannot distinguish a
//! new resource from a resource that it has forgotten. All counters of N/2 + 1 other nodes that
//! serve are listed. Each counter is counted up at those nodes and created at this node. Then the
//! node waits until the longest ttl is over, which protects the holders that it has forgotten.
//! After that it serves as the others do. `heal.rs` and decision 21 explain why this is enough.
//! Heal a node before the next one loses its state, because a majority that does not serve cannot
//! be healed. If a majority has lost its state, empty all nodes, and provision them above the
//! greatest mark of the stores.
//!
//! A server that was started again may have lost the end of its data without knowing. It goes on as
//! it is only if both its last run and its present run were seen with `appendfsync always`, which
//! the marker shows with a `+`. The setting must not be changed back while the server runs.
//! Otherwise, and without any persistence, the node has to be healed.
//!
//! ## Keys
//! | key | time to live | what |
//! |---|---|---|
//! | `palisade:redlock:node` | none | the marker: `incarnation:state:base:longest:run_id[+]` |
//! | `palisade:redlock:counter:NAME` | none | the counter of a resource |
//! | `palisade:redlock:lease:NAME` | ttl + drift + [`ENDED_TTL`] | the holder |
//! | `palisade:redlock:ended:NAME:HOLDER` | [`ENDED_TTL`] | the acquisitions that have ended |
//!
//! Each resource has a counter of its own, which stays, because a counter that several resources
//! share would change between grant and raise. HOLDER is a digest: the secret itself is never sent.
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

/// The least time for which an ended acquisition is remembered, so that its late requests are
/// refused.
pub const ENDED_TTL: Duration = Duration::from_secs(15);
