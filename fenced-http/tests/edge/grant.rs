//! A grant of the account that the tests of the edge are about.

use lock_core::{FencingToken, Holder, Issuer, ResourceName, Sequencer};

/// Of a holder of its own.
pub(crate) fn sequencer(token: u64) -> Sequencer {
    Sequencer::new(
        Issuer::new("redis").unwrap(),
        ResourceName::new("account:42").unwrap(),
        FencingToken::new(token).unwrap(),
        Holder::random(),
    )
}
