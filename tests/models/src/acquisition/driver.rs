//! A driver carries out the steps of the machine, and a wrapper adds the flaws.

use std::{cmp::max, mem};

use lock_core::{
    Outcome, Released,
    backend::{Answer, Event, Failure, Grant, Lease, Moment, Reply, Request, Step, Wake},
};

use super::{
    Flaw, Machines, NOW, State, TTL,
    server::Copy,
    state::{Client, Lie, Stage},
};

/// The same grant with a whole lease that begins now.
fn from_now(grant: Grant) -> Grant {
    Grant::new(grant.token, Lease::counted_from(NOW, TTL))
}

impl Machines {
    /// The event, as the machine gets it.
    fn heard(&self, event: Event) -> Option<Event> {
        let reply = |reply, copied| Event::Replied { reply, copied };
        Some(match event {
            Event::Replied {
                reply: held @ Reply::Held { .. },
                ..
            } if self.is(Flaw::UndoIncomplete) => reply(held, false),
            Event::Replied {
                reply: Reply::Granted(grant),
                copied,
            } if self.is(Flaw::CountedFromAnswer) => reply(Reply::Granted(from_now(grant)), copied),
            Event::Replied {
                reply: Reply::Offered(grant),
                copied,
            } if self.is(Flaw::OfferTaken) => reply(Reply::Granted(from_now(grant)), copied),
            Event::Replied {
                reply: Reply::Queued { left, .. },
                copied,
            } if self.is(Flaw::NeverLooksAgain) => {
                let look_again = std::time::Duration::MAX;
                reply(Reply::Queued { left, look_again }, copied)
            }
            Event::Woken(Wake::Offered(grant)) if self.is(Flaw::OfferTaken) => {
                Event::Woken(Wake::Granted(from_now(grant)))
            }
            Event::Woken(Wake::Granted(grant)) if self.is(Flaw::PushBelieved) => {
                Event::Woken(Wake::Granted(from_now(grant)))
            }
            Event::Woken(Wake::Silent(_)) if self.is(Flaw::SilenceBorne) => return None,
            Event::Release { .. } if self.is(Flaw::LossReleased) => Event::Release { held: true },
            event => event,
        })
    }

    /// Does a step.
    fn done(&self, event: Event, step: Step) -> Step {
        match (event, step) {
            (
                Event::Replied {
                    reply: Reply::Held { left },
                    ..
                },
                Step::Send { .. },
            ) if self.is(Flaw::HeldDespiteCopy) => Step::Answer(Answer::Held { left }),
            (
                _,
                Step::Send {
                    request: Request::Release { .. },
                    until,
                },
            ) if self.is(Flaw::NoTombstone) => {
                let tombstone = false;
                let request = Request::Release { tombstone };
                Step::Send { request, until }
            }
            (
                Event::Replied {
                    reply: Reply::Failed(failure),
                    ..
                },
                Step::Answer(Answer::Failed(_)),
            ) if self.is(Flaw::ErrorsBelieved) => Step::Answer(Answer::Failed(failure)),
            (_, step) => step,
        }
    }

    pub(super) fn on(&self, state: &mut State, client: usize, event: Event) {
        let Some(event) = self.heard(event) else {
            return;
        };
        let it = &mut state.clients[client];
        let step = it.machine.on(event, NOW);
        match self.done(event, step) {
            Step::Send { request, until } => {
                it.stop_awaiting();
                it.sent = Some((Copy::of(request, it.token()), NOW));
                it.until = until;
            }
            Step::Wait { until } => it.until = until,
            Step::Answer(answer) => {
                it.stop_awaiting();
                (it.until, it.end) = (Moment::NEVER, Moment::NEVER);
                it.stop_listening(self);
                self.answer(state, client, answer);
            }
        }
    }

    /// The caller has an answer. If it is no grant, the caller goes away.
    fn answer(&self, state: &mut State, client: usize, answer: Answer) {
        let it = &mut state.clients[client];
        let is_clean = match answer {
            Answer::Granted(grant) => {
                it.stage = Stage::Holding(grant);
                return self.told(state, client, grant.token.get());
            }
            Answer::Held { .. } | Answer::Clean => true,
            Answer::Released(released) => {
                let owes = it.machine.owes();
                self.judge_release(state, client, released);
                !owes
            }
            // The release of a lease may be not applied.
            Answer::Failed(Failure {
                outcome: Outcome::NotApplied,
                ..
            }) if it.waits() => true,
            Answer::Failed(_) | Answer::Late | Answer::TooLate => !it.machine.owes(),
            Answer::Abandoned => return self.end(state, client, false),
        };
        match is_clean {
            true => self.end(state, client, true),
            false => self.go(state, client),
        }
    }

    fn told(&self, state: &mut State, client: usize, token: u64) {
        let acquisition = self.acquisition(client);
        let mut clients = state.clients.iter().enumerate();
        let twice = clients
            .any(|(other, it)| self.acquisition(other) != acquisition && it.token() == token);
        let out_of_order = twice || token <= state.clients[client].floor;
        state.blame(Lie::OutOfOrder, out_of_order);
        if self.is_shared(acquisition) {
            let told = state.told[acquisition].replace(token);
            state.blame(Lie::SecondToken, told.is_some_and(|told| told != token));
        } else {
            state.greatest = max(state.greatest, token);
        }
    }

    fn judge_release(&self, state: &mut State, client: usize, released: Released) {
        let (lived, held) = state.clients[client].released.unwrap_or_default();
        let by_release = state.by_release.contains(self.acquisition(client));
        // The machine cannot know of the crash.
        let forgot = state.forgot();
        match released {
            Released::Released => {
                state.blame(Lie::LossIsReleased, !lived && !by_release && !forgot)
            }
            _ => state.blame(Lie::ReleaseIsLoss, held && by_release),
        }
    }

    /// The caller goes away, and a watchdog gives back what is left.
    pub(super) fn go(&self, state: &mut State, client: usize) {
        let it = &mut state.clients[client];
        if it.is_closed {
            it.stop_awaiting();
            return self.end(state, client, false);
        }
        it.stage = Stage::Background(it.token());
        it.stop_listening(self);
        it.end = Moment::NEVER;
        self.on(state, client, Event::Gone);
    }

    /// States do not differ in what an attempt that is over remembers.
    pub(super) fn end(&self, state: &mut State, client: usize, clean: bool) {
        let it = &mut state.clients[client];
        it.stop_awaiting();
        it.stop_listening(self);
        let (late, wakes) = (mem::take(&mut it.late), mem::take(&mut it.wakes));
        *it = Client {
            stage: Stage::Over { clean },
            late,
            wakes,
            ..Client::new(self, client)
        };
    }
}
