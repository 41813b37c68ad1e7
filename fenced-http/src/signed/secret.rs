use std::{collections::BTreeSet, fmt, str::FromStr};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use zeroize::Zeroizing;

use super::{Audience, InvalidKey};

/// The secret of a signing key: 32 random bytes.
///
/// One secret is enough for many services. Each gets only the secret that is
/// [derived](Secret::derive) for it, with which it can check, and forge, only its own tokens.
///
/// `Debug` does not show the secret, there is no `Display`, and the memory of the secret is
/// overwritten when it is dropped. Only [`expose`](Secret::expose) returns it.
#[derive(Clone)]
pub struct Secret(Zeroizing<[u8; LEN]>);

/// The length of a secret, in bytes. It is the length of the output of the hash, as RFC 2104
/// recommends.
const LEN: usize = 32;

/// The least number of different bytes in a secret. About 30 of 32 random bytes are different, and
/// fewer than 16 are only once in 10^16 draws. Typed and repeated texts have fewer different bytes,
/// and zeros have one.
const DIFFERENT_MIN: usize = 16;

impl Secret {
    /// Draws a secret from a cryptographically secure generator, seeded by the system.
    #[must_use]
    pub fn random() -> Self {
        Self(Zeroizing::new(rand::random()))
    }

    /// The secret for tokens of one audience. The shared secret cannot be computed from the derived
    /// one.
    ///
    /// It is the HMAC-SHA256 of a fixed text and the audience.
    #[must_use]
    pub fn derive(&self, audience: &Audience) -> Self {
        let mut mac = Hmac::<Sha256>::new((&*self.block()).into());
        mac.update(b"fencing-token key 1\0");
        mac.update(audience.as_str().as_bytes());
        Self(Zeroizing::new(mac.finalize().into_bytes().into()))
    }

    /// The secret in base64, as its `FromStr` reads it. Not for logs, errors or command lines.
    #[must_use]
    pub fn expose(&self) -> Zeroizing<String> {
        Zeroizing::new(STANDARD.encode(*self.0))
    }

    /// A digest that distinguishes two secrets, and shows nothing else about them.
    pub(super) fn digest(&self) -> SecretDigest {
        let mut mac = Hmac::<Sha256>::new((&*self.block()).into());
        mac.update(b"fencing-token secret 1");
        SecretDigest(mac.finalize().into_bytes().into())
    }

    fn is_guessable(&self) -> bool {
        self.0.iter().collect::<BTreeSet<_>>().len() < DIFFERENT_MIN
    }

    #[cfg(feature = "ed25519")]
    pub(super) fn as_bytes(&self) -> &[u8; LEN] {
        &self.0
    }

    /// The secret as HMAC takes it. By RFC 2104 a shorter key is filled up with zeros.
    pub(super) fn block(&self) -> Zeroizing<[u8; 64]> {
        let mut block = Zeroizing::new([0; 64]);
        block[..LEN].copy_from_slice(&*self.0);
        block
    }
}

/// See [`Secret::digest`].
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct SecretDigest([u8; LEN]);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// Accepts the text of [`Secret::expose`]: 32 bytes in padded base64. Fewer than 16 different bytes
/// are refused, as [`InvalidKey::Guessable`].
impl FromStr for Secret {
    type Err = InvalidKey;

    fn from_str(text: &str) -> Result<Self, InvalidKey> {
        let mut secret = Zeroizing::new([0; LEN]);
        let Ok(LEN) = STANDARD.decode_slice(text, &mut *secret) else {
            return Err(InvalidKey::Secret);
        };
        let secret = Self(secret);
        match secret.is_guessable() {
            true => Err(InvalidKey::Guessable),
            false => Ok(secret),
        }
    }
}
