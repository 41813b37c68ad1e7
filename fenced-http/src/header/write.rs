//! The writer, and the proof that everything it may write can be read.

use std::fmt;

use base64::{display::Base64Display, engine::general_purpose::STANDARD};
use http::{HeaderValue, header::InvalidHeaderValue};
use lock_core::{Issuer, ResourceName};

use super::{FencingHeader, USUAL_MAX_LEN, signature};

/// The value is marked sensitive, because it contains the holder. Keep it out of logs and caches.
///
/// The conversion fails only for bytes that no header may have, which neither a [`Sequencer`]
/// nor a parsed header contains.
///
/// [`Sequencer`]: lock_core::Sequencer
impl TryFrom<FencingHeader<'_>> for HeaderValue {
    type Error = InvalidHeaderValue;

    fn try_from(header: FencingHeader<'_>) -> Result<Self, InvalidHeaderValue> {
        let mut value = Self::try_from(Wire(&header).to_string())?;
        value.set_sensitive(true);
        Ok(value)
    }
}

/// The text of a header. Private, because it shows the holder.
struct Wire<'a>(&'a FencingHeader<'a>);

impl fmt::Display for Wire<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FencingHeader {
            token,
            resource,
            issuer,
            holder,
            expires_at,
            signature,
        } = self.0;
        let holder = holder.expose();
        write!(
            f,
            "{token};res=\"{resource}\";iss=\"{issuer}\";hld=\"{holder}\""
        )?;
        if let Some(expires_at) = expires_at {
            write!(f, ";exp={expires_at}")?;
        }
        if let Some(signature) = signature {
            let bytes = Base64Display::new(signature.as_bytes(), &STANDARD);
            write!(f, ";kid={};sig=:{bytes}:", signature.key_id())?;
        }
        Ok(())
    }
}

/// The longest legal header with a signature of this length, in bytes.
pub(super) const fn longest(signature_len: usize) -> usize {
    const NUMBER: usize = 15;
    const HOLDER: usize = 32;
    NUMBER
        + ";res=\"\"".len()
        + ResourceName::MAX_LEN
        + ";iss=\"\"".len()
        + Issuer::MAX_LEN
        + ";hld=\"\"".len()
        + HOLDER
        + ";exp=".len()
        + NUMBER
        + ";kid=".len()
        + signature::MAX_KEY_ID_LEN
        + ";sig=::".len()
        + signature_len.div_ceil(3) * 4
}

const _: () = assert!(
    longest(signature::MAC_LEN) <= USUAL_MAX_LEN
        && longest(signature::ED25519_LEN) <= FencingHeader::MAX_LEN,
    "every legal header can be read"
);
