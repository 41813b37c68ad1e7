use std::fmt;

use super::{Audience, InvalidKey, SigningKey, mac::BegunMac, secret::SecretDigest};
#[cfg(feature = "ed25519")]
use super::{PublicKey, message};
use crate::{
    Signature,
    header::{SignatureBytes, is_key_id},
};

/// Checks tokens of one audience, and signs none.
///
/// A key that is made of a public key contains no secret. A key that is made of a [`SigningKey`]
/// with a shared secret contains everything that is needed to forge tokens: only its type has no
/// method that signs.
#[derive(Clone)]
pub struct VerifyingKey {
    id: Box<str>,
    audience: Audience,
    check: Check,
    /// The digest of the secret of which the key was made, if there was one.
    secret: Option<SecretDigest>,
}

/// The way in which a signature is checked. The key determines it, and never the header.
#[derive(Clone)]
enum Check {
    /// An HMAC that has hashed the secret and the beginning of the signed bytes.
    Mac(BegunMac),
    #[cfg(feature = "ed25519")]
    Public {
        key: PublicKey,
        beginning: Box<[u8]>,
    },
}

impl VerifyingKey {
    /// A key that checks signatures of the other half of a pair.
    ///
    /// # Errors
    /// [`InvalidKey::Id`] if `id` is not a letter and up to 31 letters, digits, `-`, `_` or `.`.
    #[cfg(feature = "ed25519")]
    pub fn new(
        id: impl Into<Box<str>>,
        key: PublicKey,
        audience: Audience,
    ) -> Result<Self, InvalidKey> {
        let id = id.into();
        let beginning = message::beginning(&audience, &id).into();
        Self::of(id, Check::Public { key, beginning }, audience)
    }

    /// A key that checks by computing the signature again.
    pub(super) fn of_mac(
        id: Box<str>,
        mac: BegunMac,
        audience: Audience,
    ) -> Result<Self, InvalidKey> {
        Self::of(id, Check::Mac(mac), audience)
    }

    fn of(id: Box<str>, check: Check, audience: Audience) -> Result<Self, InvalidKey> {
        if !is_key_id(&id) {
            return Err(InvalidKey::Id);
        }
        Ok(Self {
            id,
            audience,
            check,
            secret: None,
        })
    }

    pub(super) fn made_of(self, secret: SecretDigest) -> Self {
        Self {
            secret: Some(secret),
            ..self
        }
    }

    /// Whether both keys were made of one secret. If so, each key can do the work of the other one.
    pub(super) fn shares_secret_of(&self, other: &Self) -> bool {
        self.secret.is_some() && self.secret == other.secret
    }

    /// The id of the key, which is sent with each token.
    pub(super) fn id(&self) -> &str {
        &self.id
    }

    /// The service for which the tokens of this key are meant.
    pub(super) const fn audience(&self) -> &Audience {
        &self.audience
    }

    /// Whether this key has made the signature of a token that adds this rest to the beginning. The
    /// check of a wrong signature takes as long as that of the right one.
    pub(super) fn has_signed(&self, rest: &[u8], signature: &Signature<'_>) -> bool {
        match (&self.check, signature.bytes()) {
            (Check::Mac(mac), SignatureBytes::Mac(bytes)) => mac.has_tag(rest, bytes),
            #[cfg(feature = "ed25519")]
            (Check::Public { key, beginning }, SignatureBytes::Ed25519(bytes)) => {
                key.has_signed(&[beginning, rest].concat(), bytes)
            }
            _ => false,
        }
    }
}

impl AsRef<Self> for VerifyingKey {
    fn as_ref(&self) -> &Self {
        self
    }
}

/// For a ring that accepts signatures of both kinds of keys, while one kind replaces the other.
impl From<SigningKey> for VerifyingKey {
    fn from(key: SigningKey) -> Self {
        key.into_verifying()
    }
}

/// Does not show the secret, if there is one.
impl fmt::Debug for VerifyingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VerifyingKey")
            .field("id", &self.id)
            .field("audience", &self.audience)
            .finish_non_exhaustive()
    }
}
