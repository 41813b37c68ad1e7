//! The signed bytes, see the [module](super#the-signed-bytes).

use super::Audience;
use crate::FencingHeader;

/// The bytes that are the same for all tokens of one key. They are whole blocks of the hash, so
/// that a key hashes them once.
pub(super) fn beginning(audience: &Audience, key_id: &str) -> Vec<u8> {
    let mut bytes = b"fencing-token 1\0".to_vec();
    for text in [audience.as_str(), key_id] {
        bytes.extend(length(text));
        bytes.extend(text.as_bytes());
    }
    bytes.resize(bytes.len().next_multiple_of(BLOCK_LEN), 0);
    bytes
}

/// Passes on the bytes that one token adds to the beginning. They are on the stack, and in one
/// piece, because this is done for every request.
#[inline]
pub(super) fn with_rest<T>(header: &FencingHeader<'_>, then: impl FnOnce(&[u8]) -> T) -> T {
    let names_len = header.issuer().len() + header.resource().len();
    if names_len <= SHORT_NAMES_LEN {
        then(rest(header, &mut [0; NUMBERS_LEN + SHORT_NAMES_LEN]))
    } else {
        then(rest(header, &mut [0; NUMBERS_LEN + FencingHeader::MAX_LEN]))
    }
}

fn rest<'a>(header: &FencingHeader<'_>, bytes: &'a mut [u8]) -> &'a [u8] {
    let mut len = 0;
    let mut push = |more: &[u8]| {
        bytes[len..len + more.len()].copy_from_slice(more);
        len += more.len();
    };
    for text in [header.issuer(), header.resource()] {
        push(&length(text));
        push(text.as_bytes());
    }
    push(&header.token().get().to_be_bytes());
    push(&header.holder().expose_bytes());
    // No lease ends at 0, so 0 means that there is no `exp`.
    push(&header.expiry().unwrap_or(0).to_be_bytes());
    &bytes[..len]
}

/// The length of a text in two bytes, which is enough, because no text is longer than a header.
fn length(text: &str) -> [u8; 2] {
    u16::try_from(text.len()).unwrap_or(u16::MAX).to_be_bytes()
}

/// The block of SHA-256, in bytes.
const BLOCK_LEN: usize = 64;

/// The length of the rest without the names, in bytes: their lengths, token, holder and expiry.
const NUMBERS_LEN: usize = 2 * size_of::<u16>() + 8 + 16 + 8;

/// The names of most tokens are shorter than this, and a shorter buffer is prepared faster. The
/// longest names are as long as a header, because names may not have been checked yet.
const SHORT_NAMES_LEN: usize = 92;
