use std::time::Duration;

use crate::Runtime;

/// The pauses between looks at a resource that another holder has, and the number of looks.
///
/// For callers that do not want to queue, see [`Acquire::retry`](crate::Acquire::retry). A policy
/// is plain data without a clock. [`pauses`](RetryPolicy::pauses) returns the pauses that follow
/// from it.
///
/// A pause is never shorter than 1 ms, so that no policy makes a client spin, and never longer than
/// the policy says: [jitter](Jitter) only shortens. Sums and products saturate.
///
/// # Examples
/// ```
/// use lock_core::{Jitter, RetryPolicy, backend::TokioRuntime};
/// use std::time::Duration;
///
/// let millis = Duration::from_millis;
/// let policy = RetryPolicy::exponential(millis(50)).longest(millis(300)).limit(5);
/// let mut pauses = policy.jitter(Jitter::None).pauses();
/// let pauses: Vec<_> = std::iter::from_fn(|| pauses.next(&TokioRuntime)).collect();
/// assert_eq!(pauses, [50, 100, 200, 300, 300].map(millis));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[must_use = "a policy does nothing until it is given to an acquisition"]
pub struct RetryPolicy {
    /// The factor by which each pause is longer than the one before.
    growth: u32,
    first: Duration,
    longest: Duration,
    jitter: Jitter,
    limit: Option<u32>,
}

/// How a pause is randomised, so that clients that were refused together do not come back together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Jitter {
    /// Exactly the pause.
    None,
    /// Anything from half the pause to the whole of it. The default.
    #[default]
    Half,
    /// Anything up to the whole pause.
    Full,
}

/// The pauses of one acquisition, one after the other. After the limit there are no more.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Pauses {
    policy: RetryPolicy,
    next: Duration,
    taken: u32,
}

/// No pause is shorter than this.
const SHORTEST: Duration = Duration::from_millis(1);

/// Pauses stop growing here, unless the policy says otherwise.
const LONGEST: Duration = Duration::from_secs(30);

impl RetryPolicy {
    /// The same pause each time.
    pub const fn fixed(pause: Duration) -> Self {
        Self::new(1, pause)
    }

    /// The first pause is `first`. Each further pause is twice as long.
    pub const fn exponential(first: Duration) -> Self {
        Self::new(2, first)
    }

    /// The longest pause. Defaults to 30 s, or to the first pause if that is longer.
    pub const fn longest(mut self, longest: Duration) -> Self {
        self.longest = longest;
        self
    }

    /// How the pauses are spread. Defaults to [`Jitter::Half`].
    pub const fn jitter(mut self, jitter: Jitter) -> Self {
        self.jitter = jitter;
        self
    }

    /// The number of looks after the first look. Defaults to no bound.
    ///
    /// With 0 there is only the first look.
    pub const fn limit(mut self, limit: u32) -> Self {
        self.limit = Some(limit);
        self
    }

    /// The pauses of one acquisition. Each is drawn when it is asked for.
    #[must_use]
    pub const fn pauses(self) -> Pauses {
        Pauses {
            policy: self,
            next: self.first,
            taken: 0,
        }
    }

    const fn new(growth: u32, first: Duration) -> Self {
        let long = first.as_nanos() > LONGEST.as_nanos();
        Self {
            growth,
            first,
            longest: if long { first } else { LONGEST },
            jitter: Jitter::Half,
            limit: None,
        }
    }
}

impl Pauses {
    /// The next pause. The runtime draws a point in the range that jitter allows.
    pub fn next(&mut self, runtime: &dyn Runtime) -> Option<Duration> {
        self.draw(runtime.dice())
    }

    /// The number of pauses that were drawn.
    pub(crate) const fn taken(&self) -> u32 {
        self.taken
    }

