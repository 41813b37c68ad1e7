use std::fmt;

use super::{Audience, InvalidKey, Secret, VerifyingKey, mac::BegunMac, message};
#[cfg(feature = "ed25519")]
use super::{PublicKey, public::KeyPair};
use crate::{FencingHeader, Signature, header::SignatureBytes};

/// Signs tokens of one audience, and checks them.
///
/// Over [the signed bytes](super#the-signed-bytes), the signature is
/// - by a key of [`new`](Self::new) or [`derived`](Self::derived): the first half of the
///   HMAC-SHA256, which has 128 bits. Every verifier can also sign.
/// - by a key pair (`SigningKey::ed25519`): Ed25519. A verifier cannot sign, and a check takes a
///   hundred times as long.
#[derive(Clone)]
pub struct SigningKey {
    verifying: VerifyingKey,
    signer: Signer,
}

/// The algorithm of a key. Each variant has hashed the beginning of the signed bytes.
#[derive(Clone)]
enum Signer {
    Mac(BegunMac),
    #[cfg(feature = "ed25519")]
    Pair(KeyPair),
}

impl SigningKey {
    /// A key made of a secret that belongs to this audience alone.
    ///
    /// # Errors
    /// [`InvalidKey::Id`] if `id` is not a letter and up to 31 letters, digits, `-`, `_` or `.`.
    pub fn new(
        id: impl Into<Box<str>>,
        secret: &Secret,
        audience: Audience,
    ) -> Result<Self, InvalidKey> {
        let id = id.into();
        let mac = BegunMac::new(secret, &message::beginning(&audience, &id));
        let verifying = VerifyingKey::of_mac(id, mac.clone(), audience)?;
        Ok(Self {
            verifying: verifying.made_of(secret.digest()),
            signer: Signer::Mac(mac),
        })
    }

    /// A key for this audience, whose secret is derived from a secret that all audiences share.
    ///
    /// Use it in services that sign. A service that only checks should get
    /// `secret.derive(&audience)`, and make its key of that secret with [`new`](Self::new).
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn derived(
        id: impl Into<Box<str>>,
        secret: &Secret,
        audience: Audience,
    ) -> Result<Self, InvalidKey> {
        let key = Self::new(id, &secret.derive(&audience), audience)?;
        Ok(Self {
            verifying: key.verifying.made_of(secret.digest()),
            ..key
        })
    }

    /// A pair of keys, which follows from this secret. For a new pair, draw a new secret.
    ///
    /// Use it in services that sign. A service that only checks should get the
    /// [`public_key`](Self::public_key). The public key is the same for all audiences, and cannot
    /// sign. A [`KeyRing`](super::KeyRing) refuses one secret for keys of both kinds.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    #[cfg(feature = "ed25519")]
    pub fn ed25519(
        id: impl Into<Box<str>>,
        secret: &Secret,
        audience: Audience,
    ) -> Result<Self, InvalidKey> {
        let id = id.into();
        let pair = KeyPair::new(secret, message::beginning(&audience, &id));
        let verifying = VerifyingKey::new(id, pair.public_key(), audience)?;
        Ok(Self {
            verifying: verifying.made_of(secret.digest()),
            signer: Signer::Pair(pair),
        })
    }

    /// The half of the pair that checks; `None` if this key is not a pair.
    #[cfg(feature = "ed25519")]
    #[must_use]
    pub fn public_key(&self) -> Option<PublicKey> {
        match &self.signer {
            Signer::Pair(pair) => Some(pair.public_key()),
            Signer::Mac(_) => None,
        }
    }

    /// The id of the key, which is sent with each token.
    #[must_use]
    pub fn id(&self) -> &str {
        self.verifying.id()
    }

    /// Signs a token.
    #[must_use]
    pub fn sign<'a>(&'a self, header: FencingHeader<'a>) -> FencingHeader<'a> {
        let bytes = message::with_rest(&header, |rest| match &self.signer {
            Signer::Mac(mac) => SignatureBytes::Mac(mac.tag(rest)),
            #[cfg(feature = "ed25519")]
            Signer::Pair(pair) => SignatureBytes::Ed25519(pair.sign(rest)),
        });
        header.signed(Signature::of_key(self.id(), bytes))
    }

    pub(super) fn into_verifying(self) -> VerifyingKey {
        self.verifying
    }
}

impl AsRef<VerifyingKey> for SigningKey {
    fn as_ref(&self) -> &VerifyingKey {
        &self.verifying
    }
}

/// Does not show the secret.
impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SigningKey")
            .field("id", &self.id())
            .field("audience", &self.verifying.audience())
            .finish_non_exhaustive()
    }
}
