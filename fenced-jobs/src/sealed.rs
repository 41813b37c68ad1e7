use fenced_store::{FencedLocks, FencedStore, FencedTx, Storage};

/// Seals the traits of this crate.
#[expect(unnameable_types, reason = "what seals the traits")]
pub trait Sealed {}

impl<DB: Storage> Sealed for FencedLocks<DB> {}

impl<DB: Storage> Sealed for FencedStore<DB> {}

impl<DB: Storage> Sealed for FencedTx<DB> {}
