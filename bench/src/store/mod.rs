//! Fenced transactions compared with the same transactions without a fence.

mod delay;
mod floor;
mod load;
mod mariadb;
mod postgres;
mod server;
mod single;
mod sqlite;
mod transactions;
mod triggers;
mod wal;

use crate::{
    figure::{
        Figure,
        Target::{AtMost, Reported},
    },
    pinning::Pinning::CrossCore,
};

/// All figures, in the order in which they are measured.
pub(crate) const FIGURES: &[Figure] = &[
    Figure {
        name: "pg_single_vs_plain",
        what: "a fenced update in one round trip / the same update, 1 client",
        target: AtMost(1.15),
        pinning: CrossCore,
        both_pinnings: true,
        measure: |setting| Box::pin(postgres::single(setting)),
    },
    Figure {
        name: "pg_single_vs_plain_32",
        what: "a fenced update in one round trip / the same update, 32 clients, a resource each",
        target: AtMost(1.05),
        pinning: CrossCore,
        both_pinnings: true,
        measure: |setting| Box::pin(postgres::single_of_many(setting)),
    },
    Figure {
        name: "pg_tx_vs_plain_rtt3ms",
        what: "begin + update + commit / the same unfenced, 1 client, round trips of 3 ms",
        target: AtMost(1.05),
        pinning: CrossCore,
        both_pinnings: false,
        measure: |setting| Box::pin(postgres::tx_over_network(setting)),
    },
    Figure {
        name: "pg_tx_vs_plain_loopback",
        what: "begin + update + commit / the same unfenced, 32 clients, a resource each",
        target: AtMost(1.20),
        pinning: CrossCore,
        both_pinnings: true,
        measure: |setting| Box::pin(postgres::tx_on_loopback(setting)),
    },
    Figure {
        name: "pg_hot_resource_vs_plain",
        what: "begin + update + commit / the same unfenced, 32 clients, one resource, a row each",
        target: AtMost(1.30),
        pinning: CrossCore,
        both_pinnings: true,
        measure: |setting| Box::pin(postgres::tx_on_hot_resource(setting)),
    },
    Figure {
        name: "pg_mark_read_vs_plain",
        what: "begin + read the mark + update + commit / the same without it, 32 clients",
        target: Reported,
        pinning: CrossCore,
        both_pinnings: true,
        measure: |setting| Box::pin(postgres::tx_with_mark(setting)),
    },
    Figure {
        name: "pg_single_mark_vs_plain",
        what: "an update of which the mark is a condition / the same without it, 32 clients",
        target: Reported,
        pinning: CrossCore,
        both_pinnings: true,
        measure: |setting| Box::pin(postgres::single_with_mark(setting)),
    },
    Figure {
        name: "pg_wal_bytes_vs_plain",
        what: "write-ahead log of begin + update + commit / the same unfenced, 1 client",
        target: AtMost(1.40),
        pinning: CrossCore,
        both_pinnings: false,
        measure: |setting| Box::pin(wal::bytes_vs_plain(setting)),
    },
    Figure {
        name: "pg_row_trigger_vs_bare",
        what: "an update of a row that is protected / the same update without triggers, 1 client",
        target: AtMost(1.6),
        pinning: CrossCore,
        both_pinnings: false,
        measure: |setting| Box::pin(triggers::row_vs_bare(setting)),
    },
    Figure {
        name: "mariadb_tx_vs_plain",
        what: "begin + update + commit / the same unfenced, 32 clients, a resource each",
        target: AtMost(2.0),
        pinning: CrossCore,
        both_pinnings: true,
        measure: |setting| Box::pin(mariadb::tx_vs_plain(setting)),
    },
    Figure {
        name: "sqlite_tx_vs_plain",
        what: "begin + update + commit / the same unfenced, 1 client, synchronous = FULL",
        target: AtMost(1.08),
        pinning: CrossCore,
        both_pinnings: false,
        measure: |setting| Box::pin(sqlite::tx_vs_plain(setting)),
    },
];
