use clap::ValueEnum;

use crate::events::Act;

/// What a client of the scenario does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Part {
    /// Makes a deposit under a lease of its own.
    Deposit,
    /// The same, and another process uses its token meanwhile: it keeps the lease until it is told
    /// to release it.
    Lend,
    /// Makes a deposit with a token that was lent to it.
    Share,
    /// Writes with tokens that it makes up.
    Forge,
}

impl Part {
    /// As on the command line.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Deposit => "deposit",
            Self::Lend => "lend",
            Self::Share => "share",
            Self::Forge => "forge",
        }
    }

    /// Whether its writes have numbers: where there is a fence to look at them, and somebody else
    /// who writes under the same token.
    pub(super) fn is_numbered(self, act: Act) -> bool {
        matches!(self, Self::Lend | Self::Share) && act == Act::Fenced
    }
}
