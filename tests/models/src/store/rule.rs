use super::Store;

/// The check of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Check {
    /// Nothing.
    Nothing,
    /// A token that is not less than the mark passes, and becomes the mark.
    NotLess,
    /// A greater token passes, and an equal token of the same holder; it becomes the mark.
    GreaterOrOwn,
    /// Only the token and the holder of the mark pass. Only a claim moves the mark.
    Claimed,
}

/// The check of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Read {
    /// Nothing.
    Plain,
    /// The check of a write.
    Checked,
    /// The check of a write, and its token becomes the mark.
    Advancing,
}

/// Whether a holder whose token was refused may have the counter raised above the mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Floor {
    /// Never.
    Never,
    /// If the holder still holds the lease.
    IfHeld,
    /// Always, and the holder gets the lease with it.
    Always,
}

impl Store {
    /// This many acquisitions without a fence, and a lock service that does not fail.
    pub(crate) const fn unfenced(acquisitions: usize) -> Self {
        Self {
            acquisitions,
            check: Check::Nothing,
            read: Read::Plain,
            claims: false,
            floor: Floor::Never,
            floors: 2,
            compares_versions: false,
            keeps_read: false,
            shares_holder: false,
            fails_over: false,
            splits: false,
            delays_write: false,
        }
    }
}
