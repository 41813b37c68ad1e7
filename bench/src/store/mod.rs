//! Writes under the fence compared with the same writes without it, and with other protections.

pub(crate) mod cost;
mod load;
mod postgres;
pub(crate) mod protections;
mod sqlite;

pub(crate) use self::postgres::{durable as durable_postgres, over_network};
use self::{
    load::{MANY_CLIENTS, ONE_CLIENT, ONE_RESOURCE},
    postgres::{
        one_by_alternatives, one_by_other, one_by_other_over_network, one_by_other_saturated,
    },
    protections::Protection::{
        FencedStatement, FencedTransaction, ForUpdate, PlainStatement, PlainTransaction,
        VersionColumn,
    },
};
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
        measure: |rounds| {
            Box::pin(one_by_other(
                rounds,
                ONE_CLIENT,
                FencedStatement,
                PlainStatement,
            ))
        },
    },
    Figure {
        name: "pg_single_vs_plain_32",
        what: "a fenced update in one round trip / the same update, 32 clients, a resource each",
        target: AtMost(1.05),
        pinnings: &[CrossCore, SameCore],
        measure: |rounds| {
            Box::pin(one_by_other(
                rounds,
                MANY_CLIENTS,
                FencedStatement,
                PlainStatement,
            ))
        },
    },
    Figure {
        name: "pg_single_vs_plain_saturated",
        what: "a fenced update in one round trip / the same update, server busy, no disk waits",
        target: AtMost(1.7),
        pinnings: &[CrossCore, SameCore],
        measure: |rounds| {
            Box::pin(one_by_other_saturated(
                rounds,
                FencedStatement,
                PlainStatement,
            ))
        },
    },
    Figure {
        name: "pg_single_vs_best_32",
        what: "a fenced update / the best of a version column, FOR UPDATE, an advisory lock",
        target: AtMost(1.5),
        pinnings: &[CrossCore, SameCore],
        measure: |rounds| Box::pin(one_by_alternatives(rounds, MANY_CLIENTS, FencedStatement)),
    },
    Figure {
        name: "pg_single_vs_version_rtt3ms",
        what: "a fenced update / one that compares a version, round trips of 3 ms",
        target: AtMost(1.05),
        pinnings: &[CrossCore],
        measure: |rounds| {
            Box::pin(one_by_other_over_network(
                rounds,
                FencedStatement,
                VersionColumn,
            ))
        },
    },
    Figure {
        name: "pg_tx_vs_plain_rtt3ms",
        what: "begin + update + commit / the same unfenced, 1 client, round trips of 3 ms",
        target: AtMost(1.05),
        pinnings: &[CrossCore],
        measure: |rounds| {
            Box::pin(one_by_other_over_network(
                rounds,
                FencedTransaction,
                PlainTransaction,
            ))
        },
    },
    Figure {
        name: "pg_tx_vs_for_update_rtt3ms",
        what: "begin + update + commit / the same with a FOR UPDATE in between, one trip more",
        target: AtMost(0.85),
        pinnings: &[CrossCore],
        measure: |rounds| {
            Box::pin(one_by_other_over_network(
                rounds,
                FencedTransaction,
                ForUpdate,
            ))
        },
    },
    Figure {
        name: "pg_tx_vs_plain_loopback",
        what: "begin + update + commit / the same unfenced, 32 clients, a resource each",
        target: AtMost(1.20),
        pinnings: &[CrossCore, SameCore],
        measure: |rounds| {
            Box::pin(one_by_other(
                rounds,
                MANY_CLIENTS,
                FencedTransaction,
                PlainTransaction,
            ))
        },
    },
    Figure {
        name: "pg_hot_resource_vs_plain",
        what: "begin + update + commit / the same unfenced, 32 clients, one resource, a row each",
        target: AtMost(1.30),
        pinnings: &[CrossCore, SameCore],
        measure: |rounds| {
            Box::pin(one_by_other(
                rounds,
                ONE_RESOURCE,
                FencedTransaction,
                PlainTransaction,
            ))
        },
    },
    Figure {
        name: "sqlite_tx_vs_plain",
        what: "begin + update + commit / the same unfenced, 1 client, synchronous = FULL",
        target: AtMost(1.08),
        pinnings: &[CrossCore],
        measure: |rounds| Box::pin(sqlite::tx_vs_plain(rounds)),
    },
];
