//! Finds a smaller plan that breaks the same promise.

use proptest::strategy::ValueTree;

use crate::{
    judge::Broken,
    plan::{self, Plan},
    schedule::{self, Promises},
};

/// The most runs in which a failing plan is made smaller. No failure needs more.
const MOST_RUNS: usize = 2_000;

/// A plan that breaks a promise.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Smaller {
    /// The plan.
    pub plan: Plan,
    /// How it breaks the promise.
    pub broken: Broken,
    /// How many plans were tried.
    pub runs: usize,
}

/// The smallest plan of this seed that proptest finds and that breaks the same promise.
#[must_use]
pub fn smaller(seed: u64, broken: &Broken, promises: Promises) -> Smaller {
    let mut tree = plan::drawn(seed);
    let mut smallest = Smaller {
        plan: tree.current(),
        broken: broken.clone(),
        runs: 0,
    };
    if !tree.simplify() {
        return smallest;
    }
    for run in 1..=MOST_RUNS {
        let plan = tree.current();
        let found = schedule::run_under(&plan, false, promises).broken;
        let is_same = |found: &Broken| found.promise == broken.promise;
        let goes_on = match found.filter(is_same) {
            Some(found) => {
                smallest = Smaller {
                    plan,
                    broken: found,
                    runs: run,
                };
                tree.simplify()
            }
            None => tree.complicate(),
        };
        if !goes_on {
            break;
        }
    }
    smallest
}
