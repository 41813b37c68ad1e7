//! The results of a contest.

use std::{collections::HashMap, ops::Range};

use serde::{Deserialize, Serialize};

use crate::{figure::BoxError, paired::Samples};

/// One turn of one waiter. Moments are those of the monotonic clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Hold {
    /// Orders the holds, also between processes. 0 if the strategy has none.
    pub(super) token: u64,
    /// When acquire had returned.
    pub(super) acquired_ns: u64,
    /// When the waiter was told that the resource is its own, which may be before that.
    pub(super) told_ns: u64,
    /// When release was called.
    pub(super) released_ns: u64,
    pub(super) waiter: u32,
}

/// The results of a contest.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Verdict {
    /// The median time from one waiter's call of release until the next waiter is told. A waiter
    /// that follows itself is not a hand-off.
    pub(crate) handoff_us: f64,
    /// The same until the next waiter's return from acquire.
    pub(crate) returned_us: f64,
    /// The same for any next holder: the time for which nobody has the resource.
    pub(crate) gap_us: f64,
    pub(crate) handoffs_per_second: f64,
    /// Jain's index of holds per waiter: 1 if all of them held it equally often.
    pub(crate) jain: f64,
    /// Commands of clients per hold, from lining up to the end.
    pub(crate) commands_per_hold: f64,
}

/// Judges the holds that were acquired within the window. Commands are those of the whole contest.
///
/// There are no figures for a lock that two held at once, or a token that was given out twice.
pub(super) fn judge(
    mut holds: Vec<Hold>,
    window: Range<u64>,
    waiters: u32,
    commands: u64,
) -> Result<Verdict, BoxError> {
    holds.sort_unstable();
    let (mut handoffs, mut returns) = (Samples::default(), Samples::default());
    let mut gaps = Samples::default();
    let mut handed_off = 0_u32;
    let mut turns: HashMap<u32, u32> = HashMap::new();
    for pair in holds.windows(2) {
        let [before, after] = [pair[0], pair[1]];
        if after.acquired_ns < before.released_ns {
            return Err(format!("two had the lock at once: {before:?} and {after:?}").into());
        }
        if after.token == before.token && after.token != 0 {
            return Err(format!("a token was given twice: {before:?} and {after:?}").into());
        }
        if !window.contains(&after.acquired_ns) {
            continue;
        }
        let gap_us = (after.acquired_ns - before.released_ns) as f64 / 1e3;
        gaps.push(gap_us);
        *turns.entry(after.waiter).or_default() += 1;
        if after.waiter != before.waiter {
            let told_us = after.told_ns.saturating_sub(before.released_ns) as f64 / 1e3;
            handoffs.push(told_us);
            returns.push(gap_us);
            handed_off += 1;
        }
    }
    if handed_off == 0 {
        return Err("nobody handed the lock on while it was watched".into());
    }
    let seconds = (window.end - window.start) as f64 / 1e9;
    Ok(Verdict {
        handoff_us: handoffs.median(),
        returned_us: returns.median(),
        gap_us: gaps.median(),
        handoffs_per_second: f64::from(handed_off) / seconds,
        jain: jain(turns.values().copied(), waiters),
        commands_per_hold: commands as f64 / holds.len() as f64,
    })
}

/// Jain's fairness index of `all` shares, of which those not listed are zero.
fn jain(shares: impl Iterator<Item = u32>, all: u32) -> f64 {
    let (sum, squares) = shares
        .map(f64::from)
        .fold((0.0, 0.0), |(sum, squares), share| {
            (sum + share, squares + share * share)
        });
    sum * sum / (squares * f64::from(all))
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn hold(token: u64, waiter: u32, acquired_ns: u64, released_ns: u64) -> Hold {
        Hold {
            token,
            acquired_ns,
            told_ns: acquired_ns - acquired_ns % 10_000,
            released_ns,
            waiter,
        }
    }

    #[test]
    fn hand_offs_are_between_different_waiters_within_the_window() {
        let holds = vec![
            hold(4, 2, 40_000, 50_000),
            hold(1, 1, 0, 10_000),
            hold(2, 2, 12_000, 20_000),
            hold(3, 2, 29_000, 30_000),
        ];
        let verdict = judge(holds, 12_000..40_000, 2, 8).unwrap();
        assert_eq!((verdict.handoff_us, verdict.returned_us), (0.0, 2.0));
        assert_eq!(verdict.gap_us, 9.0);
        assert_eq!(verdict.commands_per_hold, 2.0);
        assert_eq!(verdict.jain, 0.5, "only one of two had a turn");
    }

    #[test]
    fn a_lock_that_two_had_at_once_has_no_figures() {
        let holds = vec![hold(1, 1, 0, 10), hold(2, 2, 9, 20)];
        assert!(judge(holds, 0..100, 2, 4).is_err());
        let same_token = vec![hold(1, 1, 0, 10), hold(1, 2, 11, 20)];
        assert!(judge(same_token, 0..100, 2, 4).is_err());
    }

    #[test]
    fn equal_shares_are_fair() {
        assert_eq!(jain([7, 7, 7].into_iter(), 3), 1.0);
        assert!(jain([20, 1, 1].into_iter(), 3) < 0.5);
    }
}
