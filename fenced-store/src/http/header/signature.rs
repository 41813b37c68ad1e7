use std::fmt;

use super::Malformed;

/// A signature and the id of the key that made it: `kid` and `sig`, which never come alone.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Signature<'a> {
    key_id: &'a str,
    bytes: [u8; LEN],
}

impl<'a> Signature<'a> {
    /// Puts a signature together from its parts.
    ///
    /// # Errors
    /// [`Malformed::KeyId`] if `key_id` is not a letter and up to 31 letters, digits, `-`, `_`
    /// or `.`, [`Malformed::Signature`] if `bytes` are not 16.
    pub fn new(key_id: &'a str, bytes: &[u8]) -> Result<Self, Malformed> {
        if !is_key_id(key_id) {
            return Err(Malformed::KeyId);
        }
        let bytes = bytes.try_into().map_err(|_| Malformed::Signature)?;
        Ok(Self { key_id, bytes })
    }

    /// For a key whose id has been checked.
    #[cfg(feature = "signed")]
    pub(in crate::http) const fn of_key(key_id: &'a str, bytes: [u8; LEN]) -> Self {
        Self { key_id, bytes }
    }

    /// Which key signed.
    #[must_use]
    pub const fn key_id(&self) -> &'a str {
        self.key_id
    }

    /// The signature itself. Compare it in constant time.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8] {
        &self.bytes
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
pub(in crate::http) fn is_key_id(id: &str) -> bool {
    id.len() <= MAX_KEY_ID_LEN
        && id.starts_with(|first: char| first.is_ascii_alphabetic())
        && id.bytes().all(is_key_id_byte)
}

pub(super) const fn is_key_id_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.')
}

/// The length of a signature, in bytes.
pub(super) const LEN: usize = 16;

/// The longest key id, in bytes.
pub(super) const MAX_KEY_ID_LEN: usize = 32;
