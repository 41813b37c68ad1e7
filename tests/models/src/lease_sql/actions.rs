//! What clients, the network, time and faults may do.

use stateright::{Model, Property};

use super::{ATTEMPTS, Client, Flaw, HOLDERS, LAST, Lease, LeaseSql, OF, Outcome, State, Told};
use crate::set::Set;

/// What may happen. Clients are named by their attempt, except that a lease is a holder's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Time goes by.
    Pass,
    /// A client asks, for the first time or because it may be its turn, and is answered.
    Ask(usize),
    /// It asks, and nothing comes back. A copy may come at any time.
    Lose(usize),
    /// A copy of a request to acquire comes.
    Copy(usize),
    /// No copy can come any more: its `not_after` is over.
    Late(usize),
    /// A statement that has an older snapshot begins to wait for the mutex.
    Snapshot(usize),
    /// A client ends its attempt, before a grant or when its lease has run out.
    Leave(usize),
    /// A client is gone without a word.
    Die(usize),
    /// A cancellation comes, and is answered.
    Cancel(usize),
    /// A second copy of it comes.
    CancelAgain(usize),
    /// A client that is gone, or whose turn has come and that does not ask, was silent for 3 s.
    Silence(usize),
    /// A waiter goes on looking, and does not ask any more.
    Idle(usize),
    /// A notice is lost.
    LoseNotice(usize),
    /// A holder renews.
    Renew(usize),
    /// The same, and the answer comes a step of time later.
    RenewSlowly(usize),
    /// A holder claims its token in the store.
    Claim(usize),
    /// The store lets a transaction of a holder in, whether or not its lease has ended.
    Begin(usize),
    /// It commits.
    Commit(usize),
    /// It is rolled back, or its session is ended.
    Abort(usize),
    /// A holder releases.
    Release(usize),
    /// The same request comes again.
    ReleaseAgain(usize),
    /// The tombstones of an acquisition are deleted.
    Forget(usize),
    /// The row of a free resource is deleted.
    Delete,
    /// What was written is flushed by and by.
    Flush,
    /// The standby gets what was flushed.
    Replicate,
    /// The server stops at once, and starts.
    Crash,
    /// The standby takes its place.
    Promote,
}

impl LeaseSql {
    /// A client claims with the token that it was told.
    fn claim_told(state: &mut State, holder: usize) -> Option<()> {
        let told = state.told[holder]?;
        if Self::claim(state, holder, told.token) {
            state.told[holder] = Some(Told {
                claimed: true,
                ..told
            });
        }
        Some(())
    }

    /// Whether this client would ask now.
    pub(super) fn may_ask(&self, state: &State, attempt: usize) -> bool {
        match state.clients[attempt] {
            // The second try begins when the first has ended.
            Client::Out => attempt != 1 || state.clients[0] == Client::Left,
            Client::Asking => {
                let looks = !self.is(Flaw::NoLooks) || !state.queue.contains(&attempt);
                state.woken.contains(attempt) || looks && Self::look(state, attempt)
            }
            _ => false,
        }
    }

    /// Whether a waiter will be passed over: looks of its process are signs of life of those only
    /// that still wait there, and whose turn has not come.
    pub(super) fn may_fall_silent(&self, state: &State, attempt: usize) -> bool {
        let silent = match state.clients[attempt] {
            Client::Left | Client::Dead => true,
            Client::Idle => !self.is(Flaw::IdleStaysFirst) && Self::look(state, attempt),
            _ => false,
        };
        state.queue.contains(&attempt) && silent && !state.silent.contains(attempt)
    }

    fn of_client(&self, state: &State, attempt: usize, actions: &mut Vec<Action>) {
        let network = self.bounds.network;
        let client = state.clients[attempt];
        if self.may_ask(state, attempt) {
            actions.push(Action::Ask(attempt));
            if network && !state.lost.contains(OF[attempt]) {
                actions.push(Action::Lose(attempt));
            }
            if self.is(Flaw::OldSnapshot) && state.snapshots[attempt].is_none() {
                actions.push(Action::Snapshot(attempt));
            }
        }
        if state.copies.contains(attempt) {
            actions.extend([Action::Copy(attempt), Action::Late(attempt)]);
        }
        let over = state.told[OF[attempt]].is_none_or(|told| told.until <= state.now);
        if network && client == Client::Asking || client == Client::Holding && over {
            actions.push(Action::Leave(attempt));
        }
        let deaths = network || self.bounds.deaths;
        if deaths && client == Client::Asking {
            actions.push(Action::Die(attempt));
        }
        if state.cancels.contains(attempt) {
            actions.push(Action::Cancel(attempt));
        }
        if state.late_cancels.contains(attempt) {
            actions.push(Action::CancelAgain(attempt));
        }
        if self.may_fall_silent(state, attempt) {
            actions.push(Action::Silence(attempt));
        }
        if self.bounds.idle && client == Client::Asking && state.queue.contains(&attempt) {
            actions.push(Action::Idle(attempt));
        }
        if deaths && state.woken.contains(attempt) {
            actions.push(Action::LoseNotice(attempt));
        }
    }

