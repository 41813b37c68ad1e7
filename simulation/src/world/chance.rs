//! Random numbers by key: a draw depends on its stream and number, and on no draw before it.

use std::time::Duration;

/// Streams with this number or a greater one belong to the world itself.
pub(super) const OWN_STREAMS: u64 = 1 << 63;

/// The step of splitmix64 from one state to the next.
const STRIDE: u64 = 0x9E37_79B9_7F4A_7C15;

/// The number of this seed, stream and place in the stream.
///
/// An operation that is left out of a schedule shifts no draw of another one, if each has a stream
/// of its own. Streams below `1 << 63` are for callers.
#[must_use]
pub const fn draw(seed: u64, stream: u64, number: u64) -> u64 {
    let seeded = mixed(seed.wrapping_add(STRIDE));
    let streamed = mixed(seeded ^ stream.wrapping_add(STRIDE));
    mixed(streamed.wrapping_add(number.wrapping_add(1).wrapping_mul(STRIDE)))
}

/// The last steps of splitmix64.
const fn mixed(bits: u64) -> u64 {
    let bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ (bits >> 31)
}

/// Maps a number that is drawn to a number from 0 to `n - 1`. 0 if `n` is 0.
pub(super) fn reduced(drawn: u64, n: u64) -> u64 {
    let high = (u128::from(drawn) * u128::from(n)) >> 64;
    u64::try_from(high).unwrap_or(0)
}

/// The draws of one stream, one after another.
#[derive(Clone, Debug)]
pub struct Stream {
    seed: u64,
    stream: u64,
    drawn: u64,
}

impl Stream {
    /// The stream of this number, from its first draw on.
    #[must_use]
    pub const fn new(seed: u64, stream: u64) -> Self {
        Self {
            seed,
            stream,
            drawn: 0,
        }
    }

    /// The next number.
    pub const fn next_number(&mut self) -> u64 {
        let number = draw(self.seed, self.stream, self.drawn);
        self.drawn += 1;
        number
    }

    /// A number from 0 to `n - 1`. 0 if `n` is 0.
    pub fn below(&mut self, n: u64) -> u64 {
        reduced(self.next_number(), n)
    }

    /// True with this probability: never for 0, always for 1.
    pub fn chance(&mut self, probability: f64) -> bool {
        let high = u32::try_from(self.next_number() >> 32).unwrap_or(0);
        f64::from(high) / (f64::from(u32::MAX) + 1.0) < probability
    }

    /// A duration from the first to the second, both included; the first if it is the longer one.
    pub fn between(&mut self, least: Duration, most: Duration) -> Duration {
        let span = most.saturating_sub(least).as_nanos();
        let choices = u64::try_from(span + 1).unwrap_or(u64::MAX);
        least.saturating_add(Duration::from_nanos(self.below(choices)))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Catches: two keys that share their draws, such as stream 1 and the second draw of stream 0.
    #[test]
    fn each_key_has_a_draw_of_its_own() {
        let keys = |seed| (0..16).flat_map(move |stream| (0..16).map(move |n| (seed, stream, n)));
        let drawn: BTreeSet<_> = (0..16)
            .flat_map(keys)
            .map(|(seed, stream, number)| draw(seed, stream, number))
            .collect();
        assert_eq!(drawn.len(), 16 * 16 * 16);
    }

    /// Catches: a stream that depends on draws of another stream.
    #[test]
    fn a_stream_is_the_draws_of_its_key() {
        let mut stream = Stream::new(7, 3);
        let numbers = [stream.next_number(), stream.next_number()];
        assert_eq!(numbers, [draw(7, 3, 0), draw(7, 3, 1)]);
    }

    /// Catches: a bound that is passed or never reached, and a chance that is far off.
    #[test]
    fn draws_keep_their_bounds_and_use_them() {
        let mut stream = Stream::new(1, 2);
        let below: BTreeSet<_> = (0..200).map(|_| stream.below(5)).collect();
        assert_eq!(below.into_iter().collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
        assert_eq!((stream.below(0), stream.below(1)), (0, 0));
        let (least, most) = (Duration::from_nanos(3), Duration::from_nanos(5));
        let between: BTreeSet<_> = (0..200).map(|_| stream.between(least, most)).collect();
        assert_eq!(between.len(), 3);
        assert!(between.into_iter().all(|it| it >= least && it <= most));
        assert_eq!(stream.between(most, least), most);
        assert!(stream.between(Duration::ZERO, Duration::MAX) > Duration::ZERO);
        let hits = (0..1000).filter(|_| stream.chance(0.25)).count();
        assert!((150..350).contains(&hits), "{hits} of 1000");
        assert!((0..100).all(|_| stream.chance(1.0) && !stream.chance(0.0)));
    }
}
