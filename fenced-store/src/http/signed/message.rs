//! What is signed, see the [module](super#what-is-signed).

use hmac::{Hmac, Mac};
use sha2::Sha256;

use super::Audience;
use crate::http::FencingHeader;

/// What is the same for all tokens that one key signs.
pub(super) fn beginning(audience: &Audience, key_id: &str) -> Vec<u8> {
    let mut bytes = b"fencing-token 1\0".to_vec();
    for text in [audience.as_str(), key_id] {
        bytes.extend(length(text));
        bytes.extend(text.as_bytes());
    }
    bytes
}

/// All of it, of one token.
#[cfg(feature = "ed25519")]
pub(super) fn whole(header: &FencingHeader<'_>, beginning: &[u8]) -> Vec<u8> {
    with_rest(header, |rest| [beginning, rest].concat())
}

/// Continues a computation that has been given the beginning, up to its last step.
pub(super) fn mac_of(header: &FencingHeader<'_>, begun: &Hmac<Sha256>) -> Hmac<Sha256> {
    with_rest(header, |rest| begun.clone().chain_update(rest))
}

/// What one token adds to the beginning. On the stack, and in one piece: this is done for every
/// request.
fn with_rest<T>(header: &FencingHeader<'_>, then: impl FnOnce(&[u8]) -> T) -> T {
    let mut bytes = [0; REST_LEN_MAX];
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
    // No lease ends at 0, so that means "not said".
    push(&header.expiry().unwrap_or(0).to_be_bytes());
    then(&bytes[..len])
}

/// No text is longer than a header.
fn length(text: &str) -> [u8; 2] {
    u16::try_from(text.len()).unwrap_or(u16::MAX).to_be_bytes()
}

/// Issuer and resource come out of one header, whose names nobody may have looked at yet, or are
/// legal names, which are shorter.
const REST_LEN_MAX: usize = 2 * size_of::<u16>() + FencingHeader::MAX_LEN + 8 + 16 + 8;
