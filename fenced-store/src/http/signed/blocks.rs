/// Bytes in blocks of a hash. What the hash adds at the end is written right behind them, so that
/// they need not be copied.
pub(super) struct Blocks<'a> {
    /// Zeros, as far as nothing has been written.
    blocks: &'a mut [[u8; BLOCK_LEN]],
    len: usize,
}

impl<'a> Blocks<'a> {
    /// Empty, in a room of zeros that is longer by [`END_LEN`] than what is going to be written.
    #[inline]
    pub(super) const fn new(room: &'a mut [[u8; BLOCK_LEN]]) -> Self {
        Self {
            blocks: room,
            len: 0,
        }
    }

    #[inline]
    pub(super) fn push(&mut self, more: &[u8]) {
        let end = self.len + more.len();
        self.blocks.as_flattened_mut()[self.len..end].copy_from_slice(more);
        self.len = end;
    }

    /// What has been written.
    #[cfg(feature = "ed25519")]
    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.blocks.as_flattened()[..self.len]
    }

    /// The blocks with what SHA-256 adds at the end, if it was given so many bytes before: a bit,
    /// zeros up to the end of a block, and in its last bytes the number of bits (FIPS 180-4,
    /// 5.1.1).
    #[inline]
    pub(super) fn ended(&mut self, before: usize) -> &[[u8; BLOCK_LEN]] {
        let bits = 8 * (before + self.len) as u64;
        let used = (self.len + END_LEN).div_ceil(BLOCK_LEN);
        self.push(&[0x80]);
        let blocks = &mut self.blocks[..used];
        if let Some(length) = blocks.as_flattened_mut().last_chunk_mut() {
            *length = bits.to_be_bytes();
        }
        blocks
    }
}

/// The block of SHA-256, in bytes.
pub(super) const BLOCK_LEN: usize = 64;

/// What SHA-256 adds at least, in bytes.
pub(super) const END_LEN: usize = 1 + size_of::<u64>();
