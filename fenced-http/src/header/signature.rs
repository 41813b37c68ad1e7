use std::fmt;

use base64::{Engine as _, engine::general_purpose::STANDARD};

use super::Malformed;

/// A signature and the id of the key that made it: `kid` and `sig`, which never come alone.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Signature<'a> {
    key_id: &'a str,
    bytes: Bytes,
}

/// The bytes of a signature. Their length says which kind it could be, and the key says which kind
/// it has to be.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bytes {
    /// Half of an HMAC-SHA256.
    Mac([u8; MAC_LEN]),
    /// Ed25519.
    Ed25519([u8; ED25519_LEN]),
}

impl<'a> Signature<'a> {
    /// Puts a signature together from its parts.
    ///
    /// # Errors
    /// [`Malformed::KeyId`] if `key_id` is not a letter and up to 31 letters, digits, `-`, `_`
    /// or `.`, [`Malformed::Signature`] if `bytes` are neither 16 nor 64.
    pub fn new(key_id: &'a str, bytes: &[u8]) -> Result<Self, Malformed> {
        if !is_key_id(key_id) {
            return Err(Malformed::KeyId);
        }
        let bytes = Bytes::of(bytes).ok_or(Malformed::Signature)?;
        Ok(Self { key_id, bytes })
    }

    /// Makes a signature of texts that were read. The caller has checked the bytes of the id.
    #[inline]
    pub(super) fn read(key_id: &'a str, base64: &[u8]) -> Result<Self, Malformed> {
        if !has_length_and_beginning(key_id) {
            return Err(Malformed::KeyId);
        }
        let bytes = Bytes::of_base64(base64).ok_or(Malformed::Signature)?;
        Ok(Self { key_id, bytes })
    }

    /// The signature by a key whose id was checked.
    #[cfg(feature = "signed")]
    pub(crate) const fn of_key(key_id: &'a str, bytes: Bytes) -> Self {
        Self { key_id, bytes }
    }

    /// The id of the key that signed.
    #[must_use]
    pub const fn key_id(&self) -> &'a str {
        self.key_id
    }

    /// The signature itself. Compare it in constant time.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8] {
        match &self.bytes {
            Bytes::Mac(bytes) => bytes,
            Bytes::Ed25519(bytes) => bytes,
        }
    }

    #[cfg(feature = "signed")]
    pub(crate) const fn bytes(&self) -> &Bytes {
        &self.bytes
    }
}

impl Bytes {
    /// The length of a MAC in base64.
    pub(super) const MAC_TEXT_LEN: usize = MAC_LEN.div_ceil(3) * 4;

    /// The length of an Ed25519 signature in base64.
    pub(super) const ED25519_TEXT_LEN: usize = ED25519_LEN.div_ceil(3) * 4;

    /// `None` if no signature has that length.
    pub(super) fn of(bytes: &[u8]) -> Option<Self> {
        match bytes.len() {
            MAC_LEN => bytes.try_into().ok().map(Self::Mac),
            ED25519_LEN => bytes.try_into().ok().map(Self::Ed25519),
            _ => None,
        }
    }

    /// `None` if the text is not a signature in padded base64.
    #[inline]
    fn of_base64(text: &[u8]) -> Option<Self> {
        let mut bytes = [0; ED25519_LEN];
        let len = STANDARD.decode_slice(text, &mut bytes).ok()?;
        Self::of(&bytes[..len])
    }
}

/// Shows the key id only: a signature is a credential.
impl fmt::Debug for Signature<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signature")
            .field("key_id", &self.key_id)
            .finish_non_exhaustive()
    }
}

/// Whether a key can have this id.
pub(crate) fn is_key_id(id: &str) -> bool {
    has_length_and_beginning(id) && id.bytes().all(is_key_id_byte)
}

#[inline]
fn has_length_and_beginning(id: &str) -> bool {
    id.len() <= MAX_KEY_ID_LEN && id.bytes().next().is_some_and(|it| it.is_ascii_alphabetic())
}

pub(super) const fn is_key_id_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.')
}

/// The length of half an HMAC-SHA256, in bytes.
pub(super) const MAC_LEN: usize = 16;

/// The length of an Ed25519 signature, in bytes.
pub(super) const ED25519_LEN: usize = 64;

/// The longest key id, in bytes.
pub(super) const MAX_KEY_ID_LEN: usize = 32;
