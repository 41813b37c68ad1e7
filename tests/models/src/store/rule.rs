use super::Store;

/// The check of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Check {
    /// Nothing.
    Nothing,
    /// A token that is not less than the mark passes, and becomes the mark.
    NotLess,
    /// A greater token passes, and an equal one of the same holder; it becomes the mark.
    GreaterOrOwn,
    /// Only the token and the holder of the mark pass. Only a claim moves the mark.
    Claimed,
}

/// The check of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Read {
    /// Nothing.
    Plain,
    /// The same as a write.
    Checked,
    /// The same as a write, and its token becomes the mark.
    Advancing,
}

/// Whether a holder whose token was refused may have the counter raised above the mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Floor {
    /// Never.
    Never,
    /// If it still holds the lease.
    IfHeld,
    /// Always, and it gets the lease with it.
    Always,
}

impl Store {
    /// This many acquisitions, nothing fenced, and a lock service that does not fail.
    #[must_use]
    pub const fn unfenced(acquisitions: usize) -> Self {
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

    /// Writes are checked.
    #[must_use]
    pub const fn checking(self, check: Check) -> Self {
        Self { check, ..self }
    }

    /// Reads are checked.
    #[must_use]
    pub const fn reading(self, read: Read) -> Self {
        Self { read, ..self }
    }

    /// Tokens are claimed.
    #[must_use]
    pub const fn claiming(self) -> Self {
        Self {
            claims: true,
            ..self
        }
    }

    /// A refused holder may have the counter raised.
    #[must_use]
    pub const fn with_floor(self, floor: Floor) -> Self {
        Self { floor, ..self }
    }

    /// Each acquisition asks for at most this many floors.
    #[must_use]
    pub const fn at_most(self, floors: u8) -> Self {
        Self { floors, ..self }
    }

    /// A write names the version that it was computed from.
    #[must_use]
    pub const fn comparing_versions(self) -> Self {
        Self {
            compares_versions: true,
            ..self
        }
    }

    /// A holder that was let in by a floor does not read again.
    #[must_use]
    pub const fn keeping_the_read(self) -> Self {
        Self {
            keeps_read: true,
            ..self
        }
    }

    /// All acquisitions have one holder id.
    #[must_use]
    pub const fn sharing_the_holder(self) -> Self {
        Self {
            shares_holder: true,
            ..self
        }
    }

    /// The lock service may fail over, and its old primary is dead then.
    #[must_use]
    pub const fn failing_over(self) -> Self {
        Self {
            fails_over: true,
            ..self
        }
    }

    /// The lock service may fail over, and its old primary serves on.
    #[must_use]
    pub const fn splitting(self) -> Self {
        Self {
            splits: true,
            ..self.failing_over()
        }
    }

    /// First writes may be late.
    #[must_use]
    pub const fn delaying_writes(self) -> Self {
        Self {
            delays_write: true,
            ..self
        }
    }
}
