//! The part of the scripts that hands the lease on.

use super::{
    Attempt, Flaw, Token,
    messages::Answer,
    scripts::Script,
    server::{Entry, Lease},
};

impl Script<'_> {
    /// A provisional lease that is gone while its entry is still marked has run out: its client is
    /// not there, or too slow. It is set aside; its entry keeps its place.
    pub(super) fn settle(&mut self) {
        if self.server.lease.is_some() {
            return;
        }
        for entry in self.server.queue.iter_mut().filter(|entry| entry.granted) {
            entry.granted = false;
            self.server.aside.insert(entry.client(self.queue));
        }
    }

    /// Grants a free lease to the first in the line that can be reached. The caller of an acquire
    /// is answered; anybody else gets a push.
    pub(super) fn grant_to_head(&mut self, caller: Option<Attempt>) -> Option<Answer> {
        if self.server.lease.is_some() {
            return None;
        }
        for place in 0..self.server.queue.len() {
            let entry = self.server.queue[place];
            let asks = caller.filter(|by| entry.attempts.contains(*by));
            let aside = self.server.aside.contains(entry.client(self.queue));
            // The caller is here, whatever this script has just found out about its client.
            let exempt = asks.is_some() && !self.queue.is(Flaw::CallerIsNotExempt);
            let passed_over = self.queue.is(Flaw::GrantsToCaller) && asks != caller;
            if passed_over || (aside && !exempt) {
                continue;
            }
            if let Some(by) = asks {
                return Some(self.grant_to_caller(entry, by));
            }
            if self.push_grant(place) {
                return None;
            }
        }
        None
    }

    /// The answer to an acquire is a full lease: no confirm is needed.
    fn grant_to_caller(&mut self, entry: Entry, by: Attempt) -> Answer {
        let token = self.grant(entry, false);
        self.server.remove_entry(entry.acquisition);
        Answer::Granted {
            to: by,
            token,
            provisional: false,
        }
    }

    /// Pushes a provisional lease to a place in the queue. Returns whether anybody received it.
    fn push_grant(&mut self, place: usize) -> bool {
        let entry = self.server.queue[place];
        let client = entry.client(self.queue);
        if !self.server.subscribed.contains(client) {
            // The script learns it from the number of receivers, after its INCR.
            self.server.counter += 1;
            self.server.aside.insert(client);
            return false;
        }
        let full = self.queue.is(Flaw::PushIsFull);
        let token = self.grant(entry, !full);
        if full || self.queue.is(Flaw::EntryLeavesAtGrant) {
            self.server.remove_entry(entry.acquisition);
        } else {
            self.server.queue[place].granted = true;
        }
        self.push = Some(Answer::Push(entry.latest, token));
        true
    }

    fn grant(&mut self, entry: Entry, provisional: bool) -> Token {
        let token = self.server.counter + 1;
        if !(provisional && self.queue.is(Flaw::ConfirmIncrements)) {
            self.server.counter = token;
        }
        self.server.lease = Some(Lease {
            acquisition: entry.acquisition,
            token,
            attempts: entry.attempts,
            provisional,
        });
        token
    }
}
