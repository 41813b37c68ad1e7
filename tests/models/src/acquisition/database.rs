//! The faults of a database whose functions are the lock service, renewals, and claims in a store
//! that is in the same database.

use lock_core::backend::{Grant, Lease, Rebase};

use super::{
    Flaw, Machines, May, NOW, State, TTL,
    server::Tables,
    state::{Lie, Stage},
};

/// The rest of a database. A crash takes its tables back to the last flush, and a promotion to the
/// state that the standby has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Database {
    pub(super) flushed: Tables,
    pub(super) standby: Tables,
    /// Two grants are further apart than two ticks of this clock. No fault sets this clock back.
    pub(super) clock: u64,
    /// Open transactions of holders in the store, perhaps paused: the client and its token.
    pub(super) open: Vec<(usize, u64)>,
    /// The greatest token that was claimed.
    pub(super) claimed: u64,
    /// A crash or a promotion has taken back tombstones or releases.
    pub(super) forgot: bool,
    pub(super) was_promoted: bool,
}

/// One step of the database, or of a holder in the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// The log is flushed.
    Flush,
    /// The standby gets the flushed state.
    Replicate,
    /// The server stops at once, and starts.
    Crash,
    /// The standby takes the place of the server.
    Promote,
    /// The row of a free resource is deleted.
    Delete,
    /// A holder claims its token in the store.
    Claim(usize),
    /// The store accepts a transaction of a holder, whether or not its lease has ended.
    Begin(usize),
    Commit(usize),
    Abort(usize),
}

impl Database {
    pub(super) fn tables(&mut self) -> [&mut Tables; 2] {
        [&mut self.flushed, &mut self.standby]
    }

    /// The tokens that may still be compared.
    pub(super) fn tokens(&self) -> impl Iterator<Item = u64> {
        let tables = [&self.flushed, &self.standby];
        let held = tables.map(|it| it.held.map(|held| held.token));
        // A counter may go on from any of these.
        let counters = [self.flushed.token, self.standby.token, self.clock];
        let open = self.open.iter().map(|(_, token)| *token);
        open.chain(held.into_iter().flatten())
            .chain(counters.map(|counter| counter + 1))
    }

    pub(super) fn rebase(&mut self, by: Rebase) {
        self.tables().into_iter().for_each(|it| it.rebase(by));
        self.clock -= by.tokens;
        self.claimed = self.claimed.saturating_sub(by.tokens);
        self.open
            .iter_mut()
            .for_each(|(_, token)| *token -= by.tokens);
    }
}

impl Machines {
    /// The next token.
    pub(super) fn draw(&self, state: &mut State) -> u64 {
        let tables = &mut state.server.tables;
        let repeats = self.is(Flaw::TokenRepeats) && tables.token > 0;
        tables.token += u64::from(!repeats);
        if let Some(database) = &mut state.database {
            database.clock += 1;
            if !self.is(Flaw::OnlyCounter) && !self.is(Flaw::RowDeleted) {
                tables.token = std::cmp::max(tables.token, database.clock);
            }
        }
        tables.token
    }

    /// A grant is flushed before it is answered, and may be claimed in the same step.
    pub(super) fn granted_by_database(&self, state: &mut State, client: usize, token: u64) {
        if !self.is(Flaw::GrantNotFlushed) {
            flush(state);
        }
        if self.may(May::Transact) {
            let is_free = state.database.as_ref().is_some_and(|it| it.open.is_empty());
            let claims = is_free || self.is(Flaw::ClaimPasses);
            if claims {
                self.claim(state, client, token);
            }
        }
    }

    fn claim(&self, state: &mut State, client: usize, token: u64) {
        let mark = &mut state.server.tables.mark;
        if mark.is_some_and(|(last, _)| last >= token) {
            return;
        }
        *mark = Some((token, self.acquisition(client)));
        if let Some(database) = &mut state.database {
            database.claimed = std::cmp::max(database.claimed, token);
        }
        flush(state);
    }

