//! Lock services that ask a majority, against what the same client could do at best.

mod redlock;

use crate::{
    figure::{Figure, Target::AtMost},
    pinning::Pinning::CrossCore,
};

/// All figures, in the order in which they are measured.
pub(crate) const FIGURES: &[Figure] = &[Figure {
    name: "redlock3_cycle_vs_floor",
    what: "acquire + release on 3 nodes, uncontended / three rounds of three parallel EVALSHA of \
           `return 1`",
    target: AtMost(1.15),
    pinning: CrossCore,
    both_pinnings: true,
    measure: |setting| Box::pin(redlock::cycle_vs_floor(setting)),
}];
