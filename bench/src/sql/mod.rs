//! One database as lock service and store, PostgreSQL first, compared with plain statements and
//! with common alternatives. The servers write to the directory of TMPDIR: on a disk, a commit is
//! flushed there.

mod cycle;
mod handoff;
mod mariadb;
mod peers;
mod renewal;
mod sqlite;
mod throughput;
mod upkeep;
mod world;

use self::peers::Peer;
use crate::{
    figure::{
        Figure,
        Target::{AtLeast, AtMost, Reported},
    },
    pinning::Pinning::{CrossCore, SameCore, Unpinned},
};

/// All figures, in the order in which they are measured.
pub(crate) const FIGURES: &[Figure] = &[
    Figure {
        name: "pg_cycle_vs_updates",
        what: "acquire and claim + release / two updates of a row (2.4 in a memory file system)",
        target: AtMost(1.5),
        pinnings: &[CrossCore, SameCore],
        measure: |rounds| Box::pin(cycle::vs_updates(rounds)),
    },
    Figure {
        name: "pg_fenced_cycle_vs_plain",
        what: "acquire, begin, update, commit and release / the plain write (4.3 in memory)",
        target: AtMost(3.8),
        pinnings: &[CrossCore, SameCore],
        measure: |rounds| Box::pin(cycle::fenced_vs_plain(rounds)),
    },
    Figure {
        name: "pg_fenced_cycle_vs_plain_rtt3ms",
        what: "fenced write with 4 round trips of 3 ms / the plain write with 3 of them",
        target: AtMost(1.4),
        pinnings: &[CrossCore],
        measure: |rounds| Box::pin(cycle::fenced_vs_plain_over_network(rounds)),
    },
    Figure {
        name: "pg_cycles_vs_updates_32",
        what: "cycles/s, 32 clients, a resource each / two updates of a row each",
        target: AtLeast(0.55),
        pinnings: &[CrossCore],
        measure: |rounds| Box::pin(cycle::throughput_vs_updates(rounds)),
    },
    Figure {
        name: "pg_throughput_vs_lease_table",
        what: "cycles/s, 64 tasks, a lock each, without a claim / a lease table without fence",
        target: AtLeast(0.8),
        pinnings: &[Unpinned],
        measure: |rounds| Box::pin(throughput::vs_lease_table(rounds)),
    },
    Figure {
        name: "pg_cpu_vs_lease_table",
        what: "the server's CPU time for such a cycle / for one of the lease table",
        target: AtMost(1.4),
        pinnings: &[Unpinned],
        measure: |rounds| Box::pin(throughput::cpu_vs_lease_table(rounds)),
    },
    Figure {
        name: "pg_cycle_vs_lease_table",
        what: "acquire and claim + release / a lease table without fence",
        target: Reported,
        pinnings: &[CrossCore],
        measure: |rounds| Box::pin(peers::vs(Peer::LeaseTable, rounds)),
    },
    Figure {
        name: "pg_cycle_vs_advisory_lock",
        what: "acquire and claim + release / pg_advisory_lock and its end, on one session",
        target: Reported,
        pinnings: &[CrossCore],
        measure: |rounds| Box::pin(peers::vs(Peer::AdvisoryLock, rounds)),
    },
    Figure {
        name: "pg_cycle_vs_for_update",
        what: "acquire and claim + release / begin, SELECT FOR UPDATE, commit",
        target: Reported,
        pinnings: &[CrossCore],
        measure: |rounds| Box::pin(peers::vs(Peer::ForUpdate, rounds)),
    },
    Figure {
        name: "pg_fenced_cycle_vs_redis",
        what: "acquire, begin, update, commit and release / the same with Redis as lock service",
        target: Reported,
        pinnings: &[CrossCore],
        measure: |rounds| Box::pin(cycle::fenced_vs_redis(rounds)),
    },
    Figure {
        name: "pg_renewal_vs_update",
        what: "1 000 renewals at once, each hashes its holder / one update of 1 000 rows",
        target: AtMost(4.5),
        pinnings: &[CrossCore],
        measure: |rounds| Box::pin(renewal::vs_update(rounds)),
    },
    Figure {
        name: "pg_handoff_vs_for_update",
        what: "hand-off among 8 waiters / from a commit until a FOR UPDATE that waits has the row",
        target: AtMost(6.0),
        pinnings: &[CrossCore],
        measure: |rounds| Box::pin(handoff::vs_for_update(rounds)),
    },
    Figure {
        name: "pg_lease_row_bytes",
        what: "a lease after 200 000 cycles / 256 kB",
        target: AtMost(1.0),
        pinnings: &[CrossCore],
        measure: |_| Box::pin(upkeep::bytes_of_a_lease()),
    },
    Figure {
        name: "pg_idle_waiters_cpu",
        what: "the server's CPU time while 8 clients wait and listen / the time",
        target: AtMost(0.005),
        pinnings: &[CrossCore],
        measure: |_| Box::pin(upkeep::cpu_of_waiters(true)),
    },
    Figure {
        name: "pg_polling_waiters_cpu",
        what: "the server's CPU time while 8 wait through a pooler, without listening / the time",
        target: AtMost(0.05),
        pinnings: &[CrossCore],
        measure: |_| Box::pin(upkeep::cpu_of_waiters(false)),
    },
    Figure {
        name: "mariadb_cycle_vs_lease_table",
        what: "MariaDB: acquire and claim + release / a lease table without fence in the database",
        target: AtMost(3.0),
        pinnings: &[CrossCore],
        measure: |rounds| Box::pin(mariadb::cycle_vs_lease_table(rounds)),
    },
    Figure {
        name: "mariadb_handoff_across_vs_within",
        what: "MariaDB: hand-off to another process, which looks / among 8 waiters of one",
        target: Reported,
        pinnings: &[CrossCore],
        measure: |rounds| Box::pin(mariadb::handoff_across_vs_within(rounds)),
    },
    Figure {
        name: "sqlite_cycle_vs_lease_table",
        what: "SQLite: acquire and claim + release / a lease table without fence in the file",
        target: AtMost(2.0),
        pinnings: &[CrossCore],
        measure: |rounds| Box::pin(sqlite::cycle_vs_lease_table(rounds)),
    },
    Figure {
        name: "sqlite_fenced_cycle_vs_plain",
        what: "SQLite: acquire, begin, update, commit and release / the plain write",
        target: Reported,
        pinnings: &[CrossCore],
        measure: |rounds| Box::pin(sqlite::fenced_cycle_vs_plain(rounds)),
    },
    Figure {
        name: "sqlite_handoff_across_vs_within",
        what: "SQLite: hand-off to another process, which looks / among 8 waiters of one",
        target: Reported,
        pinnings: &[CrossCore],
        measure: |rounds| Box::pin(sqlite::handoff_across_vs_within(rounds)),
    },
    Figure {
        name: "sqlite_idle_waiters_cpu",
        what: "SQLite: the CPU time of 8 processes with a waiter each / the time",
        target: AtMost(0.1),
        pinnings: &[CrossCore],
        measure: |_| Box::pin(sqlite::cpu_of_waiters()),
    },
];
