//! Lock services that ask a majority, compared with the best possible result of the same client
//! library.

mod etcd;
mod line;
mod redlock;
mod zookeeper;

pub(crate) use self::line::hand_on;

use crate::{
    figure::{
        Figure,
        Target::{AtLeast, AtMost},
    },
    pinning::Pinning::{CrossCore, SameCore},
};

/// All figures, in the order in which they are measured.
pub(crate) const FIGURES: &[Figure] = &[
    Figure {
        name: "redlock3_cycle_vs_floor",
        what: "acquire + release on 3 nodes, uncontended / three rounds of three parallel EVALSHA \
               of `return 1`",
        target: AtMost(1.15),
        pinnings: &[CrossCore, SameCore],
        measure: |rounds| Box::pin(redlock::cycle_vs_floor(rounds)),
    },
    Figure {
        name: "etcd_cycle_vs_recipe",
        what: "cycles/s, 1 task / etcd's own recipe in a session that is kept alive",
        target: AtLeast(0.75),
        pinnings: &[CrossCore, SameCore],
        measure: |rounds| Box::pin(etcd::cycle_vs_recipe(rounds)),
    },
    Figure {
        name: "etcd_throughput_vs_recipe",
        what: "cycles/s, 64 tasks / etcd's own recipe in such a session",
        target: AtLeast(0.62),
        pinnings: &[CrossCore],
        measure: |rounds| Box::pin(etcd::throughput_vs_recipe(rounds)),
    },
    Figure {
        name: "etcd_handoff_vs_watch",
        what: "hand-off among 8 waiters of one process / a deletion, until its watch reports it",
        target: AtMost(2.5),
        pinnings: &[CrossCore, SameCore],
        measure: |rounds| Box::pin(etcd::handoff_vs_watch(rounds)),
    },
    Figure {
        name: "zk_cycle_vs_floor",
        what: "acquire + release, uncontended / create + delete of an equal node",
        target: AtMost(1.3),
        pinnings: &[CrossCore, SameCore],
        measure: |rounds| Box::pin(zookeeper::cycle_vs_floor(rounds)),
    },
    Figure {
        name: "zk_handoff_vs_watch",
        what: "hand-off among 8 waiters of one process / a deletion, until its watch has reported",
        target: AtMost(2.0),
        pinnings: &[CrossCore, SameCore],
        measure: |rounds| Box::pin(zookeeper::handoff_vs_watch(rounds)),
    },
];
