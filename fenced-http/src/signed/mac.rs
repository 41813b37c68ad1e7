use hmac::{
    KeyInit,
    block_api::HmacCore,
    digest::block_api::{Buffer, FixedOutputCore, UpdateCore},
};
use sha2::Sha256;
use subtle::ConstantTimeEq;

use super::Secret;

/// An HMAC-SHA256 that has hashed its secret and the beginning of the signed bytes, which is the
/// same for all tokens of a key. The rest is hashed for every request. Unless names are long, the
/// rest has two blocks of the hash.
///
/// The computation is that of the library `hmac`, without the buffer that each MAC of the library
/// has.
#[derive(Clone)]
pub(super) struct BegunMac(HmacCore<Sha256>);

impl BegunMac {
    /// The beginning must consist of whole blocks.
    pub(super) fn new(secret: &Secret, beginning: &[u8]) -> Self {
        let mut core = HmacCore::new((&*secret.block()).into());
        let mut buffer = Buffer::<HmacCore<Sha256>>::default();
        buffer.digest_blocks(beginning, |blocks| core.update_blocks(blocks));
        debug_assert_eq!(buffer.get_pos(), 0, "the beginning is whole blocks");
        Self(core)
    }

    /// The first half of the MAC of the beginning and the rest.
    #[inline]
    pub(super) fn tag(&self, rest: &[u8]) -> [u8; 16] {
        let mut core = self.0.clone();
        let mut buffer = Buffer::<HmacCore<Sha256>>::default();
        buffer.digest_blocks(rest, |blocks| core.update_blocks(blocks));
        let mut mac = Default::default();
        core.finalize_fixed_core(&mut buffer, &mut mac);
        std::array::from_fn(|at| mac[at])
    }

    /// Whether this is the first half of the MAC. A wrong tag takes as long as the right one.
    #[inline]
    pub(super) fn has_tag(&self, rest: &[u8], tag: &[u8; 16]) -> bool {
        let ours = u128::from_be_bytes(self.tag(rest));
        ours.ct_eq(&u128::from_be_bytes(*tag)).into()
    }
}
