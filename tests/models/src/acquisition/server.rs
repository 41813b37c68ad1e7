//! A lock service by the contract of `lock_core::backend`, for one resource. Each request is a
//! script or a function, and nothing happens between its parts.

use std::{cmp::max, time::Duration};

use lock_core::{
    ErrorKind, FencingToken, Outcome, Released,
    backend::{Failure, Grant, Lease, Moment, Reply, Request, Wake},
};

use super::{
    Flaw, Machines, NOW, OFFER, State, TICK, TTL, Waking,
    state::{Lie, Stage},
    ticks,
};
use crate::set::Set;

/// The content of a client's request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Copy {
    Look {
        queue: bool,
    },
    Confirm(u64),
    Release {
        token: u64,
        tombstone: bool,
    },
    Cancel,
    /// The push of this token found no waiter: ends the attempt, unless its acquisition has another
    /// lease, or has confirmed this one.
    SendBack(u64),
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
    pub(super) tables: Tables,
    /// In the order of the places.
    pub(super) queue: Vec<Place>,
    /// Redis: processes that get no offer until they look.
    pub(super) aside: Set,
    /// Redis: processes whose channel is broken.
    pub(super) unreached: Set,
    /// Redis: the key of the lease says that there is no lease, but perhaps other keys.
    pub(super) vacant: bool,
}

/// The state of which a database keeps a copy on the disk, and on a standby.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Tables {
    pub(super) token: u64,
    /// A lease stays after its end, until a request finds it.
    pub(super) held: Option<Held>,
    /// Tombstones of attempts, and of acquisitions.
    pub(super) ended: Set,
    pub(super) over: Set,
    /// Acquisitions whose release has left a tombstone.
    pub(super) released: Set,
    /// The token and the acquisition that the store has seen last.
    pub(super) mark: Option<(u64, usize)>,
    /// PostgreSQL: the row of the resource says that there is no waiter and no tombstone.
    pub(super) is_quiet: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Held {
    pub(super) acquisition: usize,
    /// The attempts that rely on the lease.
    pub(super) attempts: Set,
    pub(super) token: u64,
    pub(super) ends: Moment,
    /// The lease has to be confirmed.
    pub(super) offered: bool,
    /// The lease was pushed, and its acquisition has sent nothing since.
    pub(super) unheard: bool,
    /// Redis: the lease came with the answer to a release of another attempt of the process, and
    /// its acquisition has sent nothing since.
    pub(super) handed: bool,
    /// Redis: the key of the lease says that the resource has no other keys.
    pub(super) alone: bool,
}

/// The place of an acquisition in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Place {
    pub(super) acquisition: usize,
    pub(super) attempts: Set,
    /// The attempt that asked last. It is woken.
    pub(super) latest: usize,
}

impl Held {
    /// The time left, counted from a moment before the request was sent.
    pub(super) fn grant(self, asked: Moment) -> Grant {
        let token = FencingToken::new(self.token).expect("it was counted");
        Grant::new(token, Lease::counted_from(asked, self.ends.since(NOW)))
    }

    pub(super) fn reply(self, asked: Moment) -> Reply {
        match self.offered {
            true => Reply::Offered(self.grant(asked)),
            false => Reply::Granted(self.grant(asked)),
        }
    }
}

impl Tables {
    /// The lease, if it has not ended.
    pub(super) fn living(&self) -> Option<Held> {
        self.held.filter(|held| held.ends > NOW)
    }

    pub(super) fn own(&self, acquisition: usize) -> Option<Held> {
        self.living().filter(|held| held.acquisition == acquisition)
    }

    /// The living lease of this acquisition and token.
    pub(super) fn exactly(&self, acquisition: usize, token: u64) -> Option<Held> {
        self.own(acquisition).filter(|held| held.token == token)
    }

    fn refuses(&self, client: usize, acquisition: usize) -> bool {
        self.ended.contains(client) || self.over.contains(acquisition)
    }
}

impl Server {
    /// Whether the server has a lease or a place of this attempt.
    pub(super) fn has(&self, client: usize) -> bool {
        let has_place = self.has_place(client);
        has_place || (self.tables.living()).is_some_and(|held| held.attempts.contains(client))
    }

    pub(super) fn has_place(&self, client: usize) -> bool {
        (self.queue.iter()).any(|place| place.attempts.contains(client))
    }

    pub(super) fn place(&mut self, acquisition: usize) -> Option<&mut Place> {
        let mut places = self.queue.iter_mut();
        places.find(|place| place.acquisition == acquisition)
    }

    pub(super) fn remove_place(&mut self, acquisition: usize) {
        self.queue.retain(|place| place.acquisition != acquisition);
    }

