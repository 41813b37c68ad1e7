/// The promises of a backend beyond the contract that all backends keep.
///
/// The conformance cases check that a backend keeps the promises that it claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Capabilities {
    /// How far the order of tokens can be trusted.
    pub fencing: Fencing,
    /// In which order waiters are served.
    pub fairness: Fairness,
    /// How a waiter learns that it is its turn.
    pub waking: Waking,
    /// The kind of numbers that are used as tokens.
    pub tokens: TokenScale,
    /// The optional clauses of the contract that the backend keeps.
    pub extensions: &'static [Extension],
}

impl Capabilities {
    /// Puts capabilities together, without extensions. The tokens are
    /// [`Counted`](TokenScale::Counted).
    #[must_use]
    pub const fn new(fencing: Fencing, fairness: Fairness, waking: Waking) -> Self {
        Self {
            fencing,
            fairness,
            waking,
            tokens: TokenScale::Counted,
            extensions: &[],
        }
    }

    /// Sets the kind of numbers that are used as tokens.
    #[must_use]
    pub const fn counting(mut self, tokens: TokenScale) -> Self {
        self.tokens = tokens;
        self
    }

    /// Claims extensions.
    #[must_use]
    pub const fn extended(mut self, extensions: &'static [Extension]) -> Self {
        self.extensions = extensions;
        self
    }

    /// Whether an extension is claimed.
    #[must_use]
    pub fn has(&self, extension: Extension) -> bool {
        self.extensions.contains(&extension)
    }
}

/// The abilities of a backend beyond acquiring, renewing and releasing. The manager never sends a
/// request that needs an extension which the backend does not claim. Such a call fails with
/// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Extension {
    /// A holder may leave a note that others can read.
    Metadata,
    /// The length of a queue may be bounded.
    QueueLimit,
    /// An acquisition may be held several times, and each hold is given back by itself.
    Holds,
    /// A lease may be ended by a client that is not its holder.
    ForceRelease,
    /// Held and awaited resources may be listed.
    List,
    /// Several resources may be acquired in one step.
    Together,
}

impl Extension {
    /// All of them.
    pub const ALL: &'static [Self] = &[
        Self::Metadata,
        Self::QueueLimit,
        Self::Holds,
        Self::ForceRelease,
        Self::List,
        Self::Together,
    ];
}

/// How far the order of tokens can be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fencing {
    /// Tokens rise for ever: the nodes of the service agree on a token before it is returned.
    Durable,
    /// Tokens rise as long as the service keeps its state. After a loss of state tokens may go back
    /// or repeat. The store refuses such tokens, and the floor lifts the service above the store's
    /// mark again.
    BestEffort,
}

/// The kind of numbers that are used as tokens. It decides whether the tokens of two resources can
/// be compared, and so whether a store may keep one floor in place of many marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TokenScale {
    /// Each resource, or group of resources, has its own counter, even if the counter began at the
    /// clock.
    Counted,
    /// Each token is no less than the wall clock when it was issued, in units of 10 µs.
    Clock,
    /// Each token is a revision of one counter that all resources share.
    Revision,
}

/// In which order waiters are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fairness {
    /// First come, first served, as the backend saw them arrive.
    Fifo,
    /// Any order. Others may overtake a waiter any number of times.
    None,
}

/// How a waiter learns that it is its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Waking {
    /// The service notifies the waiter. Polling is needed only after a lost notice.
    Pushed,
    /// The waiter has to ask again.
    Polled,
}
