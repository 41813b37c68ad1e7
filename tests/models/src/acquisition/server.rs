//! A lock service by the contract of `lock_core::backend`, for one resource.

use std::time::Duration;

use lock_core::{
    ErrorKind, FencingToken, Outcome, Released,
    backend::{Failure, Grant, Lease, Moment, Rebase, Reply, Request, Wake},
};

use super::{Flaw, Lie, Machines, NOW, OFFER, State, TICK, TTL, Waking, ticks};
use crate::set::Set;

/// The content of a client's request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Copy {
    Look { queue: bool },
    Confirm(u64),
    Release { token: u64, tombstone: bool },
    Cancel,
}

impl Copy {
    pub(super) const fn of(request: Request, token: u64) -> Self {
        match request {
            Request::Look { queue } => Self::Look { queue },
            Request::Confirm(offer) => Self::Confirm(offer.token.get()),
            // A release without a lease is a cancel.
            Request::Release { tombstone } if token > 0 => Self::Release { token, tombstone },
            Request::Release { .. } | Request::Cancel => Self::Cancel,
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Server {
    pub(super) token: u64,
    pub(super) held: Option<Held>,
    /// Clients, in the order of their places.
    pub(super) queue: Vec<usize>,
    /// Clients that let an offer run out, and have not looked since.
    pub(super) aside: Set,
    /// Tombstones, and those among them that a release has left.
    pub(super) ended: Set,
    pub(super) released: Set,
    /// Clients whose lease ended by their own release.
    pub(super) by_release: Set,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Held {
    pub(super) client: usize,
    pub(super) token: u64,
    ends: Moment,
    /// It has to be confirmed.
    offered: bool,
}

impl Held {
    /// The time left, counted from a moment before the request was sent.
    fn grant(self, asked: Moment) -> Grant {
        let token = FencingToken::new(self.token).expect("it was counted");
        Grant::new(token, Lease::counted_from(asked, self.ends.since(NOW)))
    }
}

impl Server {
    pub(super) fn rebase(&mut self, by: Rebase) {
        self.token -= by.tokens;
        if let Some(held) = &mut self.held {
            held.token -= by.tokens;
            held.ends = by.moment(held.ends);
        }
    }

    pub(super) fn rename(&mut self, name: impl Fn(usize) -> usize) {
        if let Some(held) = &mut self.held {
            held.client = name(held.client);
        }
        self.queue.iter_mut().for_each(|it| *it = name(*it));
        for set in [
            &mut self.aside,
            &mut self.ended,
            &mut self.released,
            &mut self.by_release,
        ] {
            *set = set.members().map(&name).collect();
        }
    }

    pub(super) fn has(&self, client: usize) -> bool {
        self.queue.contains(&client) || self.holder() == Some(client)
    }

    pub(super) fn holder(&self) -> Option<usize> {
        self.held.map(|held| held.client)
    }

    fn leave(&mut self, client: usize) {
        self.queue.retain(|other| *other != client);
    }

    /// The first that is not set aside.
    pub(super) fn first(&self) -> Option<usize> {
        let mut queue = self.queue.iter().copied();
        queue.find(|client| !self.aside.contains(*client))
    }

    fn own(&self, client: usize) -> Option<Held> {
        self.held.filter(|held| held.client == client)
    }
}

impl Machines {
    fn grant(&self, server: &mut Server, client: usize, length: Duration) -> Held {
        if !self.is(Flaw::TokenRepeats) || server.token == 0 {
            server.token += 1;
        }
        let held = Held {
            client,
            token: server.token,
            ends: NOW + length,
            offered: length < TTL,
        };
        if !held.offered {
            server.leave(client);
        }
        server.held = Some(held);
        held
    }

    /// The lease is free: the first in the queue is woken.
    fn hand_on(&self, state: &mut State) {
        let server = &mut state.server;
        let Some(first) = server.first() else { return };
        let wake = match self.waking {
            Waking::Hints => Wake::Look,
            Waking::Offers => Wake::Offered(self.grant(server, first, OFFER).grant(NOW)),
            Waking::Grants => Wake::Granted(self.grant(server, first, TTL).grant(NOW)),
        };
        state.clients[first].push(wake);
    }

    /// A tick has gone by: a lease that has run out ends.
    pub(super) fn expire(&self, state: &mut State) {
        let server = &mut state.server;
        let Some(held) = server.held.take_if(|held| held.ends <= NOW) else {
            return;
        };
        match held.offered {
            true => server.aside.insert(held.client),
            false => server.ended.insert(held.client),
        }
        self.hand_on(state);
    }

    /// One request arrives. The lease of an answer is counted from `asked`.
    pub(super) fn run(&self, state: &mut State, client: usize, copy: Copy, asked: Moment) -> Reply {
        match copy {
            Copy::Look { queue } => self.look(state, client, queue, asked),
            Copy::Confirm(token) => {
                let server = &mut state.server;
                let own = server.own(client).filter(|held| held.token == token);
                let loose = self.is(Flaw::ConfirmNotCompared) && server.held.is_some();
                if own.is_none() && !loose {
                    return Reply::Gone;
                }
                if own.is_none() {
                    state.broken.insert(Lie::StrangerEnded);
                }
                let confirmed = Held {
                    client,
                    token,
                    ends: NOW + TTL,
                    offered: false,
                };
                server.held = Some(confirmed);
                server.leave(client);
                Reply::Granted(confirmed.grant(asked))
            }
            Copy::Release { token, tombstone } => {
                let server = &mut state.server;
                let own = server.own(client).filter(|held| held.token == token);
                let ends = own.is_some() || self.is(Flaw::ReleaseNotCompared);
                if ends && let Some(held) = server.held.take() {
                    if held.client != client {
                        state.broken.insert(Lie::StrangerEnded);
                    }
                    server.by_release.insert(client);
                    if tombstone {
                        server.ended.insert(client);
                        server.released.insert(client);
                    }
                    self.hand_on(state);
                }
                let is_released = own.is_some() || state.server.released.contains(client);
                Reply::Released(match is_released {
                    true => Released::Released,
                    false => Released::NotHolder,
                })
            }
            Copy::Cancel => {
                let server = &mut state.server;
                if !self.is(Flaw::CancelForgotten) {
                    server.ended.insert(client);
                }
                server.leave(client);
                if server.own(client).is_some() {
                    server.held = None;
                }
                if server.held.is_none() {
                    self.hand_on(state);
                }
                Reply::Cancelled
            }
        }
    }

    fn look(&self, state: &mut State, client: usize, queue: bool, asked: Moment) -> Reply {
        let server = &mut state.server;
        if server.ended.contains(client) {
            server.leave(client);
            let (kind, outcome) = (ErrorKind::Released, Outcome::NotApplied);
            return Reply::Failed(Failure { kind, outcome });
        }
        server.aside.remove(client);
        if let Some(held) = server.own(client) {
            return match held.offered {
                true => Reply::Offered(held.grant(asked)),
                false => Reply::Granted(held.grant(asked)),
            };
        }
        let Some(held) = server.held else {
            if server.first().is_none_or(|first| first == client) {
                return Reply::Granted(self.grant(server, client, TTL).grant(asked));
            }
            return self.queued(server, client, queue, TICK);
        };
        self.queued(server, client, queue, held.ends.since(NOW))
    }

    fn queued(&self, server: &mut Server, client: usize, queue: bool, left: Duration) -> Reply {
        if !queue {
            if !self.is(Flaw::PlaceKept) {
                server.leave(client);
            }
            return Reply::Held { left };
        }
        if !server.queue.contains(&client) {
            server.queue.push(client);
        }
        let look_again = match self.waking {
            Waking::Hints => Duration::MAX,
            Waking::Offers => ticks(2),
            Waking::Grants => left,
        };
        Reply::Queued { left, look_again }
    }
}