    /// An attempt leaves the queue. The place ends with the last attempt.
    pub(super) fn leave(&mut self, client: usize) {
        for place in &mut self.queue {
            place.attempts.remove(client);
            if place.latest == client {
                place.latest = place.attempts.members().last().unwrap_or(client);
            }
        }
        self.queue.retain(|place| !place.attempts.is_empty());
    }
}

const REFUSED: Reply = Reply::Failed(Failure {
    kind: ErrorKind::Released,
    outcome: Outcome::NotApplied,
});

impl Machines {
    /// One request arrives. The lease of the answer is counted from `asked`, if an answer is
    /// awaited.
    pub(super) fn run(
        &self,
        state: &mut State,
        client: usize,
        copy: Copy,
        asked: Option<Moment>,
    ) -> Reply {
        let before = state.server.tables.living();
        if let Some(reply) = self.run_fast(state, client, copy, asked) {
            return reply;
        }
        let reply = match copy {
            Copy::Look { queue } => self.look(state, client, queue, asked),
            Copy::Confirm(token) => self.confirm(state, client, token, asked.unwrap_or(NOW)),
            Copy::Release { token, tombstone } => {
                Reply::Released(self.release(state, client, token, tombstone))
            }
            Copy::Cancel => self.cancel(state, client),
            Copy::SendBack(token) => {
                let own = state.server.tables.own(self.acquisition(client));
                let was_told =
                    own.is_some_and(|held| !(held.offered || held.handed) || held.token != token);
                match self.flaw {
                    Some(Flaw::LatePushReleases) => {
                        Reply::Released(self.release(state, client, token, true))
                    }
                    Some(Flaw::LatePushCancels) => self.cancel(state, client),
                    _ if was_told => Reply::Cancelled,
                    _ => self.cancel(state, client),
                }
            }
        };
        self.keep(state);
        if let (Copy::Cancel | Copy::SendBack(_), Some(held)) = (copy, before) {
            let lives = state.server.tables.exactly(held.acquisition, held.token);
            let holds = |stage| matches!(stage, Stage::Holding(it) if it.token.get() == held.token);
            let relied_on = state.clients.iter().any(|other| holds(other.stage));
            state.blame(Lie::EndedUnderHolder, lives.is_none() && relied_on);
        }
        reply
    }

    fn look(&self, state: &mut State, client: usize, queue: bool, asked: Option<Moment>) -> Reply {
        let (acquisition, process) = (self.acquisition(client), self.process(client));
        // The tables as they were when the function began to wait for its mutex.
        let snapshot = state.clients[client].snapshot.take();
        let tables = &state.server.tables;
        if self.waking == Waking::Hints && tables.held.is_none() && tables.is_quiet {
            let granted = self.grant(state, client, Set::of(client), TTL);
            return granted.reply(asked.unwrap_or(NOW));
        }
        if state.server.tables.refuses(client, acquisition) {
            state.server.leave(client);
            let is_own = state.server.tables.over.contains(acquisition);
            state.blame(Lie::RefusedForNothing, asked.is_some() && !is_own);
            return REFUSED;
        }
        if queue && self.is(Flaw::LookClearsTooEarly) {
            state.server.aside.remove(process);
        }
        self.settle(state);
        if state.server.tables.over.contains(acquisition) {
            return REFUSED;
        }
        let asked = asked.unwrap_or(NOW);
        let seen = match &snapshot {
            Some(old) => old.living(),
            None => state.server.tables.held,
        };
        if let Some(held) = state.server.tables.own(acquisition) {
            return self.look_again(state, client, queue, held).reply(asked);
        }
        if let Some(held) = seen {
            return self.queued(state, client, queue, held.ends.since(NOW));
        }
        if queue {
            self.enqueue(state, client);
        }
        match self.hand_on(state, Some((client, queue)), None) {
            true => {
                let granted = self.grant(state, client, Set::of(client), TTL);
                let Server { tables, queue, .. } = &mut state.server;
                tables.is_quiet = self.waking == Waking::Hints
                    && queue.is_empty()
                    && tables.ended.is_empty()
                    && tables.over.is_empty();
                granted.reply(asked)
            }
            false => {
                let left = state
                    .server
                    .tables
                    .held
                    .map_or(TICK, |it| it.ends.since(NOW));
                let free = state.server.tables.held.is_none();
                state.blame(Lie::LeftFree, free && self.waking != Waking::Hints);
                self.queued(state, client, queue, left)
            }
        }
    }

