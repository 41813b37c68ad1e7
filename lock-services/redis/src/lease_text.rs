//! The text of a lease, `token:holder:state:longest:attempts:metadata`, as clients write it. The
//! scripts read and write it in `lua/shared.lua`, which says what the parts mean.

use lock_core::{Metadata, Sequencer, backend::AcquireRequest};

/// A full lease without its token, which the server draws: the argument of an acquire.
pub(super) fn asked(request: &AcquireRequest) -> String {
    let (holder, attempt) = (request.attempt.holder.digest(), request.attempt.id);
    let metadata = request.metadata.as_ref().map_or("", Metadata::as_str);
    let ttl = request.ttl.as_millis();
    format!(":{holder}:f:{ttl}:{attempt}:{metadata}")
}

/// The beginning of this grant's lease.
pub(super) fn beginning(grant: &Sequencer) -> String {
    format!("{}:{}:", grant.token(), grant.holder().digest())
}
