//! The text of a lease, `token:holder:state:longest:attempts:metadata`, as clients write it. The
//! scripts read and write it in `lua/lease.lua`, which says what the parts mean.

use std::fmt::Write;

use lock_core::{Metadata, Sequencer, Ttl, backend::AcquireRequest};

/// The length that is enough for all parts except the metadata.
const ROOM: usize = 96;

/// A full lease without its token, which the server draws: the argument of an acquire.
pub(super) fn asked(request: &AcquireRequest) -> String {
    let (holder, attempt) = (request.attempt.holder.digest(), request.attempt.id);
    let metadata = request.metadata.as_ref().map_or("", Metadata::as_str);
    let ttl = request.ttl.as_millis();
    let mut text = String::with_capacity(ROOM + metadata.len());
    // Writing into memory does not fail.
    write!(text, ":{holder}:f:{ttl}:{attempt}:{metadata}").ok();
    text
}

/// The beginning of this grant's lease if the lease is full.
pub(super) fn full(grant: &Sequencer) -> String {
    format!("{}:{}:f:", grant.token(), grant.holder().digest())
}

/// The beginning of this grant's lease if the lease is full and no longer time was ever promised.
pub(super) fn full_for(grant: &Sequencer, ttl: Ttl) -> String {
    format!("{}{}:", full(grant), ttl.as_millis())
}
