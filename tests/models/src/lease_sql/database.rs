//! What the functions of the database do. Each is one step, under the mutex of the resource.

use super::{Flaw, HOLDERS, LeaseSql, OF, State, TTL};
use crate::set::Set;

/// What a crash takes back to the last flush, and a promotion to what the standby has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Tables {
    pub(super) lease: Lease,
    /// Tombstones of attempts, and of whole acquisitions.
    pub(super) ended: Set,
    pub(super) over: Set,
    /// Those tombstones that a release has left.
    pub(super) released: Set,
    /// The token and the holder that the store has seen last.
    pub(super) mark: Option<(u8, usize)>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Lease {
    pub(super) token: u8,
    pub(super) holder: Option<usize>,
    pub(super) expires_at: u8,
    pub(super) attempts: Set,
}

impl Lease {
    fn free(&mut self) {
        (self.holder, self.expires_at, self.attempts) = (None, 0, Set::EMPTY);
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Granted { token: u8, until: u8, claimed: bool },
    Waiting,
    Released,
}

impl LeaseSql {
    /// `lease_now`: a lease that ran out is ended.
    fn lease_now(state: &mut State) {
        let (now, tables) = (state.now, &mut state.tables);
        if let Some(holder) = tables.lease.holder
            && tables.lease.expires_at <= now
        {
            tables.over.insert(holder);
            tables.lease.free();
        }
    }

    /// `first_waiter`: those before it who are silent are dropped.
    fn first_waiter(state: &mut State) -> Option<usize> {
        while let Some(first) = state.queue.first().copied() {
            if !state.silent.contains(first) {
                return Some(first);
            }
            state.queue.remove(0);
            state.silent.remove(first);
        }
        None
    }

    fn wake(state: &mut State) {
        if let Some(first) = Self::first_waiter(state) {
            state.woken.insert(first);
        }
    }

    fn leave_queue(state: &mut State, attempt: usize) {
        state.queue.retain(|waiter| *waiter != attempt);
        state.silent.remove(attempt);
    }

    pub(super) fn acquire(&self, state: &mut State, attempt: usize) -> Outcome {
        let holder = OF[attempt];
        Self::lease_now(state);
        // What an older snapshot shows of the lease and of the tombstones.
        let (seen, ended, over) = match state.snapshots[attempt].take() {
            Some(old) => (old.lease, old.ended, old.over),
            None => (state.tables.lease, state.tables.ended, state.tables.over),
        };
        if ended.contains(attempt) || over.contains(holder) {
            Self::leave_queue(state, attempt);
            return Outcome::Released;
        }
        let first = Self::first_waiter(state);
        let turn = first.is_none_or(|first| OF[first] == holder) || self.is(Flaw::OutOfTurn);
        if seen.holder == Some(holder) {
            state.tables.lease.attempts.insert(attempt);
        } else if seen.holder.is_none() && turn {
            state.passed_over |= first.is_some_and(|first| OF[first] != holder);
            self.grant(state, attempt);
        } else {
            if !state.queue.contains(&attempt) {
                state.queue.push(attempt);
            }
            state.silent.remove(attempt);
            return Outcome::Waiting;
        }
        Self::leave_queue(state, attempt);
        if !self.is(Flaw::GrantNotFlushed) {
            state.flushed = state.tables.clone();
        }
        let Lease {
            token,
            expires_at: until,
            ..
        } = state.tables.lease;
        let claimed = self.bounds.transactions && self.claim_now(state, holder, token);
        Outcome::Granted {
            token,
            until,
            claimed,
        }
    }

    fn grant(&self, state: &mut State, attempt: usize) {
        // Two grants are further apart than two ticks of the clock, which nothing takes back.
        state.clock += 1;
        let counter = state.tables.lease.token + 1;
        let only_counter = self.is(Flaw::OnlyCounter) || self.is(Flaw::RowDeleted);
        state.tables.lease = Lease {
            token: if only_counter {
                counter
            } else {
                counter.max(state.clock)
            },
            holder: Some(OF[attempt]),
            expires_at: state.now + TTL,
            attempts: Set::of(attempt),
        };
    }

