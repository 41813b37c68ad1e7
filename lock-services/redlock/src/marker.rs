use std::{fmt, time::Duration};

/// The state of a node, in one key: `incarnation:state:base:longest:run_id`. A `+` follows if that
/// run writes its log before it answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Marker {
    /// The node draws it whenever it is taken into service without state. It consists of the node's
    /// clock in microseconds and a nonce of the request.
    pub(super) incarnation: String,
    pub(super) state: MarkerState,
    /// The count below which no counter begins.
    pub(super) base: u64,
    /// The longest ttl that a lease may have.
    pub(super) longest: Duration,
    /// The run of the server that is known to have all data of this incarnation.
    pub(super) run_id: String,
    /// Whether that run was seen to write its log before it answers, so that the next run has all
    /// writes that it acknowledged.
    pub(super) is_durable: bool,
}

/// The role of a node in the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MarkerState {
    /// Ready for service, with the others.
    Prepared,
    /// The node serves. Missing counters begin at the base.
    Serving,
    /// The node lost its state, or is new among nodes that serve, and gets their counters. It does
    /// not serve yet.
    Healing,
    /// The old keys of the node are being deleted, before it gets counters.
    Clearing,
    /// The node is permanently out of service.
    Retired,
}

impl MarkerState {
    /// Whether the node has counters whose last writes it must not lose.
    pub(super) const fn has_counters(self) -> bool {
        matches!(self, Self::Serving | Self::Healing)
    }

    const fn letter(self) -> char {
        match self {
            Self::Prepared => 'p',
            Self::Serving => 's',
            Self::Healing => 'h',
            Self::Clearing => 'c',
            Self::Retired => 'r',
        }
    }

    fn of_letter(letter: &str) -> Option<Self> {
        let all = [
            Self::Prepared,
            Self::Serving,
            Self::Healing,
            Self::Clearing,
            Self::Retired,
        ];
        let is = |state: &Self| letter.chars().eq([state.letter()]);
        all.into_iter().find(is)
    }
}

impl Marker {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.splitn(5, ':');
        let mut next = || parts.next();
        let (incarnation, state, base, longest, run) =
            (next()?, next()?, next()?, next()?, next()?);
        let durable = run.strip_suffix('+');
        Some(Self {
            incarnation: incarnation.to_owned(),
            state: MarkerState::of_letter(state)?,
            base: base.parse().ok()?,
            longest: Duration::from_millis(longest.parse().ok()?),
            run_id: durable.unwrap_or(run).to_owned(),
            is_durable: durable.is_some(),
        })
    }

    /// The rest of the text after the incarnation.
    pub(super) fn tail(&self) -> String {
        let (state, base, run_id) = (self.state.letter(), self.base, &self.run_id);
        let durable = if self.is_durable { "+" } else { "" };
        format!(
            ":{state}:{base}:{}:{run_id}{durable}",
            self.longest.as_millis()
        )
    }
}

impl fmt::Display for Marker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.incarnation, self.tail())
    }
}
