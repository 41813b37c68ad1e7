//! The scripts. Each call of [`execute`] is one of them: nothing happens between its parts.

use super::{
    Attempt, Flaw, Queue, Token,
    messages::{Answer, Request, Tombstone},
    server::{Entry, Server},
};
use crate::set::Set;

/// The messages of a script.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// To the caller. A waiter that has to go on waiting gets none.
    pub(crate) reply: Option<Answer>,
    /// To the waiter that was granted.
    pub(crate) push: Option<Answer>,
}

/// Runs the script for a request.
pub(crate) fn execute(queue: &Queue, server: &mut Server, request: Request) -> Outcome {
    let mut script = Script {
        queue,
        server,
        push: None,
    };
    let reply = match request {
        Request::Acquire(by) => script.acquire(by),
        Request::Confirm(by, token) => Some(script.confirm(by, token)),
        Request::Release(by, token, tombstone) => Some(script.release(by, token, tombstone)),
        Request::Cancel(by) => Some(script.cancel(by)),
        Request::SendBack(by, token) => {
            script.send_back(by, token);
            None
        }
    };
    Outcome {
        reply,
        push: script.push,
    }
}

/// A script that is running.
pub(super) struct Script<'a> {
    pub(super) queue: &'a Queue,
    pub(super) server: &'a mut Server,
    pub(super) push: Option<Answer>,
}

impl Script<'_> {
    fn acquire(&mut self, by: Attempt) -> Option<Answer> {
        let acquisition = self.queue.acquisition(by);
        let ended = self.server.ended_acquisitions.contains(acquisition);
        if ended || self.server.ended_attempts.contains(by) {
            return Some(Answer::Ended(by));
        }
        if self.queue.is(Flaw::PollClearsTooEarly) {
            self.server.aside.remove(self.queue.client(by));
            self.settle();
        } else {
            self.settle();
            self.server.aside.remove(self.queue.client(by));
        }
        if self.server.lease_of(acquisition).is_some() {
            return self.replay(by);
        }
        self.enqueue(by);
        self.grant_to_head(Some(by))
    }

    /// The caller's acquisition has the lease: the same grant, with the time left.
    fn replay(&mut self, by: Attempt) -> Option<Answer> {
        if self.server.entry_of(self.queue.acquisition(by)).is_some() {
            self.enqueue(by);
        }
        let lease = self.server.lease.as_mut()?;
        match self.queue.flaw {
            Some(Flaw::OnlyLatestAttempt) => lease.attempts = Set::EMPTY,
            Some(Flaw::ReplayExtends) => lease.provisional = false,
            Some(Flaw::ReplayIncrements) => {
                self.server.counter += 1;
                lease.token = self.server.counter;
            }
            _ => {}
        }
        lease.attempts.insert(by);
        Some(Answer::Granted {
            to: by,
            token: lease.token,
            provisional: lease.provisional,
        })
    }

    /// Gives the caller a place, or notes in its present place that this attempt asked last.
    fn enqueue(&mut self, by: Attempt) {
        let acquisition = self.queue.acquisition(by);
        let only_latest = self.queue.is(Flaw::OnlyLatestAttempt);
        if let Some(entry) = self.server.entry_mut(acquisition) {
            if only_latest {
                entry.attempts = Set::EMPTY;
            }
            entry.attempts.insert(by);
            entry.latest = by;
        } else {
            self.server.queue.push(Entry {
                acquisition,
                attempts: Set::of(by),
                latest: by,
                granted: false,
            });
        }
    }

    fn confirm(&mut self, by: Attempt, token: Token) -> Answer {
        let acquisition = self.queue.acquisition(by);
        let Some(lease) = self.held(acquisition, token) else {
            return Answer::NotConfirmed(by, token);
        };
        lease.provisional = false;
        self.server.remove_entry(acquisition);
        if self.queue.is(Flaw::ConfirmIncrements) && self.server.counter < token {
            self.server.counter = token;
        }
        Answer::Confirmed(by, token)
    }

    fn release(&mut self, by: Attempt, token: Token, tombstone: Tombstone) -> Answer {
        let acquisition = self.queue.acquisition(by);
        let held = self.held(acquisition, token).is_some();
        if held || self.queue.is(Flaw::ReleaseIsNotCompared) {
            self.server.lease = None;
            self.server.remove_entry(acquisition);
            if tombstone == Tombstone::Left {
                self.server.ended_acquisitions.insert(acquisition);
            }
            self.grant_to_head(None);
        }
        if held || self.server.ended_acquisitions.contains(acquisition) {
            Answer::Released(by)
        } else {
            Answer::NotReleased(by)
        }
    }

    fn cancel(&mut self, by: Attempt) -> Answer {
        self.bury(by);
        self.settle();
        self.drop_from_queue(by);
        self.drop_from_lease(by);
        self.grant_to_head(None);
        Answer::Cancelled(by)
    }

    /// If an attempt was told of a grant by an answer, somebody does wait for it, although its push
    /// found nobody.
    fn send_back(&mut self, by: Attempt, token: Token) {
        let lease = self.server.lease_of(self.queue.acquisition(by));
        if lease.is_none_or(|lease| lease.token == token && lease.provisional) {
            self.cancel(by);
        }
    }

    fn bury(&mut self, attempt: Attempt) {
        if !self.queue.is(Flaw::NoTombstone) {
            self.server.ended_attempts.insert(attempt);
        }
    }

    fn drop_from_queue(&mut self, by: Attempt) {
        let acquisition = self.queue.acquisition(by);
        let whole = self.queue.is(Flaw::CancelIgnoresAttempts);
        let Some(entry) = self.server.entry_mut(acquisition) else {
            return;
        };
        entry.attempts.remove(by);
        match entry.attempts.members().last() {
            Some(other) if !whole => {
                if entry.latest == by {
                    entry.latest = other;
                }
            }
            _ => self.server.remove_entry(acquisition),
        }
    }

    fn drop_from_lease(&mut self, by: Attempt) {
        let acquisition = self.queue.acquisition(by);
        let Some(lease) = self.server.lease.as_mut() else {
            return;
        };
        if lease.acquisition != acquisition {
            return;
        }
        lease.attempts.remove(by);
        if lease.attempts.is_empty() || self.queue.is(Flaw::CancelIgnoresAttempts) {
            self.server.lease = None;
        }
    }

    fn held(&mut self, acquisition: usize, token: Token) -> Option<&mut super::server::Lease> {
        let lease = self.server.lease.as_mut()?;
        (lease.acquisition == acquisition && lease.token == token).then_some(lease)
    }
}
