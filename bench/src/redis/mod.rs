//! The Redis lock service compared with floors and a peer.

mod contest;
mod cycle;
mod floor;
mod handoff;
mod renewal;
mod rslock;
mod throughput;

pub(crate) use self::floor::{connect, round_trip};
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
        name: "cycle_vs_floor",
        what: "acquire + release, uncontended / two EVALSHA of `return 1` on the same client",
        target: AtMost(1.10),
        pinnings: &[CrossCore, SameCore],
        measure: |rounds| Box::pin(cycle::vs_floor(rounds)),
    },
    Figure {
        name: "drop_cycle_vs_floor",
        what: "acquire + drop of the guard, until it returns / two EVALSHA of `return 1`",
        target: AtMost(0.65),
        pinnings: &[CrossCore, SameCore],
        measure: |rounds| Box::pin(cycle::dropped_vs_floor(rounds)),
    },
    Figure {
        name: "throughput_vs_floor",
        what: "cycles/s of 64 tasks on 64 locks / pairs of EVALSHA of `return 1`",
        target: AtLeast(0.62),
        pinnings: &[CrossCore, SameCore],
        measure: |rounds| Box::pin(throughput::vs_floor(rounds)),
    },
    Figure {
        name: "cycle_vs_rslock",
        what: "acquire + release, uncontended / the same of rslock, which has no fencing token",
        target: AtMost(1.00),
        pinnings: &[SameCore, CrossCore],
        measure: |rounds| Box::pin(cycle::vs_rslock(rounds)),
    },
    Figure {
        name: "throughput_vs_rslock",
        what: "cycles/s of 64 tasks on 64 locks / the same of rslock",
        target: AtLeast(0.70),
        pinnings: &[SameCore, CrossCore],
        measure: |rounds| Box::pin(throughput::vs_rslock(rounds)),
    },
    Figure {
        name: "client_cpu_vs_rslock",
        what: "client CPU of a cycle, 64 tasks on 64 locks / the same of rslock",
        target: AtMost(1.75),
        pinnings: &[SameCore, CrossCore],
        measure: |rounds| Box::pin(throughput::client_cpu_vs_rslock(rounds)),
    },
    Figure {
        name: "idle_gap_vs_rslock",
        what: "8 waiters that hold for 1 ms and pause for 2 ms: time from release to the \
               next holder, rslock / ours",
        target: AtLeast(20.0),
        pinnings: &[CrossCore, SameCore],
        measure: |rounds| Box::pin(handoff::idle_gap_vs_rslock(rounds)),
    },
    Figure {
        name: "handoff_inside_vs_script",
        what: "hand-off among 8 tasks of one client that contend for one lock, until acquire has \
               returned / one EVALSHA of `return 1`",
        target: AtMost(1.30),
        pinnings: &[CrossCore, SameCore],
        measure: |rounds| Box::pin(handoff::inside_vs_script(rounds)),
    },
    Figure {
        name: "handoff_p50_vs_push",
        what: "hand-off among 64 waiters of two clients that take turns, until the push has \
               arrived / one EVALSHA that publishes, until its push has arrived",
        target: AtMost(1.15),
        pinnings: &[CrossCore, SameCore],
        measure: |rounds| Box::pin(handoff::p50_vs_push(rounds)),
    },
    Figure {
        name: "handoff_return_vs_push",
        what: "hand-off among 64 waiters of two clients, until acquire has returned, which \
               confirms the lease / such a push and one more EVALSHA of `return 1`",
        target: AtMost(1.25),
        pinnings: &[CrossCore, SameCore],
        measure: |rounds| Box::pin(handoff::returned_vs_push(rounds)),
    },
    Figure {
        name: "renew_10k_vs_pexpire",
        what: "10,000 renewals / 10,000 PEXPIRE in pipelines of 1000, which compare nothing",
        target: AtMost(1.9),
        pinnings: &[CrossCore, SameCore],
        measure: |rounds| Box::pin(renewal::vs_pexpire(rounds)),
    },
];
