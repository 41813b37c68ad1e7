use std::sync::Arc;

use arc_swap::ArcSwap;

use super::{InvalidKey, SigningKey, VerifyingKey, message};
use crate::{FencingHeader, Rejection, TokenVerifier};

/// The keys of a service. The first key signs, and all keys check.
///
/// To change keys so that good tokens are never refused: add the new key behind the old one
/// everywhere. Then put the new key in front where tokens are signed. Remove the old key when the
/// last lease that it signed has ended. Clones share the ring, and the next request uses the keys
/// of [`replace`](Self::replace).
///
/// A ring of [`VerifyingKey`]s signs nothing. The id in a token selects the key, and the key
/// determines the algorithm. A token cannot choose it.
#[derive(Debug)]
pub struct KeyRing<K = SigningKey>(Arc<ArcSwap<Vec<Arc<K>>>>);

impl<K: AsRef<VerifyingKey>> KeyRing<K> {
    /// A ring of these keys. The first one signs.
    ///
    /// # Errors
    /// [`InvalidKey::NoKey`] if there is none, [`InvalidKey::Repeated`] if two have one id,
    /// [`InvalidKey::Shared`] if two were made of one secret. In that case a new key would be no
    /// better than the old one, and a service that may only check with one kind of key could sign
    /// with the other.
    pub fn new(keys: impl IntoIterator<Item = K>) -> Result<Self, InvalidKey> {
        Ok(Self(Arc::new(ArcSwap::from_pointee(checked(keys)?))))
    }

    /// Replaces the keys of the ring.
    ///
    /// # Errors
    /// As [`new`](Self::new); then the ring stays as it is.
    pub fn replace(&self, keys: impl IntoIterator<Item = K>) -> Result<(), InvalidKey> {
        self.0.store(Arc::new(checked(keys)?));
        Ok(())
    }
}

impl KeyRing {
    /// The key that signs at present.
    #[must_use]
    pub fn signing_key(&self) -> Arc<SigningKey> {
        Arc::clone(&self.0.load()[0])
    }
}

/// Accepts tokens that a key of the ring has signed. The refusal of any other token is always the
/// same.
///
/// The ring does not check whether the lease has ended by `exp`, because clocks differ, and the
/// store decides which holder may write.
impl<K: AsRef<VerifyingKey>> TokenVerifier for KeyRing<K> {
    fn verify(&self, header: &FencingHeader<'_>) -> Result<(), Rejection> {
        let is_signed = header.signature().is_some_and(|signature| {
            // The bytes are written before the keys are fetched, so they are in the cache when they
            // are hashed.
            message::with_rest(header, |rest| {
                let keys = self.0.load();
                let mut keys = keys.iter().map(|key| K::as_ref(key));
                let key = keys.find(|key| key.id() == signature.key_id());
                key.is_some_and(|key| key.has_signed(rest, signature))
            })
        });
        is_signed.then_some(()).ok_or(Rejection::NotAccepted)
    }
}

/// This is not derived, because a derived one would require `K: Clone`.
impl<K> Clone for KeyRing<K> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

fn checked<K: AsRef<VerifyingKey>>(
    keys: impl IntoIterator<Item = K>,
) -> Result<Vec<Arc<K>>, InvalidKey> {
    let keys: Vec<_> = keys.into_iter().map(Arc::new).collect();
    if keys.is_empty() {
        return Err(InvalidKey::NoKey);
    }
    for (index, key) in keys.iter().enumerate() {
        let key: &VerifyingKey = K::as_ref(key);
        for other in keys[..index].iter().map(|other| K::as_ref(other)) {
            let id = || key.id().to_owned();
            if other.id() == key.id() {
                return Err(InvalidKey::Repeated { id: id() });
            }
            if other.shares_secret_of(key) {
                let other = other.id().to_owned();
                return Err(InvalidKey::Shared { id: id(), other });
            }
        }
    }
    Ok(keys)
}
