//! A driver does the steps of the machine, and a wrapper breaks them.

use lock_core::{
    Outcome, Released,
    backend::{Answer, Event, Failure, Grant, Lease, Moment, Reply, Request, Step, Wake},
};

use super::{Client, Flaw, Lie, Machines, NOW, Stage, State, TTL, server::Copy};

/// The same grant with a whole lease that begins now.
fn from_now(grant: Grant) -> Grant {
    Grant::new(grant.token, Lease::counted_from(NOW, TTL))
}

impl Client {
    /// A request that was sent may arrive later, because its answer is not awaited any more.
    fn stop_awaiting(&mut self) {
        self.late.extend(self.sent.take().map(|(copy, _)| copy));
        self.reply = None;
    }

    pub(super) const fn token(&self) -> u64 {
        match self.stage {
            Stage::Holding(grant) => grant.token.get(),
            Stage::GivingBack(token) | Stage::Background(token) => token,
            _ => 0,
        }
    }
}

impl Machines {
    /// The event, as the machine hears of it.
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
                it.wakes.clear();
                self.answer(state, client, answer);
            }
        }
    }

    /// The caller has an answer. If it is no grant, the caller goes away.
    fn answer(&self, state: &mut State, client: usize, answer: Answer) {
        let it = &mut state.clients[client];
        let is_clean = match answer {
            Answer::Granted(grant) => {
                let token = grant.token.get();
                if token <= it.floor {
                    state.broken.insert(Lie::OutOfOrder);
                }
                state.greatest = std::cmp::max(state.greatest, token);
                it.stage = Stage::Holding(grant);
                return;
            }
            Answer::Held { .. } | Answer::Clean => true,
            Answer::Released(released) => {
                let (lived, held) = it.released.unwrap_or_default();
                let by_release = state.server.by_release.contains(client);
                match released {
                    Released::Released if !lived => state.broken.insert(Lie::LossIsReleased),
                    Released::NotHolder if held && by_release => {
                        state.broken.insert(Lie::ReleaseIsLoss)
                    }
                    _ => false,
                };
                !it.machine.owes()
            }
            // The release of a lease may be not applied.
            Answer::Failed(Failure {
                outcome: Outcome::NotApplied,
                ..
            }) if it.stage == Stage::Waiting => true,
            Answer::Failed(_) | Answer::Late | Answer::TooLate => !it.machine.owes(),
            Answer::Abandoned => return self.end(state, client, false),
        };
        match is_clean {
            true => self.end(state, client, true),
            false => self.go(state, client),
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
        it.wakes.clear();
        it.end = Moment::NEVER;
        self.on(state, client, Event::Gone);
    }

    /// States do not differ in what an attempt that is over remembers.
    pub(super) fn end(&self, state: &mut State, client: usize, clean: bool) {
        let late = std::mem::take(&mut state.clients[client].late);
        state.clients[client] = Client {
            stage: Stage::Over { clean },
            late,
            ..Client::new(self.callers[client])
        };
    }
}
