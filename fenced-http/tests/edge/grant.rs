//! A grant of the account in the tests of the edge.

use lock_core::{FencingToken, Holder, Issuer, ResourceName, Sequencer};

/// A grant with this token for a fresh holder.
pub(crate) fn sequencer(token: u64) -> Sequencer {
    Sequencer::new(
        Issuer::new("redis").unwrap(),
        ResourceName::new("account:42").unwrap(),
        FencingToken::new(token).unwrap(),
        Holder::random(),
    )
}
