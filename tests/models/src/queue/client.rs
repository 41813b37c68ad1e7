//! How a client reacts to messages.

use super::{
    Attempt, Flaw, Queue, State, Token,
    messages::{Answer, Request, Tombstone},
    state::Phase,
    watch::Note,
};

impl Queue {
    /// The attempt is registered before its first request goes out.
    pub(crate) fn begin(&self, state: &mut State, attempt: Attempt) {
        state.watch_begin(self, attempt);
        state.phases[attempt] = if self.is(Flaw::RegistersLate) {
            Phase::Unregistered
        } else {
            Phase::Waiting
        };
        state.send(self, Request::Acquire(attempt));
    }

    pub(crate) fn send_due(&self, state: &mut State, attempt: Attempt) {
        if let Some(request) = state.due(attempt) {
            state.send(self, request);
        }
    }

    /// Gives an attempt up, whatever its state.
    pub(crate) fn cancel(&self, state: &mut State, attempt: Attempt) {
        state.phases[attempt] = Phase::Cancelling;
        self.send_due(state, attempt);
    }

    pub(crate) fn release(&self, state: &mut State, attempt: Attempt) {
        if let Phase::Holding { token, .. } = state.phases[attempt] {
            state.phases[attempt] = Phase::Releasing(token, self.tombstone(state, attempt));
            self.send_due(state, attempt);
        }
    }

    /// A client knows of fewer answers than there are, as answers get lost: then it has more
    /// tombstones than here.
    fn tombstone(&self, state: &State, attempt: Attempt) -> Tombstone {
        let none = self.is(Flaw::NoTombstone);
        let is_shared = self.has_siblings(attempt) && !self.is(Flaw::NoTombstoneOfShared);
        let acquire = Request::Acquire(attempt);
        let is_late = state.late.contains(&acquire) || state.requests.contains(&acquire);
        let may_be_late = is_late && !self.is(Flaw::NoTombstoneOfLate);
        if (is_shared || may_be_late) && !none {
            Tombstone::Left
        } else {
            Tombstone::LeftOut
        }
    }

    pub(crate) fn receive(&self, state: &mut State, answer: Answer) {
        let phase = state.phases[answer.to()];
        match (answer, phase) {
            (Answer::Push(to, token), _) => self.pushed(state, to, token),
            (
                Answer::Granted {
                    to,
                    token,
                    provisional,
                },
                _,
            ) => {
                if provisional && phase == Phase::Waiting {
                    state.watch.note_down(self, Note::PollFoundGrant);
                }
                self.granted(state, to, token, provisional);
            }
            (Answer::Ended(to), Phase::Unregistered | Phase::Waiting | Phase::Confirming(_)) => {
                state.watch_refusal(self, to);
                state.phases[to] = Phase::Ended;
            }
            (Answer::Confirmed(to, token), Phase::Confirming(due)) if due == token => {
                self.hand_over(state, to, token, true);
            }
            (Answer::Confirmed(to, token), Phase::Holding { token: held, .. }) if held == token => {
                state.phases[to] = Phase::Holding {
                    token,
                    confirmed: true,
                };
            }
            (Answer::NotConfirmed(to, token), Phase::Confirming(due)) if due == token => {
                // Nobody has been told of the token: the place in the queue still exists.
                state.phases[to] = Phase::Waiting;
                self.send_due(state, to);
            }
            (Answer::NotConfirmed(to, token), Phase::Holding { token: held, .. })
                if held == token =>
            {
                self.lost(state, to);
            }
            (Answer::Released(to), Phase::Releasing(..))
            | (Answer::Cancelled(to), Phase::Cancelling) => {
                state.phases[to] = Phase::Ended;
            }
            (Answer::NotReleased(to), Phase::Releasing(..)) => self.lost(state, to),
            _ => {}
        }
    }

    fn pushed(&self, state: &mut State, to: Attempt, token: Token) {
        let waits = |attempt: &Attempt| state.phases[*attempt] == Phase::Waiting;
        let sibling = |attempt: &Attempt| {
            self.acquisition(*attempt) == self.acquisition(to)
                && self.client(*attempt) == self.client(to)
        };
        let mut all = 0..self.attempts.len();
        let other = all.find(|attempt| sibling(attempt) && waits(attempt));
        let to = match other {
            Some(other) if self.is(Flaw::PushMatchesHolder) && !waits(&to) => other,
            _ => to,
        };
        match state.phases[to] {
            Phase::Waiting | Phase::Confirming(_) => self.granted(state, to, token, true),
            Phase::Cancelling => {}
            _ if self.remembers(state, to, token) => {}
            _ => self.nobody_waits(state, to, token),
        }
    }

    /// A push found nobody.
    fn nobody_waits(&self, state: &mut State, to: Attempt, token: Token) {
        match state.phases[to] {
            Phase::Ended if self.is(Flaw::UnknownPushIsReleased) => {
                state.phases[to] = Phase::Releasing(token, self.tombstone(state, to));
                self.send_due(state, to);
            }
            _ if self.is(Flaw::LatePushCancels) => state.send(self, Request::Cancel(to)),
            _ => state.send(self, Request::SendBack(to, token)),
        }
    }

    /// Whether the caller was told of this grant before its confirm. This is remembered until such
    /// a lease must have run out: a lease that then still lives has been confirmed.
    fn remembers(&self, state: &State, to: Attempt, token: Token) -> bool {
        let told = match state.phases[to] {
            Phase::Holding { token, .. } | Phase::Releasing(token, _) => token,
            _ => return false,
        };
        let lease = state.server.lease_of(self.acquisition(to));
        let lasts = lease.is_some_and(|lease| lease.token == told && lease.provisional);
        lasts && token <= told && !self.is(Flaw::UnconfirmedIsForgotten)
    }

    /// Receives a grant, by push or by answer, perhaps for the second time, perhaps too late.
    fn granted(&self, state: &mut State, to: Attempt, token: Token, provisional: bool) {
        match state.phases[to] {
            Phase::Waiting if provisional && self.confirms_first(to) => {
                state.phases[to] = Phase::Confirming(token);
                self.send_due(state, to);
            }
            Phase::Unregistered | Phase::Waiting => self.hand_over(state, to, token, !provisional),
            Phase::Confirming(due) if token == due && !provisional => {
                self.hand_over(state, to, token, true);
            }
            Phase::Confirming(due) if token > due => {
                state.phases[to] = Phase::Waiting;
                self.granted(state, to, token, provisional);
            }
            // The returned lease has run out, and the queue has granted anew.
            Phase::Holding { token: held, .. } if token > held => self.lost(state, to),
            _ => {}
        }
    }

    /// The caller gets the token.
    pub(crate) fn hand_over(&self, state: &mut State, to: Attempt, token: Token, confirmed: bool) {
        state.watch_return(self, to, token);
        state.phases[to] = Phase::Holding { token, confirmed };
    }

    /// The lease that the caller was told of has ended. Anything else that the server has for this
    /// attempt, a place in the queue or a later grant, has to go, too.
    fn lost(&self, state: &mut State, attempt: Attempt) {
        if self.is(Flaw::LossIsNotCancelled) {
            state.phases[attempt] = Phase::Ended;
        } else {
            self.cancel(state, attempt);
        }
    }
}
