//! Fenced transactions compared with the same transactions without a fence.

mod load;
mod postgres;
mod sqlite;
mod transactions;

use self::load::{MANY_CLIENTS, ONE_CLIENT, ONE_RESOURCE};
pub(crate) use self::postgres::durable as durable_postgres;
use crate::{
    figure::{Figure, Target::AtMost},
    pinning::Pinning::{CrossCore, SameCore},
};

/// All figures, in the order in which they are measured.
pub(crate) const FIGURES: &[Figure] = &[
    Figure {
        name: "pg_single_vs_plain",
        what: "a fenced update in one round trip / the same update, 1 client",
        target: AtMost(1.15),
        pinnings: &[CrossCore, SameCore],
        measure: |rounds| Box::pin(postgres::single(rounds, ONE_CLIENT)),
    },
    Figure {
        name: "pg_single_vs_plain_32",
        what: "a fenced update in one round trip / the same update, 32 clients, a resource each",
        target: AtMost(1.05),
        pinnings: &[CrossCore, SameCore],
        measure: |rounds| Box::pin(postgres::single(rounds, MANY_CLIENTS)),
    },
    Figure {
        name: "pg_tx_vs_plain_rtt3ms",
        what: "begin + update + commit / the same unfenced, 1 client, round trips of about 3 ms",
        target: AtMost(1.05),
        pinnings: &[CrossCore],
        measure: |rounds| Box::pin(postgres::tx_over_network(rounds)),
    },
    Figure {
        name: "pg_tx_vs_plain_loopback",
        what: "begin + update + commit / the same unfenced, 32 clients, a resource each",
        target: AtMost(1.20),
        pinnings: &[CrossCore, SameCore],
        measure: |rounds| Box::pin(postgres::tx(rounds, MANY_CLIENTS)),
    },
    Figure {
        name: "pg_hot_resource_vs_plain",
        what: "begin + update + commit / the same unfenced, 32 clients, one resource, a row each",
        target: AtMost(1.30),
        pinnings: &[CrossCore, SameCore],
        measure: |rounds| Box::pin(postgres::tx(rounds, ONE_RESOURCE)),
    },
    Figure {
        name: "sqlite_tx_vs_plain",
        what: "begin + update + commit / the same unfenced, 1 client, synchronous = FULL",
        target: AtMost(1.08),
        pinnings: &[CrossCore],
        measure: |rounds| Box::pin(sqlite::tx_vs_plain(rounds)),
    },
];