    fn of_holder(&self, state: &State, holder: usize, actions: &mut Vec<Action>) {
        let copies = (0..ATTEMPTS).any(|one| OF[one] == holder && state.copies.contains(one));
        let tables = &state.tables;
        let attempts = (0..ATTEMPTS).any(|one| OF[one] == holder && tables.ended.contains(one));
        if (tables.over.contains(holder) || attempts)
            && (!copies || self.is(Flaw::TombstoneGoesFirst))
        {
            actions.push(Action::Forget(holder));
        }
        if state.releases.contains(holder) {
            actions.push(Action::ReleaseAgain(holder));
        }
        if state.open.contains(holder) {
            actions.extend([Action::Commit(holder), Action::Abort(holder)]);
        }
        let Some(told) = state.told[holder] else {
            return;
        };
        let holds = |one: usize| OF[one] == holder && state.clients[one] == Client::Holding;
        if !(0..ATTEMPTS).any(holds) {
            return;
        }
        if told.until > state.now {
            actions.push(Action::Renew(holder));
            if state.now < LAST {
                actions.push(Action::RenewSlowly(holder));
            }
        }
        // It waits for transactions.
        if !told.claimed && state.open == Set::EMPTY {
            actions.push(Action::Claim(holder));
        }
        let is_out = !state.open.contains(holder);
        if self.bounds.transactions && is_out && state.writes(holder).is_some() {
            actions.push(Action::Begin(holder));
        }
        actions.push(Action::Release(holder));
    }

    /// A client asks. Nobody hears the answer to a copy.
    fn ask(&self, state: &mut State, attempt: usize) {
        state.clients[attempt] = Client::Asking;
        state.woken.remove(attempt);
        match self.acquire(state, attempt) {
            Outcome::Granted {
                token,
                until,
                claimed,
            } => {
                state.clients[attempt] = Client::Holding;
                // Another attempt of the same acquisition gets the same lease.
                let known = state.told[OF[attempt]].is_some_and(|told| told.token == token);
                state.repeated |= !known && token <= state.greatest;
                state.greatest = state.greatest.max(token);
                state.told[OF[attempt]] = Some(Told {
                    token,
                    until,
                    claimed,
                });
            }
            Outcome::Released => state.clients[attempt] = Client::Released,
            Outcome::Waiting => {}
        }
    }

    fn leave(&self, state: &mut State, attempt: usize) {
        state.clients[attempt] = Client::Left;
        state.woken.remove(attempt);
        state.snapshots[attempt] = None;
        state.cancels.insert(attempt);
        state.lost.insert(OF[attempt]);
    }

    fn release_lease(&self, state: &mut State, holder: usize) -> Option<()> {
        let told = state.told[holder]?;
        let tombstone = state.lost.contains(holder) && !self.is(Flaw::NoTombstone);
        let released = Self::release(state, holder, told.token, tombstone);
        for (attempt, client) in state.clients.iter_mut().enumerate() {
            if OF[attempt] == holder && *client == Client::Holding {
                *client = Client::Released;
            }
        }
        if tombstone && released {
            state.left_tombstone.insert(holder);
        }
        if self.bounds.network {
            state.releases.insert(holder);
        }
        Some(())
    }

    fn renew_lease(&self, state: &mut State, holder: usize, asked: u8) -> Option<()> {
        let told = state.told[holder]?;
        let length = super::TTL;
        if self.renew(state, holder, told.token).is_some() {
            let until = told.until.max(asked + length);
            state.told[holder] = Some(Told { until, ..told });
        }
        Some(())
    }