    /// A look finds the lease of its own acquisition.
    fn look_again(&self, state: &mut State, client: usize, queue: bool, held: Held) -> Held {
        let mut now = Held {
            unheard: false,
            handed: false,
            ..held
        };
        if self.is(Flaw::OnlyLatestAttempt) {
            now.attempts = Set::EMPTY;
        }
        now.attempts.insert(client);
        if self.is(Flaw::ReplayExtends) {
            now.offered = false;
        }
        if self.is(Flaw::ReplayIncrements) {
            state.server.tables.token += 1;
            now.token = state.server.tables.token;
        }
        if queue && held.offered {
            self.enqueue(state, client);
        }
        let acted = (now.offered, now.ends) != (held.offered, held.ends);
        state.blame(Lie::ReplayActed, acted);
        state.server.tables.held = Some(now);
        now
    }

    fn queued(&self, state: &mut State, client: usize, queue: bool, left: Duration) -> Reply {
        let look_again = match self.waking {
            Waking::Hints => Duration::MAX,
            Waking::Offers => ticks(2),
            Waking::Grants => left,
        };
        if queue {
            self.enqueue(state, client);
            return Reply::Queued { left, look_again };
        }
        if !self.is(Flaw::PlaceKept) && state.server.has_place(client) {
            // The script of Redis keeps the place, and the client knows that it may be there.
            if self.waking == Waking::Offers {
                return Reply::Queued { left, look_again };
            }
            state.server.leave(client);
        }
        Reply::Held { left }
    }

    /// Takes or keeps a place, which shows that the process is there.
    fn enqueue(&self, state: &mut State, client: usize) {
        let (acquisition, process) = (self.acquisition(client), self.process(client));
        let server = &mut state.server;
        state.paused.remove(process);
        if !self.is(Flaw::LookClearsTooEarly) {
            server.aside.remove(process);
        }
        let (mut attempts, latest) = (Set::of(client), client);
        if let Some(place) = server.place(acquisition) {
            if !self.is(Flaw::OnlyLatestAttempt) {
                attempts.include(place.attempts);
            }
            (place.attempts, place.latest) = (attempts, latest);
            return;
        }
        server.tables.is_quiet &= self.is(Flaw::QuietDespiteWaiter);
        server.queue.push(Place {
            acquisition,
            attempts,
            latest,
        });
    }

    fn confirm(&self, state: &mut State, client: usize, token: u64, asked: Moment) -> Reply {
        let acquisition = self.acquisition(client);
        let tables = &mut state.server.tables;
        let own = tables.exactly(acquisition, token);
        let loose = self.is(Flaw::ConfirmNotCompared) && tables.living().is_some();
        if own.is_none() && !loose {
            return Reply::Gone;
        }
        let confirmed = Held {
            acquisition,
            attempts: own.map_or(Set::of(client), |held| held.attempts),
            token,
            ends: NOW + TTL,
            offered: false,
            unheard: false,
            handed: false,
            alone: false,
        };
        tables.held = Some(confirmed);
        state.server.remove_place(acquisition);
        state.blame(Lie::StrangerEnded, own.is_none());
        confirmed.reply(asked)
    }

    fn release(&self, state: &mut State, client: usize, token: u64, tombstone: bool) -> Released {
        let acquisition = self.acquisition(client);
        let server = &mut state.server;
        let own = server.tables.exactly(acquisition, token);
        let loose = self.is(Flaw::ReleaseNotCompared);
        let ends = own.or(server.tables.living().filter(|_| loose));
        if let Some(held) = ends {
            server.tables.held = None;
            if held.offered {
                server.remove_place(held.acquisition);
            }
            if tombstone {
                server.tables.is_quiet &= self.is(Flaw::QuietDespiteTombstone);
                server.tables.over.insert(acquisition);
                server.tables.released.insert(acquisition);
            }
            let is_stranger = held.acquisition != acquisition;
            state.blame(Lie::StrangerEnded, is_stranger);
            state.by_release.insert(acquisition);
            let process = (!tombstone).then_some(self.process(client));
            self.hand_on(state, None, process);
        }
        let is_released = own.is_some() || state.server.tables.released.contains(acquisition);
        match is_released {
            true => Released::Released,
            false => Released::NotHolder,
        }
    }

