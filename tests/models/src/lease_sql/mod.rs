//! Leases of PostgreSQL, as the functions of the database give them.
//!
//! A call is one step: it is under the mutex of the resource. A renewal is a step, too, for it
//! locks the row. Requests come late or twice, holders are paused, the server crashes, a standby
//! without the last commits is promoted. The store is in the same database.

mod actions;
mod database;
mod properties;
mod tests;

use database::{Lease, Outcome, Tables};

use crate::set::Set;

const TTL: u8 = 2;
const LAST: u8 = 4;
const HOLDERS: usize = 3;
const ATTEMPTS: usize = 4;
/// The acquisition of each attempt: the first one tries twice.
const OF: [usize; ATTEMPTS] = [0, 0, 1, 2];

/// One rule left out. Each of them must be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flaw {
    /// The lease is looked at before the mutex is taken.
    OldSnapshot,
    /// No release leaves a tombstone, although a copy of a request may come.
    NoTombstone,
    /// A tombstone goes before the `not_after` of the copies.
    TombstoneGoesFirst,
    /// A grant is answered before it is flushed.
    GrantNotFlushed,
    /// A renewal is answered before it is flushed.
    RenewalNotFlushed,
    /// Tokens are counted, without the clock.
    OnlyCounter,
    /// A renewal does not compare `expires_at`.
    RenewalRevives,
    /// The row of a free resource is deleted without a floor; tokens are counted.
    RowDeleted,
    /// A free resource is granted to a waiter that is not the first, or to one that just comes.
    OutOfTurn,
    /// A waiter asks when it is told, and never looks.
    NoLooks,
    /// A look is a sign of life of a waiter whose turn has come and that does not ask.
    IdleStaysFirst,
    /// A claim in the step of the grant does not ask whether a transaction is open.
    ClaimPasses,
}

/// What may happen, besides time and releases.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Bounds {
    /// The attempts that there are.
    attempts: Set,
    /// Requests may be lost, or come late or twice; clients may give up or die.
    network: bool,
    /// Clients may die, and notices be lost.
    deaths: bool,
    crashes: u8,
    promotions: u8,
    /// Grants are claimed in the same step, and holders have transactions in the store.
    transactions: bool,
    /// Waiters may go on looking and never ask again.
    idle: bool,
}

/// The model, its bounds, and which rule is left out.
#[derive(Clone, Debug)]
pub(crate) struct LeaseSql {
    bounds: Bounds,
    flaw: Option<Flaw>,
}

flawed!(LeaseSql);

/// Everything there is at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct State {
    now: u8,
    clock: u8,
    tables: Tables,
    flushed: Tables,
    standby: Tables,
    /// Attempts, by their tickets. Those that were silent for 3 s are passed over.
    queue: Vec<usize>,
    silent: Set,
    woken: Set,
    snapshots: [Option<Tables>; ATTEMPTS],
    clients: [Client; ATTEMPTS],
    /// Copies under way: of acquisitions and cancellations, by attempt; of releases, by holder.
    copies: Set,
    cancels: Set,
    late_cancels: Set,
    releases: Set,
    /// Holders of whose requests one had no answer.
    lost: Set,
    told: [Option<Told>; HOLDERS],
    left_tombstone: Set,
    forgotten: Set,
    crashes: u8,
    promotions: u8,
    /// A crash or a promotion has taken back tombstones or releases.
    forgot: bool,
    /// The greatest token that a holder was told, and the greatest that was claimed.
    greatest: u8,
    claimed: u8,
    /// Holders inside a transaction, perhaps paused in there.
    open: Set,
    stale: bool,
    repeated: bool,
    revived: bool,
    passed_over: bool,
    refused_release: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
enum Client {
    #[default]
    Out,
    Asking,
    /// It has a place in the queue, looks, and never asks again.
    Idle,
    Holding,
    Released,
    /// It gave up, and cancels until it has an answer.
    Left,
    Dead,
}

/// What a holder knows of its lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Told {
    token: u8,
    until: u8,
    claimed: bool,
}

impl LeaseSql {
    const fn within(bounds: Bounds) -> Self {
        Self { bounds, flaw: None }
    }

    /// Two acquisitions, one of which tries twice, and a network that delays.
    pub(crate) const fn late_requests() -> Self {
        let attempts = Set::all_below(3);
        Self::within(Bounds {
            attempts,
            network: true,
            ..NO_FAULTS
        })
    }

    /// Three acquisitions, whose clients may die. Late requests are in the other scenarios.
    pub(crate) fn three_wait() -> Self {
        let attempts = [0, 2, 3].into_iter().collect();
        Self::within(Bounds {
            attempts,
            deaths: true,
            ..NO_FAULTS
        })
    }

    /// Three acquisitions, whose clients may wait without ever taking the lease.
    pub(crate) fn some_idle() -> Self {
        let attempts = [0, 2, 3].into_iter().collect();
        Self::within(Bounds {
            attempts,
            idle: true,
            ..NO_FAULTS
        })
    }

    /// Two acquisitions; the server crashes twice.
    pub(crate) fn crash() -> Self {
        let attempts = [0, 2].into_iter().collect();
        Self::within(Bounds {
            attempts,
            network: true,
            crashes: 2,
            ..NO_FAULTS
        })
    }

    /// Three acquisitions; a standby is promoted.
    pub(crate) fn promotion() -> Self {
        let attempts = [0, 2, 3].into_iter().collect();
        Self::within(Bounds {
            attempts,
            promotions: 1,
            ..NO_FAULTS
        })
    }

    /// Two acquisitions with transactions in the store, whose grants are claimed in the same step;
    /// the server crashes once.
    pub(crate) fn transactions() -> Self {
        let attempts = [0, 2].into_iter().collect();
        Self::within(Bounds {
            attempts,
            network: true,
            crashes: 1,
            transactions: true,
            ..NO_FAULTS
        })
    }
}

const NO_FAULTS: Bounds = Bounds {
    attempts: Set::EMPTY,
    network: false,
    deaths: false,
    crashes: 0,
    promotions: 0,
    transactions: false,
    idle: false,
};
