//! The Redis lock service compared with floors, peers and itself.

mod commands;
mod contest;
mod cycle;
mod floor;
mod handoff;
mod idle;
mod renewal;
mod rslock;
mod server;
mod throughput;

pub(crate) use self::{contest::play, server::Server};
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
        pinning: CrossCore,
        both_pinnings: true,
        measure: |setting| Box::pin(cycle::vs_floor(setting)),
    },
    Figure {
        name: "drop_cycle_vs_floor",
        what: "acquire + drop of the guard, until it returns / two EVALSHA of `return 1`",
        target: AtMost(0.65),
        pinning: CrossCore,
        both_pinnings: true,
        measure: |setting| Box::pin(cycle::dropped_vs_floor(setting)),
    },
    Figure {
        name: "throughput_vs_floor",
        what: "cycles/s of 64 tasks on 64 locks / pairs of EVALSHA of `return 1`",
        target: AtLeast(0.60),
        pinning: CrossCore,
        both_pinnings: true,
        measure: |setting| Box::pin(throughput::vs_floor(setting)),
    },
    Figure {
        name: "cycle_vs_rslock",
        what: "acquire + release, uncontended / the same of rslock, which has no fencing token",
        target: AtMost(1.00),
        pinning: SameCore,
        both_pinnings: true,
        measure: |setting| Box::pin(cycle::vs_rslock(setting)),
    },
    Figure {
        name: "throughput_vs_rslock",
        what: "cycles/s of 64 tasks on 64 locks / the same of rslock",
        target: AtLeast(1.00),
        pinning: SameCore,
        both_pinnings: true,
        measure: |setting| Box::pin(throughput::vs_rslock(setting)),
    },
    Figure {
        name: "idle_gap_vs_rslock",
        what: "8 waiters that hold for 1 ms and think for 2: time from release to the next \
               holder, rslock's / ours",
        target: AtLeast(20.0),
        pinning: CrossCore,
        both_pinnings: true,
        measure: |setting| Box::pin(handoff::idle_gap_vs_rslock(setting)),
    },
    Figure {
        name: "handoff_p50_vs_push",
        what: "hand-off among 64 waiters of one process, until its push has come in / one EVALSHA \
               that publishes, until its push has come in",
        target: AtMost(1.15),
        pinning: CrossCore,
        both_pinnings: true,
        measure: |setting| Box::pin(handoff::p50_vs_push(setting)),
    },
    Figure {
        name: "handoff_return_vs_push",
        what: "the same until acquire has returned, which confirms the lease / such a push, and \
               one EVALSHA of `return 1` more",
        target: AtMost(1.25),
        pinning: CrossCore,
        both_pinnings: true,
        measure: |setting| Box::pin(handoff::returned_vs_push(setting)),
    },
    Figure {
        name: "handoff_vs_retry",
        what: "hand-offs/s, 4 processes x 16 waiters / publish, then everybody tries",
        target: AtLeast(1.4),
        pinning: CrossCore,
        both_pinnings: true,
        measure: |setting| Box::pin(handoff::vs_retry(setting)),
    },
    Figure {
        name: "handoff_vs_fair_list",
        what: "hand-off among 512 waiters of one process, a fair queue of list and zset / ours",
        target: AtLeast(8.0),
        pinning: CrossCore,
        both_pinnings: true,
        measure: |setting| Box::pin(handoff::vs_fair_list(setting)),
    },
    Figure {
        name: "commands_per_handoff",
        what: "commands to the server per hold, 4 processes x 16 waiters that hold for no time",
        target: AtMost(2.1),
        pinning: CrossCore,
        both_pinnings: false,
        measure: |setting| Box::pin(handoff::commands(setting)),
    },
    Figure {
        name: "cohort_vs_direct",
        what: "hand-offs/s with a cohort, 4 processes x 16 waiters / without",
        target: AtLeast(15.0),
        pinning: CrossCore,
        both_pinnings: true,
        measure: |setting| Box::pin(handoff::cohort_vs_direct(setting)),
    },
    Figure {
        name: "waiters_10000_vs_8",
        what: "hand-off among 10,000 waiters of one process / among 8",
        target: AtMost(1.2),
        pinning: CrossCore,
        both_pinnings: true,
        measure: |setting| Box::pin(handoff::many_vs_few(setting)),
    },
    Figure {
        name: "fairness_jain",
        what: "Jain's index of holds per waiter, 4 processes x 16 waiters, the lesser of: \
               first come, first served / with a cohort",
        target: AtLeast(0.99),
        pinning: CrossCore,
        both_pinnings: true,
        measure: |setting| Box::pin(handoff::fairness(setting)),
    },
    Figure {
        name: "renew_10k_vs_pexpire",
        what: "10,000 renewals / 10,000 PEXPIRE in pipelines of 1000, which compare nothing",
        target: AtMost(1.9),
        pinning: CrossCore,
        both_pinnings: true,
        measure: |setting| Box::pin(renewal::vs_pexpire(setting)),
    },
    Figure {
        name: "renew_10k_stall_ms",
        what: "worst PING of another client during 10,000 renewals, in ms (other: for as long \
               without them)",
        target: AtMost(1.5),
        pinning: CrossCore,
        both_pinnings: false,
        measure: |setting| Box::pin(renewal::stall(setting)),
    },
    Figure {
        name: "idle_bytes_per_resource",
        what: "MEMORY USAGE of what 10,000 released resources leave behind, per resource (other: \
               while they are held)",
        target: AtMost(0.0),
        pinning: CrossCore,
        both_pinnings: false,
        measure: |setting| Box::pin(idle::bytes_per_resource(setting)),
    },
];