    fn cancel(&self, state: &mut State, client: usize) -> Reply {
        if !self.is(Flaw::CancelForgotten) {
            let tables = &mut state.server.tables;
            tables.is_quiet &= self.is(Flaw::QuietDespiteTombstone);
            tables.ended.insert(client);
        }
        self.settle(state);
        let acquisition = self.acquisition(client);
        let whole = self.is(Flaw::CancelIgnoresAttempts);
        let server = &mut state.server;
        server.leave(client);
        if whole {
            server.remove_place(acquisition);
        }
        if let Some(mut held) = server.tables.own(acquisition) {
            held.attempts.remove(client);
            server.tables.held = (!held.attempts.is_empty() && !whole).then_some(held);
            // The next attempt begins anew, unless the acquisition was released.
            if server.tables.held.is_none()
                && let Some(told) = state.told[acquisition].take()
            {
                state.greatest = max(state.greatest, told);
            }
        }
        let server = &state.server;
        if server.tables.held.is_none() {
            self.hand_on(state, None, None);
        }
        Reply::Cancelled
    }

    /// A lease that is over leaves a tombstone. If it was an offer, its process is gone or too
    /// slow: the queue goes on without that process until it asks.
    pub(super) fn settle(&self, state: &mut State) {
        let server = &mut state.server;
        let Some(held) = server.tables.held.take_if(|held| held.ends <= NOW) else {
            return;
        };
        if !held.offered {
            if !self.is(Flaw::ExpiryForgotten) {
                server.tables.is_quiet &= self.is(Flaw::QuietDespiteTombstone);
                server.tables.over.insert(held.acquisition);
            }
        } else if let Some(place) = server.place(held.acquisition) {
            let process = self.process(place.latest);
            server.aside.insert(process);
        }
    }

    /// Hands a free lease to the first in the queue. Returns whether the first is the caller, or
    /// the queue is empty. On Redis the answer of a release may have the grant of a waiter of its
    /// process.
    fn hand_on(
        &self,
        state: &mut State,
        caller: Option<(usize, bool)>,
        releasing: Option<usize>,
    ) -> bool {
        if caller.is_some() && self.is(Flaw::OutOfTurn) {
            return true;
        }
        // On Redis a caller that does not queue has no turn.
        let asks = caller.filter(|(_, queue)| *queue || self.waking != Waking::Offers);
        for place in state.server.queue.clone() {
            let (latest, process) = (place.latest, self.process(place.latest));
            let is_aside = state.server.aside.contains(process);
            let is_caller =
                asks.is_some_and(|(client, _)| self.acquisition(client) == place.acquisition);
            // The caller is there, whatever this script has just found out about its process.
            if is_caller && !(is_aside && self.is(Flaw::CallerNotExempt)) {
                return true;
            }
            if is_aside {
                continue;
            }
            if self.waking == Waking::Offers && state.server.unreached.contains(process) {
                state.server.aside.insert(process);
                state.paused.insert(process);
                continue;
            }
            let wake = match self.waking {
                Waking::Hints if caller.is_some() => return false,
                Waking::Hints => Wake::Look,
                Waking::Offers if releasing == Some(process) => {
                    Wake::Granted(self.hand_over(state, place))
                }
                Waking::Offers => Wake::Offered(self.offer(state, place)),
                Waking::Grants => {
                    let held = self.grant(state, latest, place.attempts, TTL);
                    Wake::Granted(held.grant(NOW))
                }
            };
            state.clients[latest].push(wake, self);
            return false;
        }
        caller.is_some() && (asks.is_none() || !self.is(Flaw::CallerNotExempt))
    }

    fn offer(&self, state: &mut State, place: Place) -> Grant {
        let dear = state.paused.contains(self.process(place.latest));
        state.blame(Lie::PauseIsDear, dear);
        let length = match self.is(Flaw::PushIsFull) {
            true => TTL,
            false => OFFER,
        };
        let held = self.grant(state, place.latest, place.attempts, length);
        if self.is(Flaw::PlaceLeavesAtOffer) {
            state.server.remove_place(place.acquisition);
        }
        state.server.tables.held = Some(Held {
            unheard: true,
            ..held
        });
        held.grant(NOW)
    }

    pub(super) fn grant(
        &self,
        state: &mut State,
        client: usize,
        attempts: Set,
        length: Duration,
    ) -> Held {
        let acquisition = self.acquisition(client);
        let server = &mut state.server;
        let before = (server.queue.iter()).take_while(|place| place.acquisition != acquisition);
        let waits = |place: &Place| !state.paused.contains(self.process(place.latest));
        let overtaken = before.clone().any(waits);
        let held = Held {
            acquisition,
            attempts,
            token: 0,
            ends: NOW + length,
            offered: length < TTL,
            unheard: false,
            handed: false,
            alone: true,
        };
        if !held.offered {
            server.remove_place(acquisition);
        }
        state.blame(Lie::Overtaken, overtaken);
        let token = self.draw(state);
        let held = Held { token, ..held };
        state.server.tables.held = Some(held);
        self.granted_by_database(state, client, token);
        held
    }
}
