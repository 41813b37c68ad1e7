use clap::ValueEnum;

/// The part of a client in the scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Part {
    /// Makes a deposit under a lease of its own.
    Deposit,
    /// Writes with invented tokens.
    Forge,
}

impl Part {
    /// As on the command line.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Deposit => "deposit",
            Self::Forge => "forge",
        }
    }
}
