use super::{State, Token, Tokens};

impl<const N: usize> Tokens<N> {
    /// Some attempts, on nodes that keep their state.
    pub(crate) const fn of(attempts: usize) -> Self {
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
