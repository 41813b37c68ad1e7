use crate::FenceError;

/// The number of a transaction among those of its grant.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seq(i64);

impl Seq {
    /// As many digits as a token has, so that it fits wherever a token does.
    const MAX: i64 = 999_999_999_999_999;

    pub(crate) fn new(number: u64) -> Result<Self, FenceError> {
        i64::try_from(number)
            .ok()
            .filter(|number| (1..=Self::MAX).contains(number))
            .map(Self)
            .ok_or(FenceError::SeqOutOfRange { presented: number })
    }

    /// The number as it was presented.
    pub(crate) const fn get(self) -> u64 {
        self.0.unsigned_abs()
    }
}

impl From<Seq> for i64 {
    fn from(seq: Seq) -> Self {
        seq.0
    }
}
