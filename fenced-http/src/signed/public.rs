//! Ed25519: pairs of keys, one of which signs and one of which checks.

use std::{fmt, str::FromStr, sync::Arc};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};

use super::{InvalidKey, Secret};

/// Both halves, and the beginning of the signed bytes.
#[derive(Clone)]
pub(super) struct KeyPair {
    key: Arc<SigningKey>,
    beginning: Box<[u8]>,
}

impl KeyPair {
    pub(super) fn new(secret: &Secret, beginning: Vec<u8>) -> Self {
        Self {
            key: Arc::new(SigningKey::from_bytes(secret.as_bytes())),
            beginning: beginning.into(),
        }
    }

    pub(super) fn public_key(&self) -> PublicKey {
        PublicKey(self.key.verifying_key())
    }

    /// The signature of the beginning and the rest.
    pub(super) fn sign(&self, rest: &[u8]) -> [u8; 64] {
        self.key.sign(&[&self.beginning, rest].concat()).to_bytes()
    }
}

/// The half of an Ed25519 key pair that checks. It is no secret.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PublicKey(VerifyingKey);

impl PublicKey {
    /// Checks strictly, so that a signature cannot be turned into another signature of the same
    /// bytes.
    pub(super) fn has_signed(&self, message: &[u8], signature: &[u8; 64]) -> bool {
        let signature = Signature::from_bytes(signature);
        self.0.verify_strict(message, &signature).is_ok()
    }
}

/// Writes padded base64.
impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&STANDARD.encode(self.0.as_bytes()))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({self})")
    }
}

/// Accepts the text of [`Display`](fmt::Display): 32 bytes in padded base64 that are a point of the
/// curve. A few points are refused, because anybody can sign for them.
impl FromStr for PublicKey {
    type Err = InvalidKey;

    fn from_str(text: &str) -> Result<Self, InvalidKey> {
        let mut bytes = [0; 32];
        let len = STANDARD.decode_slice(text, &mut bytes);
        let key = VerifyingKey::from_bytes(&bytes);
        match (len, key) {
            (Ok(32), Ok(key)) if !key.is_weak() => Ok(Self(key)),
            _ => Err(InvalidKey::PublicKey),
        }
    }
}

#[cfg(test)]
mod tests;
