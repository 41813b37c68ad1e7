use std::sync::Arc;

use crate::{FencingHeader, Rejection};

/// Decides whether a token is authentic, before anything is done with it.
///
/// It decides nothing else. Only the store can decide whether the token is *stale*, inside the
/// transaction of the write, because the mark may rise between a check here and the write.
///
/// # Contract
/// 1. The verifier gets only headers whose form is right and whose names are legal.
/// 2. It runs on every request: no I/O, no waiting, no locks that are held for long.
/// 3. The refusal of a forged token is always [`Rejection::NotAccepted`], so that a forger learns
///    nothing from the attempts.
pub trait TokenVerifier {
    /// Checks one token.
    ///
    /// # Errors
    /// The [`Rejection`] with which the client is answered.
    fn verify(&self, header: &FencingHeader<'_>) -> Result<(), Rejection>;
}

/// This implementation lets a program choose or replace the verifier at run time.
impl<V: TokenVerifier + ?Sized> TokenVerifier for Arc<V> {
    fn verify(&self, header: &FencingHeader<'_>) -> Result<(), Rejection> {
        V::verify(self, header)
    }
}
