use sha2::block_api::compress256;
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

use super::{
    Secret,
    blocks::{BLOCK_LEN, Blocks},
};

/// An HMAC-SHA256 (RFC 2104) that has been given its secret and the beginning of what is signed,
/// which is the same for all tokens of a key. What is left is done for every request: two blocks of
/// the hash, for names that are not long.
///
/// The blocks are the library's work. What is around them is not, because the library's buffers are
/// copied and overwritten, which takes a tenth of the time.
#[derive(Clone)]
pub(super) struct BegunMac {
    /// Of the inner hash, after the secret and the beginning.
    inner: Zeroizing<State>,
    /// Of the outer hash, after the secret.
    outer: Zeroizing<State>,
    /// What the inner hash has been given, in bytes.
    begun_len: usize,
}

/// The state of SHA-256 between two blocks.
type State = [u32; 8];

impl BegunMac {
    /// The beginning is whole blocks.
    pub(super) fn new(secret: &Secret, beginning: &[u8]) -> Self {
        let (blocks, rest) = beginning.as_chunks();
        debug_assert!(rest.is_empty(), "the beginning is whole blocks");
        let mut inner = given(secret, 0x36);
        compress256(&mut inner, blocks);
        Self {
            inner,
            outer: given(secret, 0x5c),
            begun_len: BLOCK_LEN + beginning.len(),
        }
    }

    /// The first half of the MAC of the beginning and the rest.
    #[inline]
    pub(super) fn tag(&self, mut rest: Blocks<'_>) -> [u8; 16] {
        // Each copy of a state, which is as good as the secret, is overwritten by the next one.
        let mut hash = *self.inner;
        compress256(&mut hash, rest.ended(self.begun_len));
        let mut room = [[0; BLOCK_LEN]; 1];
        let mut inner_hash = Blocks::new(&mut room);
        inner_hash.push(hash.map(u32::to_be_bytes).as_flattened());
        let mut hash = *self.outer;
        compress256(&mut hash, inner_hash.ended(BLOCK_LEN));
        let [a, b, c, d, ..] = hash.map(u128::from);
        (a << 96 | b << 64 | c << 32 | d).to_be_bytes()
    }

    /// Whether this is that half. It takes as long for a wrong one as for the right one.
    #[inline]
    pub(super) fn has_tag(&self, rest: Blocks<'_>, tag: &[u8; 16]) -> bool {
        let ours = u128::from_be_bytes(self.tag(rest));
        ours.ct_eq(&u128::from_be_bytes(*tag)).into()
    }
}

/// The state of a hash that has been given the secret with this padding.
fn given(secret: &Secret, padding: u8) -> Zeroizing<State> {
    let mut block = secret.block();
    for byte in block.iter_mut() {
        *byte ^= padding;
    }
    let mut state = Zeroizing::new(AT_FIRST);
    compress256(&mut state, std::slice::from_ref(&block));
    state
}

/// The state before the first block (FIPS 180-4, 5.3.3).
const AT_FIRST: State = [
    0x6a09_e667,
    0xbb67_ae85,
    0x3c6e_f372,
    0xa54f_f53a,
    0x510e_527f,
    0x9b05_688c,
    0x1f83_d9ab,
    0x5be0_cd19,
];

#[cfg(test)]
mod tests {
    use hmac::{Hmac, KeyInit, Mac};
    use proptest::{collection::vec, prelude::*};
    use sha2::Sha256;

    use super::*;

    fn by_the_library(secret: &Secret, parts: [&[u8]; 2]) -> [u8; 16] {
        let mac = Hmac::<Sha256>::new((&*secret.block()).into());
        let mac = parts.iter().fold(mac, |mac, part| mac.chain_update(part));
        std::array::from_fn(|at| mac.clone().finalize().into_bytes()[at])
    }

    proptest! {
        #[test]
        fn it_is_the_mac_of_the_library(
            blocks in 0_usize..4,
            rest in vec(any::<u8>(), 0..300),
        ) {
            let secret = Secret::random();
            let beginning = vec![7; blocks * BLOCK_LEN];
            let mac = BegunMac::new(&secret, &beginning);
            let mut room = [[0; BLOCK_LEN]; 5];
            let mut blocks = Blocks::new(&mut room);
            blocks.push(&rest);
            let expected = by_the_library(&secret, [&beginning, &rest]);
            prop_assert_eq!(mac.tag(blocks), expected);
        }
    }
}
