use lock_core::{FencingToken, Holder, Issuer, ResourceName, Sequencer};

/// A grant of a fresh holder.
pub(crate) fn grant(resource: &str, token: u64) -> Sequencer {
    Sequencer::new(
        Issuer::new("redis").unwrap(),
        ResourceName::new(resource).unwrap(),
        FencingToken::new(token).unwrap(),
        Holder::random(),
    )
}
