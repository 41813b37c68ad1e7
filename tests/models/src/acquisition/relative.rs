//! States are one state if their differences cannot matter later.

use std::{
    cmp::{max, min},
    hash::{Hash, Hasher},
    time::Duration,
};

use lock_core::{
    FencingToken,
    backend::{Grant, Moment, Rebase, Reply, Wake},
};

use super::{
    Flaw, Machines, NOW, State, TICK,
    server::{Copy, Held, Server, Tables},
    state::{Client, Lie, Stage},
};
use crate::set::Set;

impl Tables {
    pub(super) fn rebase(&mut self, by: Rebase) {
        self.token -= by.tokens;
        if let Some(held) = &mut self.held {
            held.token -= by.tokens;
            held.ends = max(by.moment(held.ends), NOW);
        }
        if let Some((token, _)) = &mut self.mark {
            *token = token.saturating_sub(by.tokens);
        }
    }
}

impl Server {
    /// The whole state that the server has of a plain client.
    fn role(&self, client: usize) -> impl Hash {
        let place = (self.queue.iter()).position(|place| place.latest == client);
        let holds = self.tables.held.map(|held| held.acquisition) == Some(client);
        let Tables {
            ended,
            over,
            released,
            ..
        } = self.tables;
        let sets = [ended, over, released, self.aside, self.unreached];
        (place, holds, sets.map(|set| set.contains(client)))
    }

    fn rename(&mut self, name: impl Fn(usize) -> usize) {
        let rename = |set: &mut Set| *set = set.members().map(&name).collect();
        if let Some(held) = &mut self.tables.held {
            held.acquisition = name(held.acquisition);
            rename(&mut held.attempts);
        }
        for place in &mut self.queue {
            place.acquisition = name(place.acquisition);
            place.latest = name(place.latest);
            rename(&mut place.attempts);
        }
        let tables = &mut self.tables;
        [
            &mut tables.ended,
            &mut tables.over,
            &mut tables.released,
            &mut self.aside,
            &mut self.unreached,
        ]
        .into_iter()
        .for_each(rename);
    }
}

impl Client {
    fn rebase(&mut self, by: Rebase) {
        self.floor = self.floor.saturating_sub(by.tokens);
        if let Stage::GivingBack(token) | Stage::Background(token) = &mut self.stage {
            *token = token.saturating_sub(by.tokens);
        }
        let of_copy = |copy: Copy| match copy {
            Copy::Confirm(token) => Copy::Confirm(token - by.tokens),
            Copy::SendBack(token) => Copy::SendBack(token - by.tokens),
            Copy::Release { token, tombstone } => Copy::Release {
                token: token - by.tokens,
                tombstone,
            },
            copy => copy,
        };
        self.late = self.late.iter().map(|copy| of_copy(*copy)).collect();
        if let Some((copy, asked)) = &mut self.sent {
            (*copy, *asked) = (of_copy(*copy), by.moment(*asked));
        }
        if self.stage == Stage::New || matches!(self.stage, Stage::Over { .. }) {
            return;
        }
        self.machine.rebase(by);
        if let Stage::Holding(grant) = &mut self.stage {
            *grant = by.grant(*grant);
        }
        if let Some(Reply::Granted(grant) | Reply::Offered(grant)) = &mut self.reply {
            *grant = by.grant(*grant);
        }
        for wake in &mut self.wakes {
            *wake = by.wake(*wake);
        }
        self.wakes
            .sort_unstable_by_key(|wake| grant_of(*wake).map(|it| (it.token, it.lease.deadline())));
        self.wakes.dedup();
        (self.until, self.end) = (by.moment(self.until), by.moment(self.end));
    }

    /// The tokens that may still be compared.
    fn tokens(&self) -> impl Iterator<Item = u64> {
        let of_copy = |copy: Copy| match copy {
            Copy::Confirm(token) | Copy::Release { token, .. } | Copy::SendBack(token) => {
                Some(token)
            }
            Copy::Look { .. } | Copy::Cancel => None,
        };
        let of_stage = match self.stage {
            Stage::GivingBack(token) | Stage::Background(token) => (token > 0).then_some(token),
            Stage::Holding(grant) => Some(grant.token.get()),
            _ => None,
        };
        let of_reply = match self.reply {
            Some(Reply::Granted(grant) | Reply::Offered(grant)) => Some(grant.token.get()),
            _ => None,
        };
        let copies = self
            .late
            .iter()
            .copied()
            .chain(self.sent.map(|(copy, _)| copy));
        let wakes = self.wakes.iter().filter_map(|wake| grant_of(*wake));
        let machine = self.machine.tokens().into_iter().flatten();
        copies
            .filter_map(of_copy)
            .chain(of_stage)
            .chain(of_reply)
            .chain(wakes.map(|grant| grant.token.get()))
            .chain(machine.map(FencingToken::get))
    }
}

const fn grant_of(wake: Wake) -> Option<Grant> {
    match wake {
        Wake::Offered(grant) | Wake::Granted(grant) => Some(grant),
        _ => None,
    }
}

impl State {
    fn rebase(&mut self, by: Rebase) {
        self.server.tables.rebase(by);
        if let Some(database) = &mut self.database {
            database.rebase(by);
        }
        self.greatest = self.greatest.saturating_sub(by.tokens);
        for told in self.told.iter_mut().flatten() {
            *told = told.saturating_sub(by.tokens);
        }
        self.clients.iter_mut().for_each(|it| it.rebase(by));
    }

    fn all_tables(&mut self, mut forget: impl FnMut(&mut Tables)) {
        forget(&mut self.server.tables);
        if let Some(database) = &mut self.database {
            database.tables().into_iter().for_each(forget);
        }
    }

