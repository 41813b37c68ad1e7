//! The order in which two holders take their steps.

/// One of the two holders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    /// The holder that has lost the lease, and does not know this.
    Stale,
    /// The holder that has acquired since, with the next token.
    New,
}

/// How many steps each holder takes.
pub(crate) const STEPS: usize = 4;

/// The holders whose turn it is, one after the other.
pub(crate) type Order = [Who; 2 * STEPS];

impl Who {
    pub(crate) const BOTH: [Self; 2] = [Self::Stale, Self::New];

    pub(crate) const fn other(self) -> Self {
        match self {
            Self::Stale => Self::New,
            Self::New => Self::Stale,
        }
    }

    /// The token that the holder has.
    pub(crate) const fn token(self) -> u64 {
        match self {
            Self::Stale => 1,
            Self::New => 2,
        }
    }
}

/// All orders in which both holders take all of their steps.
pub(crate) fn all() -> impl Iterator<Item = Order> {
    (0..=u8::MAX)
        .filter(|bits| bits.count_ones() == 4)
        .map(|bits| {
            std::array::from_fn(|at| match bits >> at & 1 {
                0 => Who::Stale,
                _ => Who::New,
            })
        })
}

/// Catches: an order that is left out.
#[test]
fn there_are_seventy_orders() {
    let orders: Vec<_> = all().collect();
    assert_eq!(orders.len(), 70);
    for (number, order) in orders.iter().enumerate() {
        for who in Who::BOTH {
            assert_eq!(order.iter().filter(|turn| **turn == who).count(), STEPS);
        }
        assert!(!orders[..number].contains(order));
    }
}