    /// A step of its own, which locks the row only. The end of the lease, if it is renewed.
    pub(super) fn renew(&self, state: &mut State, holder: usize, token: u8) -> Option<u8> {
        let lease = &mut state.tables.lease;
        let lives = lease.expires_at > state.now;
        if lease.holder != Some(holder) || lease.token != token {
            return None;
        }
        if !lives && !self.is(Flaw::RenewalRevives) {
            return None;
        }
        state.revived |= !lives;
        lease.expires_at = state.now + TTL;
        if !self.is(Flaw::RenewalNotFlushed) {
            state.flushed = state.tables.clone();
        }
        Some(state.now + TTL)
    }

    /// Whether the answer is `released`.
    pub(super) fn release(state: &mut State, holder: usize, token: u8, tombstone: bool) -> bool {
        let (now, tables) = (state.now, &mut state.tables);
        let lease = &mut tables.lease;
        if lease.holder != Some(holder) || lease.token != token || lease.expires_at <= now {
            return tables.released.contains(holder);
        }
        lease.free();
        if tombstone {
            tables.over.insert(holder);
            tables.released.insert(holder);
        }
        Self::wake(state);
        true
    }

    pub(super) fn cancel(state: &mut State, attempt: usize) {
        Self::lease_now(state);
        state.tables.ended.insert(attempt);
        Self::leave_queue(state, attempt);
        let lease = &mut state.tables.lease;
        if lease.holder == Some(OF[attempt]) && lease.attempts.contains(attempt) {
            lease.attempts.remove(attempt);
            if lease.attempts.is_empty() {
                lease.free();
                Self::wake(state);
            }
        } else if lease.holder.is_none() {
            Self::wake(state);
        }
    }

    /// `look`: whether this attempt should ask again. It should, too, if it is not in the queue.
    pub(super) fn look(state: &State, attempt: usize) -> bool {
        let mut queue = state.queue.iter();
        let Some(place) = queue.position(|waiter| *waiter == attempt) else {
            return true;
        };
        let lease = state.tables.lease;
        let is_before = |other: &usize| OF[*other] != OF[attempt] && !state.silent.contains(*other);
        let first = !state.queue[..place].iter().any(is_before);
        let free = lease.holder.is_none() || lease.expires_at <= state.now;
        lease.holder == Some(OF[attempt]) || first && free
    }

    /// The claim in the step of the grant, which waits for nobody.
    fn claim_now(&self, state: &mut State, holder: usize, token: u8) -> bool {
        let is_free = state.open == Set::EMPTY || self.is(Flaw::ClaimPasses);
        is_free && Self::claim(state, holder, token)
    }

    /// The claim in the store, which is this database.
    pub(super) fn claim(state: &mut State, holder: usize, token: u8) -> bool {
        let mark = state.tables.mark;
        if mark.is_some_and(|(last, by)| token < last || token == last && by != holder) {
            return false;
        }
        state.tables.mark = Some((token, holder));
        state.claimed = state.claimed.max(token);
        state.flushed = state.tables.clone();
        true
    }

    /// The server is at an earlier state of its tables again. The queue is unlogged.
    pub(super) fn go_back(state: &mut State, to: Tables) {
        let all = |tables: &Tables| (tables.ended, tables.over, tables.lease.holder);
        state.forgot |= all(&to) != all(&state.tables);
        state.tables = to.clone();
        state.flushed = to;
        state.queue.clear();
        (state.silent, state.woken) = (Set::EMPTY, Set::EMPTY);
        state.open = Set::EMPTY;
        state.snapshots = Default::default();
    }

    /// The tombstones of an acquisition go.
    pub(super) fn forget(state: &mut State, holder: usize) {
        for tables in [&mut state.tables, &mut state.flushed] {
            tables.over.remove(holder);
            tables.released.remove(holder);
            let of_it = (0..OF.len()).filter(|attempt| OF[*attempt] == holder);
            of_it.for_each(|attempt| tables.ended.remove(attempt));
        }
        debug_assert!(holder < HOLDERS);
        state.forgotten.insert(holder);
    }
}
