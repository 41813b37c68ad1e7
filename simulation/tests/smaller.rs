//! A plan that breaks a promise becomes smaller.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use simulation::{
    plan::{self, Plan},
    schedule::{self, Promises},
    shrink,
};

fn broken(plan: &Plan) -> Option<simulation::Broken> {
    schedule::run_under(plan, false, Promises::AndMadeUp).broken
}

fn works(plan: &Plan) -> usize {
    plan.clients.iter().map(|client| client.works.len()).sum()
}

/// Catches: a smaller plan that breaks nothing or another promise, and so misleads its reader; and
/// a plan that is as large as before.
#[test]
fn a_smaller_plan_breaks_the_same_promise() {
    let seeds = (0..300).filter_map(|seed| Some((seed, broken(&plan::drawn_plan(seed))?)));
    let (mut before, mut after) = (0, 0);
    for (seed, found) in seeds.take(3) {
        assert_eq!(found.promise, "made-up", "seed {seed}");
        let smaller = shrink::smaller(seed, &found, Promises::AndMadeUp);
        assert_eq!(
            broken(&smaller.plan),
            Some(smaller.broken.clone()),
            "seed {seed}"
        );
        assert_eq!(smaller.broken.promise, found.promise, "seed {seed}");
        before += works(&plan::drawn_plan(seed));
        after += works(&smaller.plan);
    }
    assert!(
        after < before,
        "{after} of {before} pieces of work are left"
    );
}

/// Catches: a made-up promise that is judged although no test has asked for it.
#[test]
fn the_made_up_promise_is_not_ours() {
    let seed = (0..300).find(|seed| broken(&plan::drawn_plan(*seed)).is_some());
    let report = schedule::run(&plan::drawn_plan(seed.unwrap()), false);
    assert_eq!(report.broken, None);
}
