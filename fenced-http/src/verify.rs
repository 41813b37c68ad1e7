use std::sync::Arc;

use crate::{FencingHeader, Rejection};

/// Decides whether a token is authentic, before anything is done with it.
///
/// That is all it decides. Whether the token is *stale* only the store can say, inside the
/// transaction of the write: between a check here and the write the mark may rise.
///
/// # Contract
/// 1. It sees a header whose form is right and whose names are legal, nothing more.
/// 2. It runs on every request: no I/O, no waiting, no locks that are held for long.
/// 3. A refusal of a forged token is [`Rejection::NotAccepted`] whatever the reason, so that a
///    forger learns nothing from trying.
pub trait TokenVerifier {
    /// Checks one token.
    ///
    /// # Errors
    /// The [`Rejection`] that the client is answered with.
    fn verify(&self, header: &FencingHeader<'_>) -> Result<(), Rejection>;
}

/// So that the verifier can be chosen at run time, or swapped.
impl<V: TokenVerifier + ?Sized> TokenVerifier for Arc<V> {
    fn verify(&self, header: &FencingHeader<'_>) -> Result<(), Rejection> {
        V::verify(self, header)
    }
}