    /// The next pause; `dice`, from 0 to 1, selects a point in the range that jitter allows.
    pub(crate) fn draw(&mut self, dice: f64) -> Option<Duration> {
        if self.policy.limit.is_some_and(|limit| self.taken >= limit) {
            return None;
        }
        self.taken = self.taken.saturating_add(1);
        let whole = std::cmp::min(self.next, self.policy.longest);
        self.next = self.next.saturating_mul(self.policy.growth);
        let part = match self.policy.jitter {
            Jitter::None => 1.0,
            Jitter::Half => 0.5 + dice / 2.0,
            Jitter::Full => dice,
        };
        // Rounding may make it a little longer than the whole pause, or than any duration.
        let pause = Duration::try_from_secs_f64(whole.as_secs_f64() * part).unwrap_or(whole);
        Some(std::cmp::max(std::cmp::min(pause, whole), SHORTEST))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::TokioRuntime;

    const fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn first(policy: RetryPolicy, count: usize) -> Vec<Duration> {
        let mut pauses = policy.jitter(Jitter::None).pauses();
        (0..count).map_while(|_| pauses.draw(0.5)).collect()
    }

    /// Catches: growth without end, a long pause that is cut short, and clients that all look at
    /// the same moments.
    #[test]
    fn each_kind_grows_in_its_way_and_ends_by_itself() {
        let secs = Duration::from_secs;
        for (policy, expected) in [
            (RetryPolicy::fixed(millis(7)), [7, 7, 7].map(millis)),
            (RetryPolicy::exponential(millis(7)), [7, 14, 28].map(millis)),
            (RetryPolicy::fixed(secs(3600)), [3600; 3].map(secs)),
            (RetryPolicy::exponential(secs(20)), [20, 30, 30].map(secs)),
        ] {
            assert_eq!(first(policy, 3), expected);
        }
        let mut pauses = RetryPolicy::fixed(millis(1000)).pauses();
        let spread = (0..50).map(|_| pauses.next(&TokioRuntime));
        let spread: std::collections::BTreeSet<_> = spread.collect();
        assert!(spread.len() > 25, "{}", spread.len());
    }

    fn any_pause() -> impl Strategy<Value = Duration> {
        prop_oneof![
            (0..100_000_u64).prop_map(millis),
            any::<(u32, u32)>().prop_map(|(secs, nanos)| Duration::new(secs.into(), nanos)),
            Just(Duration::MAX),
        ]
    }

    fn any_policy() -> impl Strategy<Value = RetryPolicy> {
        let kind = prop_oneof![
            any_pause().prop_map(RetryPolicy::fixed),
            any_pause().prop_map(RetryPolicy::exponential),
        ];
        (kind, any_pause()).prop_map(|(kind, longest)| kind.longest(longest))
    }

    proptest! {
        #[test]
        fn pauses_grow_and_stay_within_their_bounds(policy in any_policy()) {
            let pauses = first(policy, 200);
            prop_assert_eq!(pauses.len(), 200);
            prop_assert!(pauses.is_sorted());
            let longest = std::cmp::max(policy.longest, SHORTEST);
            prop_assert!(pauses.iter().all(|pause| (SHORTEST..=longest).contains(pause)));
        }

        #[test]
        fn jitter_shortens_and_by_no_more_than_it_says(
            policy in any_policy(), dice in prop::collection::vec(0.0..1.0_f64, 1..100)
        ) {
            let mut whole = policy.jitter(Jitter::None).pauses();
            let mut half = policy.jitter(Jitter::Half).pauses();
            let mut full = policy.jitter(Jitter::Full).pauses();
            for dice in dice {
                let [whole, half, full] =
                    [&mut whole, &mut half, &mut full].map(|pauses| pauses.draw(dice));
                prop_assert!(full <= half && half <= whole);
                // The bound allows for rounding: a pause of centuries has no more digits.
                let least = whole.map(|whole| whole.mul_f64(0.499_999));
                prop_assert!(half >= least);
            }
        }
    }
}