    /// A holder renews. The request may arrive after the end of the lease.
    pub(super) fn renew(&self, state: &mut State, client: usize) {
        let (acquisition, token) = (self.acquisition(client), state.clients[client].token());
        let tables = &mut state.server.tables;
        let lives = tables.living().is_some();
        let Some(held) = &mut tables.held else { return };
        if (held.acquisition, held.token) != (acquisition, token) {
            return;
        }
        if !lives && !self.is(Flaw::RenewalRevives) {
            return;
        }
        held.ends = NOW + TTL;
        if !self.is(Flaw::RenewalNotFlushed) {
            flush(state);
        }
        state.blame(Lie::Revived, !lives);
        if let Stage::Holding(grant) = &mut state.clients[client].stage {
            *grant = Grant::new(grant.token, Lease::counted_from(NOW, TTL));
        }
    }

    pub(super) fn possible_for_database(&self, state: &State, steps: &mut Vec<Step>) {
        let Some(database) = &state.database else {
            return;
        };
        let tables = &state.server.tables;
        let (crashes, promotes) = (self.may(May::Crash), self.may(May::Promote));
        if !state.had_accident {
            if crashes {
                steps.push(Step::Crash);
            }
            if promotes {
                steps.push(Step::Promote);
                if database.standby != database.flushed {
                    steps.push(Step::Replicate);
                }
            }
            if (crashes || promotes) && database.flushed != *tables {
                steps.push(Step::Flush);
            }
        }
        if self.is(Flaw::RowDeleted) && tables.living().is_none() && tables.token > 0 {
            steps.push(Step::Delete);
        }
        if !self.may(May::Transact) {
            return;
        }
        for (client, it) in state.clients.iter().enumerate() {
            let is_open = |(other, _): &(usize, u64)| *other == client;
            if database.open.iter().any(is_open) {
                steps.extend([Step::Commit(client), Step::Abort(client)]);
            } else if matches!(it.stage, Stage::Holding(_)) {
                // A claim waits for transactions.
                if tables.mark.is_none_or(|(last, _)| last < it.token()) {
                    if database.open.is_empty() {
                        steps.push(Step::Claim(client));
                    }
                } else if tables.mark == Some((it.token(), self.acquisition(client))) {
                    steps.push(Step::Begin(client));
                }
            }
        }
    }

    pub(super) fn step_of_database(&self, state: &mut State, step: Step) {
        let Some(database) = &mut state.database else {
            return;
        };
        match step {
            Step::Flush => database.flushed = state.server.tables.clone(),
            Step::Replicate => database.standby = database.flushed.clone(),
            Step::Crash => {
                let to = database.flushed.clone();
                go_back(state, to);
            }
            Step::Promote => {
                let to = database.standby.clone();
                database.was_promoted = true;
                // Later claims are lost, with all that was written under them.
                database.claimed = to.mark.map_or(0, |(token, _)| token);
                go_back(state, to);
            }
            Step::Delete => {
                (state.server.tables.token, state.server.tables.held) = (0, None);
                database.flushed = state.server.tables.clone();
            }
            Step::Claim(client) => {
                let token = state.clients[client].token();
                self.claim(state, client, token);
            }
            Step::Begin(client) => {
                database.open.push((client, state.clients[client].token()));
                database.open.sort_unstable();
            }
            Step::Commit(client) | Step::Abort(client) => {
                let claimed = database.claimed;
                let its = |(other, _): &mut (usize, u64)| *other == client;
                let ended = database.open.extract_if(.., its).next();
                if let (Step::Commit(_), Some((_, token))) = (step, ended) {
                    flush(state);
                    state.blame(Lie::Stale, token < claimed);
                }
            }
        }
    }
}

fn flush(state: &mut State) {
    if let Some(database) = &mut state.database {
        database.flushed = state.server.tables.clone();
    }
}

/// The server is at an earlier state of its tables again. The queue is not logged.
fn go_back(state: &mut State, to: Tables) {
    state.had_accident = true;
    let all = |tables: &Tables| {
        let holder = tables.held.map(|held| held.acquisition);
        (tables.ended, tables.over, holder)
    };
    let forgot = all(&to) != all(&state.server.tables);
    state.server.queue.clear();
    state.server.tables = to.clone();
    if let Some(database) = &mut state.database {
        database.forgot |= forgot;
        database.flushed = to;
        database.open.clear();
    }
    state.clients.iter_mut().for_each(|it| it.snapshot = None);
}
