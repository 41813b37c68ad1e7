use std::sync::Arc;

use arc_swap::ArcSwap;

use super::{InvalidKey, SigningKey};
use crate::http::{FencingHeader, Rejection, TokenVerifier};

/// The keys of a service, of which the first one signs and all of them check.
///
/// To change keys without a moment in which good tokens are refused: add the new key behind the
/// old one everywhere, then put it in front where tokens are signed, and take the old one out when
/// the last lease that it signed has ended. Clones share the ring, and [`replace`](Self::replace)
/// is seen by the next request.
#[derive(Clone, Debug)]
pub struct KeyRing(Arc<ArcSwap<Vec<Arc<SigningKey>>>>);

impl KeyRing {
    /// A ring of these keys, the one that signs first.
    ///
    /// # Errors
    /// [`InvalidKey::NoKey`] if there is none, [`InvalidKey::Repeated`] if two have one id.
    pub fn new(keys: impl IntoIterator<Item = SigningKey>) -> Result<Self, InvalidKey> {
        Ok(Self(Arc::new(ArcSwap::from_pointee(checked(keys)?))))
    }

    /// Takes these keys instead.
    ///
    /// # Errors
    /// As [`new`](Self::new); then the ring stays as it is.
    pub fn replace(&self, keys: impl IntoIterator<Item = SigningKey>) -> Result<(), InvalidKey> {
        self.0.store(Arc::new(checked(keys)?));
        Ok(())
    }

    /// The key that signs at present.
    #[must_use]
    pub fn signing_key(&self) -> Arc<SigningKey> {
        Arc::clone(&self.0.load()[0])
    }
}

/// Accepts what a key of the ring has signed, and refuses everything else in one and the same way.
///
/// Whether the lease has ended by `exp` is not looked at: clocks differ, and the store knows better
/// who may write.
impl TokenVerifier for KeyRing {
    fn verify(&self, header: &FencingHeader<'_>) -> Result<(), Rejection> {
        let keys = self.0.load();
        let signed = header.signature().is_some_and(|signature| {
            let key = keys.iter().find(|key| key.id() == signature.key_id());
            key.is_some_and(|key| key.has_signed(header, signature))
        });
        signed.then_some(()).ok_or(Rejection::NotAccepted)
    }
}

fn checked(keys: impl IntoIterator<Item = SigningKey>) -> Result<Vec<Arc<SigningKey>>, InvalidKey> {
    let keys: Vec<_> = keys.into_iter().map(Arc::new).collect();
    if keys.is_empty() {
        return Err(InvalidKey::NoKey);
    }
    for (index, key) in keys.iter().enumerate() {
        if keys[..index].iter().any(|other| other.id() == key.id()) {
            let id = key.id().to_owned();
            return Err(InvalidKey::Repeated { id });
        }
    }
    Ok(keys)
}
