/// What a backend promises beyond the contract that all backends share.
///
/// The conformance cases hold a backend to what it claims of order and waking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Capabilities {
    /// How far the order of tokens can be trusted.
    pub fencing: Fencing,
    /// In which order waiters are served.
    pub fairness: Fairness,
    /// How a waiter learns that it is its turn.
    pub waking: Waking,
}

impl Capabilities {
    /// Puts capabilities together.
    #[must_use]
    pub const fn new(fencing: Fencing, fairness: Fairness, waking: Waking) -> Self {
        Self {
            fencing,
            fairness,
            waking,
        }
    }
}

/// How far the order of tokens can be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fencing {
    /// Tokens rise for ever: the service agrees on them before it answers.
    Durable,
    /// Tokens rise as long as the service keeps its state. After a loss they may regress or repeat;
    /// the store refuses those, and the floor lifts the service above the store's mark again.
    BestEffort,
}

/// In which order waiters are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fairness {
    /// First come, first served, as the backend saw them arrive.
    Fifo,
    /// As `Fifo`, but waiters of one process may be served `passes` times in a row.
    BoundedBypass {
        /// How many grants in a row may stay in one process.
        passes: u32,
    },
    /// Any order; a waiter may be overtaken without bound.
    None,
}

/// How a waiter learns that it is its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Waking {
    /// The service tells it; polling only recovers what got lost.
    Pushed,
    /// It has to ask again.
    Polled,
}
