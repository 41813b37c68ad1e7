use fenced_store::{Dialect, FencedLocks, FencedStore, FencedTx};

/// Seals the traits of this crate, and has no other use.
#[expect(unnameable_types, reason = "what seals the traits")]
pub trait Sealed {}

impl<DB: Dialect> Sealed for FencedLocks<DB> {}

impl<DB: Dialect> Sealed for FencedStore<DB> {}

impl<DB: Dialect> Sealed for FencedTx<DB> {}
