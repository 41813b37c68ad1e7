use clap::ValueEnum;

use crate::events::Act;

/// The part of a client in the scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Part {
    /// Makes a deposit under a lease of its own.
    Deposit,
    /// The same, while another process uses its token: it keeps the lease until it is told to
    /// release it.
    Lend,
    /// Makes a deposit with a token that was lent to it.
    Share,
    /// Writes with invented tokens.
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

    /// Whether its writes have numbers: only if there is a fence to check them, and somebody else
    /// who writes under the same token.
    pub(super) fn is_numbered(self, act: Act) -> bool {
        matches!(self, Self::Lend | Self::Share) && act == Act::Fenced
    }
}
