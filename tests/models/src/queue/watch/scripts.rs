//! The observer's checks after each script.

use super::{Fault, Note};
use crate::queue::{
    Attempt, Queue, State,
    messages::{Answer, Request},
    server::{Lease, Server},
    state::Phase,
};

/// A script that has just run.
pub(crate) struct Ran {
    pub(crate) request: Request,
    /// What the server kept before it.
    pub(crate) before: Server,
    pub(crate) reply: Option<Answer>,
    /// Whether its connection had been given up.
    pub(crate) late: bool,
}

impl Ran {
    fn acquisition(&self, queue: &Queue) -> usize {
        queue.acquisition(self.request.by())
    }

    fn was_refused(&self) -> bool {
        matches!(self.reply, Some(Answer::Ended(_)))
    }
}

impl State {
    /// After a script.
    pub(crate) fn watch_script(&mut self, queue: &Queue, ran: &Ran) {
        self.watch_acquire(queue, ran);
        self.watch_strangers(queue, ran);
        self.watch_siblings(queue, ran);
        self.watch_holders(queue, ran);
        self.watch_unreached(queue, ran);
        self.watch_grant(queue, ran);
        self.take_note(queue, ran);
    }

    /// An acquire that finds its own lease leaves it unchanged, and no acquire leaves the lease
    /// free.
    fn watch_acquire(&mut self, queue: &Queue, ran: &Ran) {
        let own = ran.before.lease_of(ran.acquisition(queue));
        if own.is_some() {
            self.watch.unheard = false;
        }
        let Request::Acquire(by) = ran.request else {
            return;
        };
        if ran.was_refused() {
            return;
        }
        self.watch.silent.remove(queue.client(by));
        let acted = own.is_some_and(|lease| !self.still_has(lease));
        self.watch.blame(Fault::ReplayActed, acted);
        let free = self.server.lease.is_none();
        self.watch.blame(Fault::LeftFree, free);
    }

    /// A request never touches the lease of another acquisition.
    fn watch_strangers(&mut self, queue: &Queue, ran: &Ran) {
        let own = ran.acquisition(queue);
        let other = ran.before.lease.filter(|lease| lease.acquisition != own);
        let touched = other.is_some() && self.server.lease != other;
        self.watch.blame(Fault::StrangerTouched, touched);
    }

    /// The end of an attempt that returned nothing is not the end of what another attempt of its
    /// acquisition has returned.
    fn watch_siblings(&mut self, queue: &Queue, ran: &Ran) {
        let by = ran.request.by();
        let asks = matches!(ran.request, Request::Acquire(_) | Request::Confirm(..));
        let Some(lease) = ran.before.lease_of(queue.acquisition(by)) else {
            return;
        };
        if asks || self.watch.returned[by].is_some() || self.still_has(lease) {
            return;
        }
        let ended = self.is_held(queue, lease);
        self.watch.blame(Fault::OtherAttemptEnded, ended);
    }

    /// The end of an attempt does not end a lease that a caller has been told of and holds.
    fn watch_holders(&mut self, queue: &Queue, ran: &Ran) {
        let (Request::Cancel(by) | Request::SendBack(by, _)) = ran.request else {
            return;
        };
        let Some(lease) = ran.before.lease_of(queue.acquisition(by)) else {
            return;
        };
        let ended = !self.still_has(lease) && self.is_held(queue, lease);
        self.watch.blame(Fault::EndedUnderHolder, ended);
    }

    /// Clients that a push could not reach.
    fn watch_unreached(&mut self, queue: &Queue, ran: &Ran) {
        for client in 0..queue.clients() {
            if self.server.aside.contains(client) && !ran.before.subscribed.contains(client) {
                self.watch.silent.insert(client);
            }
        }
    }

    /// A grant goes to the first in the line that has not been silent.
    fn watch_grant(&mut self, queue: &Queue, ran: &Ran) {
        let Some(lease) = self.fresh_grant(ran) else {
            return;
        };
        let own = ran.acquisition(queue);
        self.watch.unheard = own != lease.acquisition;
        for entry in &ran.before.queue {
            let client = entry.client(queue);
            if entry.acquisition == lease.acquisition {
                let again = self.watch.unheard && self.watch.silent.contains(client);
                self.watch.blame(Fault::PauseIsDear, again);
                return;
            }
            let waits = self.server.entry_of(entry.acquisition).is_some();
            let overtaken = waits && !self.watch.silent.contains(client);
            self.watch.blame(Fault::Overtaken, overtaken);
        }
    }

    fn take_note(&mut self, queue: &Queue, ran: &Ran) {
        if ran.late && ran.was_refused() {
            self.watch.note_down(queue, Note::LateRefused);
        }
        let Some(lease) = self.fresh_grant(ran) else {
            return;
        };
        let marked = ran.before.queue.iter().find(|entry| entry.granted);
        let ran_out = marked.filter(|_| ran.before.lease.is_none());
        let place = ran.before.entry_of(lease.acquisition);
        let was_aside = |client| ran.before.aside.contains(client);
        if ran_out.is_some_and(|entry| entry.acquisition != lease.acquisition) {
            self.watch.note_down(queue, Note::SetAside);
        } else if place.is_some_and(|entry| was_aside(entry.client(queue))) {
            self.watch.note_down(queue, Note::BackInLine);
        }
    }

    /// The lease, if this script has granted it.
    fn fresh_grant(&self, ran: &Ran) -> Option<Lease> {
        let lease = self.server.lease?;
        let replayed = ran.before.lease_of(lease.acquisition).is_some();
        (lease.token > ran.before.counter && !replayed).then_some(lease)
    }

    /// Whether a caller was told of this lease, and has not ended it.
    fn is_held(&self, queue: &Queue, lease: Lease) -> bool {
        let of_the_lease = |token| token == lease.token;
        let holds = |other: Attempt| {
            queue.acquisition(other) == lease.acquisition
                && matches!(self.phases[other], Phase::Holding { token, .. } if of_the_lease(token))
        };
        (0..queue.attempts.len()).any(holds)
    }

    /// Whether the grant is still there, as long and with the same token as before.
    fn still_has(&self, lease: Lease) -> bool {
        self.server
            .lease_of(lease.acquisition)
            .is_some_and(|now| now.token == lease.token && now.provisional == lease.provisional)
    }
}
