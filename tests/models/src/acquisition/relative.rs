//! States that differ in nothing that can matter later are one state.

use std::{
    cmp::min,
    hash::{Hash, Hasher},
    time::Duration,
};

use lock_core::{
    FencingToken,
    backend::{Grant, Moment, Rebase, Reply, Wake},
};

use super::{Client, Flaw, Machines, NOW, Stage, State, TICK, server::Copy};

impl Client {
    fn rebase(&mut self, by: Rebase) {
        self.floor = self.floor.saturating_sub(by.tokens);
        if let Stage::GivingBack(token) | Stage::Background(token) = &mut self.stage {
            *token = token.saturating_sub(by.tokens);
        }
        let of_copy = |copy: Copy| match copy {
            Copy::Confirm(token) => Copy::Confirm(token - by.tokens),
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
            Copy::Confirm(token) | Copy::Release { token, .. } => Some(token),
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
    pub(super) fn rebase(&mut self, by: Rebase) {
        self.server.rebase(by);
        self.greatest = self.greatest.saturating_sub(by.tokens);
        self.clients.iter_mut().for_each(|it| it.rebase(by));
    }

    /// A tick: everything becomes older.
    pub(super) fn age(&mut self) {
        // A push that is later than this tells nothing else.
        let is_recent = |wake: &Wake| grant_of(*wake).is_none_or(|it| it.lease.deadline() > NOW);
        for it in &mut self.clients {
            it.wakes.retain(is_recent);
        }
        self.rebase(Rebase {
            time: TICK,
            tokens: 0,
            now: NOW,
        });
    }
}

/// The number that is a client's after the other two have changed places.
const fn swapped(client: usize, [one, other]: [usize; 2]) -> usize {
    match client {
        client if client == one => other,
        client if client == other => one,
        client => client,
    }
}

impl Machines {
    /// Two callers that wait alike have no order: of two states that differ in it, one is kept.
    pub(super) fn sort(&self, state: &mut State) {
        let [.., one, other] = self.callers else {
            return;
        };
        if one != other {
            return;
        }
        let last = self.callers.len() - 1;
        let names = [last - 1, last];
        let mut mirrored = state.clone();
        mirrored.clients.swap(last - 1, last);
        mirrored.server.rename(|client| swapped(client, names));
        let hash = |state: &State| {
            let mut hasher = std::hash::DefaultHasher::new();
            state.hash(&mut hasher);
            hasher.finish()
        };
        if hash(&mirrored) < hash(state) {
            *state = mirrored;
        }
    }

    /// Forgets copies that change nothing, tombstones that refuse nothing, and past tokens.
    pub(super) fn forget(&self, state: &mut State) {
        let flawed = self.is(Flaw::ReleaseNotCompared) || self.is(Flaw::ConfirmNotCompared);
        let State {
            server, clients, ..
        } = state;
        for (client, it) in clients.iter_mut().enumerate() {
            let has = server.has(client);
            let ended = server.ended.contains(client);
            let own = server.held.filter(|held| held.client == client);
            it.late.retain(|copy| match copy {
                Copy::Confirm(token) | Copy::Release { token, .. } => {
                    flawed || own.is_some_and(|held| held.token == *token)
                }
                Copy::Look { .. } => has || !ended,
                Copy::Cancel => has || !ended,
            });
            if let Some((Copy::Cancel | Copy::Release { .. }, asked)) = &mut it.sent {
                *asked = Moment::default();
            }
            if let Stage::Over { clean } = &mut it.stage {
                server.released.remove(client);
                server.by_release.remove(client);
                if it.late.is_empty() && !has {
                    *clean = true;
                    server.ended.remove(client);
                }
            }
            if !server.queue.contains(&client) {
                server.aside.remove(client);
            }
        }
        let held = server.held.map(|held| held.token);
        let live = clients.iter().flat_map(Client::tokens).chain(held);
        let tokens = live.fold(server.token, |least, token| min(least, token - 1));
        if tokens > 0 {
            state.rebase(Rebase {
                time: Duration::ZERO,
                tokens,
                now: NOW,
            });
        }
    }
}
