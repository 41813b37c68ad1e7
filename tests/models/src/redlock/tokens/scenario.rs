use super::{HEALINGS, State, Token, Tokens};

impl<const N: usize> Tokens<N> {
    /// Some attempts, on nodes that keep their state.
    #[must_use]
    pub const fn of(attempts: usize) -> Self {
        Self {
            attempts,
            uneven: 0,
            resent: 0,
            losses: 0,
            healings: 0,
            at_least: None,
            replaces: false,
            lists: false,
            forgets_nothing: false,
            flaw: None,
        }
    }

    /// The counters start at 0 up to this.
    #[must_use]
    pub const fn uneven(self, uneven: u8) -> Self {
        Self { uneven, ..self }
    }

    /// This many acquires arrive again.
    #[must_use]
    pub const fn resent(self, resent: u8) -> Self {
        Self { resent, ..self }
    }

    /// Nodes lose their state this many times, and somebody begins to heal them this many times.
    ///
    /// # Panics
    /// If there is no room for so many healings.
    #[must_use]
    pub const fn losing(self, losses: u8, healings: usize) -> Self {
        assert!(healings <= HEALINGS, "there is no room for so many");
        Self {
            losses,
            healings,
            ..self
        }
    }

    /// The last attempt asks for at least this token.
    #[must_use]
    pub const fn at_least(self, token: u8) -> Self {
        Self {
            at_least: Some(token),
            ..self
        }
    }

    /// The last node takes the place of the one before it.
    #[must_use]
    pub const fn replacing(self) -> Self {
        Self {
            replaces: true,
            healings: 1,
            ..self
        }
    }

    /// The resource is new, at least to some nodes; and nodes are healed by listing the counters of
    /// others.
    #[must_use]
    pub const fn listing(self) -> Self {
        Self {
            lists: true,
            ..self
        }
    }

    /// States keep what can no longer matter: this checks that forgetting it hides nothing.
    #[must_use]
    pub const fn forgetting_nothing(self) -> Self {
        Self {
            forgets_nothing: true,
            ..self
        }
    }

    /// All ways in which the counters may start.
    pub(crate) fn beginnings(&self) -> Vec<State<N>> {
        let mut counters: Vec<[Token; N]> = vec![[0; N]];
        for node in 0..N {
            let longer = |known: &[Token; N]| {
                let mut known = *known;
                let least = if node == 0 { 0 } else { known[node - 1] };
                (least..=self.uneven)
                    .map(move |count| {
                        known[node] = count;
                        known
                    })
                    .collect::<Vec<_>>()
            };
            counters = counters.iter().flat_map(longer).collect();
        }
        let begin = |counters| {
            let mut state = State::new(self, counters);
            state.make_canonical();
            state
        };
        counters.into_iter().map(begin).collect()
    }
}
