use fenced_store::{Dialect, FencedLocks, FencedStore, FencedTx};

/// What the traits of this crate are for, and nothing else.
#[expect(unnameable_types, reason = "what seals the traits")]
pub trait Sealed {}

impl<DB: Dialect> Sealed for FencedLocks<DB> {}

impl<DB: Dialect> Sealed for FencedStore<DB> {}

impl<DB: Dialect> Sealed for FencedTx<DB> {}