    fn release_again(state: &mut State, holder: usize) -> Option<()> {
        let token = state.told[holder]?.token;
        state.releases.remove(holder);
        let tombstone = state.left_tombstone.contains(holder);
        let released = Self::release(state, holder, token, tombstone);
        let answerable = tombstone && !state.forgot && !state.forgotten.contains(holder);
        state.refused_release |= answerable && !released;
        Some(())
    }
}

impl Model for LeaseSql {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State::default()]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if state.now < LAST {
            actions.push(Action::Pass);
        }
        for attempt in self.bounds.attempts.members() {
            self.of_client(state, attempt, actions);
        }
        for holder in 0..HOLDERS {
            self.of_holder(state, holder, actions);
        }
        let lease = state.tables.lease;
        let free = lease.holder.is_none() || lease.expires_at <= state.now;
        if self.is(Flaw::RowDeleted) && free && lease.token > 0 {
            actions.push(Action::Delete);
        }
        let (crashes, promotes) = (
            state.crashes < self.bounds.crashes,
            state.promotions < self.bounds.promotions,
        );
        if crashes {
            actions.push(Action::Crash);
        }
        if promotes {
            actions.push(Action::Promote);
            if state.standby != state.flushed {
                actions.push(Action::Replicate);
            }
        }
        if (crashes || promotes) && state.flushed != state.tables {
            actions.push(Action::Flush);
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Action::Pass => state.now += 1,
            Action::Ask(attempt) => self.ask(&mut state, attempt),
            Action::Lose(attempt) => {
                state.clients[attempt] = Client::Asking;
                state.woken.remove(attempt);
                state.copies.insert(attempt);
                state.lost.insert(OF[attempt]);
            }
            Action::Copy(attempt) => {
                state.copies.remove(attempt);
                self.acquire(&mut state, attempt);
            }
            Action::Late(attempt) => state.copies.remove(attempt),
            Action::Snapshot(attempt) => {
                state.snapshots[attempt] = Some(state.tables.clone());
            }
            Action::Leave(attempt) => self.leave(&mut state, attempt),
            Action::Die(attempt) => state.clients[attempt] = Client::Dead,
            Action::Cancel(attempt) => {
                state.cancels.remove(attempt);
                state.late_cancels.insert(attempt);
                Self::cancel(&mut state, attempt);
            }
            Action::CancelAgain(attempt) => {
                state.late_cancels.remove(attempt);
                Self::cancel(&mut state, attempt);
            }
            Action::Silence(attempt) => state.silent.insert(attempt),
            Action::Idle(attempt) => state.clients[attempt] = Client::Idle,
            Action::LoseNotice(attempt) => state.woken.remove(attempt),
            Action::Renew(holder) => self.renew_lease(&mut state, holder, last.now)?,
            Action::RenewSlowly(holder) => {
                state.now += 1;
                self.renew_lease(&mut state, holder, last.now)?;
            }
            Action::Claim(holder) => Self::claim_told(&mut state, holder)?,
            Action::Begin(holder) => state.open.insert(holder),
            Action::Commit(holder) => {
                state.open.remove(holder);
                state.stale |= state.told[holder]?.token < state.claimed;
                state.flushed = state.tables.clone();
            }
            Action::Abort(holder) => state.open.remove(holder),
            Action::Release(holder) => self.release_lease(&mut state, holder)?,
            Action::ReleaseAgain(holder) => Self::release_again(&mut state, holder)?,
            Action::Forget(holder) => Self::forget(&mut state, holder),
            Action::Delete => {
                state.tables.lease = Lease::default();
                state.flushed = state.tables.clone();
            }
            Action::Flush => state.flushed = state.tables.clone(),
            Action::Replicate => state.standby = state.flushed.clone(),
            Action::Crash => {
                state.crashes += 1;
                Self::go_back(&mut state, last.flushed.clone());
            }
            Action::Promote => {
                state.promotions += 1;
                Self::go_back(&mut state, last.standby.clone());
                // What was claimed after that is lost, with all that was written under it.
                state.claimed = state.tables.mark.map_or(0, |(token, _)| token);
            }
        }
        // Nobody is told anything that waits for nothing.
        let waits = |one: usize| state.clients[one] == Client::Asking;
        let woken: Set = state.woken.members().filter(|one| waits(*one)).collect();
        state.woken = woken;
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        super::properties::all()
    }
}