    fn tokens(&self) -> impl Iterator<Item = u64> {
        let of_clients = self.clients.iter().flat_map(Client::tokens);
        let held = self.server.tables.held.map(|held| held.token);
        let database = self.database.iter().flat_map(|database| database.tokens());
        of_clients.chain(held).chain(database)
    }
}

impl Machines {
    /// A tick: everything becomes older.
    pub(super) fn age(&self, state: &mut State) {
        // A push that is later than this has no other effect.
        let is_recent = |wake: &Wake| grant_of(*wake).is_none_or(|it| it.lease.deadline() > NOW);
        for it in &mut state.clients {
            it.wakes.retain(is_recent);
        }
        let lived = state.server.tables.living();
        state.rebase(Rebase {
            time: TICK,
            tokens: 0,
            now: NOW,
        });
        if let Some(held) = lived
            && state.server.tables.living().is_none()
        {
            if held.offered {
                let place = state.server.place(held.acquisition);
                let pushed = place.map(|place| place.latest);
                let pushed = pushed.or(held.attempts.members().last());
                pushed
                    .into_iter()
                    .for_each(|it| state.paused.insert(self.process(it)));
            }
            state.blame(Lie::PauseIsDear, held.unheard && !held.offered);
        }
    }

    /// Callers that wait alike have no order: of states that differ only in this order, one is
    /// kept.
    pub(super) fn sort(&self, state: &mut State) {
        if !self.has_alike() {
            return;
        }
        let key = |client: usize| {
            let mut hasher = std::hash::DefaultHasher::new();
            let observed = [state.by_release, state.paused].map(|set| set.contains(client));
            (&state.clients[client], state.server.role(client), observed).hash(&mut hasher);
            hasher.finish()
        };
        let alike = |client: usize| {
            let patience = self.callers[client].patience;
            self.callers.iter().position(|it| it.patience == patience)
        };
        let mut order: Vec<usize> = (0..self.callers.len()).collect();
        order.sort_by_cached_key(|client| (alike(*client), key(*client)));
        if order.is_sorted() {
            return;
        }
        let mut names = order.clone();
        for (new, old) in order.iter().enumerate() {
            names[*old] = new;
        }
        state.clients = order.iter().map(|it| state.clients[*it].clone()).collect();
        state.server.rename(|client| names[client]);
        for set in [&mut state.by_release, &mut state.paused] {
            *set = set.members().map(|client| names[client]).collect();
        }
    }

    /// Forgets copies that change nothing, tombstones that refuse nothing, and past tokens.
    pub(super) fn forget(&self, state: &mut State) {
        for client in 0..state.clients.len() {
            self.forget_copies(state, client);
        }
        for acquisition in 0..self.callers.len() {
            self.forget_acquisition(state, acquisition);
        }
        state.server.forget_others();
        let token = state.server.tables.token;
        let tokens = state
            .tokens()
            .fold(token, |least, token| min(least, token - 1));
        if tokens > 0 {
            state.rebase(Rebase {
                time: Duration::ZERO,
                tokens,
                now: NOW,
            });
        }
    }

    fn forget_copies(&self, state: &mut State, client: usize) {
        let flawed = self.is(Flaw::ReleaseNotCompared) || self.is(Flaw::ConfirmNotCompared);
        let kept = [
            Flaw::TombstoneGoesFirst,
            Flaw::QuietDespiteTombstone,
            Flaw::NeverVacant,
        ];
        let stays = !kept.iter().any(|flaw| self.is(*flaw));
        let acquisition = self.acquisition(client);
        let server = &mut state.server;
        let has = server.has(client);
        let tables = &server.tables;
        let ended = tables.ended.contains(client) || tables.over.contains(acquisition);
        let is_refused = ended && stays;
        let it = &mut state.clients[client];
        it.late.retain(|copy| match copy {
            Copy::Confirm(token) | Copy::Release { token, .. } | Copy::SendBack(token) => {
                flawed || tables.exactly(acquisition, *token).is_some()
            }
            Copy::Look { .. } | Copy::Cancel => has || !is_refused,
        });
        if let Some((Copy::Cancel | Copy::Release { .. }, asked)) = &mut it.sent {
            *asked = Moment::default();
        }
        if let Stage::Over { clean } = &mut it.stage
            && it.late.is_empty()
            && !has
        {
            *clean = true;
            state.all_tables(|tables| tables.ended.remove(client));
        }
    }

    /// Forgets the observations and the tombstones of an acquisition that is over.
    fn forget_acquisition(&self, state: &mut State, acquisition: usize) {
        let of_it = |client: &usize| self.acquisition(*client) == acquisition;
        let clients = || (0..self.callers.len()).filter(of_it);
        let is_over = |client: usize| matches!(state.clients[client].stage, Stage::Over { .. });
        if !clients().all(is_over) {
            return;
        }
        state.by_release.remove(acquisition);
        state.all_tables(|tables| tables.released.remove(acquisition));
        if let Some(told) = state.told[acquisition].take() {
            state.greatest = max(state.greatest, told);
        }
        // The next request would find that it has ended.
        let has_place = clients().any(|client| state.server.has_place(client));
        let has_ended = |held: Held| held.acquisition == acquisition && held.ends <= NOW;
        if !has_place && state.server.tables.held.is_some_and(has_ended) {
            self.settle(state);
            self.keep(state);
        }
        if clients().all(|client| state.clients[client].late.is_empty()) {
            state.all_tables(|tables| tables.over.remove(acquisition));
        }
    }
}
