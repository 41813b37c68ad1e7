use super::{Acquisition, Handover, Mark, Request, State, Step, Token};

/// One step of an acquisition, or of the operator who hands over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Action {
    /// A service grants.
    Grant(usize, usize),
    /// The token is claimed in the store.
    Claim(usize),
    /// An operator begins to hand over to this service.
    Begin(usize),
    /// The next step of the handover.
    Go(Step),
    /// The operator was killed, and begins again.
    BeginAgain,
    /// The next step of the handover is requested, and the operator is killed before it arrives.
    Ask(Step),
    /// It arrives.
    Arrive,
}

impl Handover {
    pub(super) fn possible(&self, state: &State, actions: &mut Vec<Action>) {
        for (index, acquisition) in state.acquisitions.iter().enumerate() {
            match acquisition {
                // Acquisitions are alike: they begin in the order of their numbers.
                Acquisition::Idle => {
                    if index == 0 || state.acquisitions[index - 1] != Acquisition::Idle {
                        let grants = |service: &usize| !state.services[*service].retired;
                        let grants = (0..2).filter(grants);
                        actions.extend(grants.map(|service| Action::Grant(index, service)));
                    }
                }
                Acquisition::Granted { .. } => actions.push(Action::Claim(index)),
                Acquisition::Claimed { .. } | Acquisition::Refused => {}
            }
        }
        // An operator who turns back does not finish what was begun.
        if state.handovers < self.handovers {
            actions.push(Action::Begin(1 - state.to));
        }
        if let Some(step) = self.steps.get(state.next) {
            actions.push(Action::Go(*step));
            if state.requests > 0 && matches!(step, Step::Retire | Step::Reinstate) {
                actions.push(Action::Ask(*step));
            }
            if state.next > 0 && state.restarts < self.restarts {
                actions.push(Action::BeginAgain);
            }
        }
        actions.extend(state.request.map(|_| Action::Arrive));
    }

    pub(super) fn take(&self, state: &mut State, action: Action) {
        match action {
            Action::Grant(index, by) => {
                let service = &mut state.services[by];
                service.last += 1;
                let token = service.last;
                state.grants += 1;
                let order = state.grants;
                let in_place = by == state.to && self.is_done(state);
                let in_place = in_place.then_some(state.handovers);
                state.acquisitions[index] = Acquisition::Granted {
                    by,
                    token,
                    order,
                    in_place,
                };
                state.came_back |= by == 0 && state.handovers == 2 && self.is_done(state);
            }
            Action::Claim(index) => self.claim(state, index),
            Action::Begin(to) => {
                state.to = to;
                state.next = 0;
                state.handovers += 1;
            }
            Action::Go(step) => {
                state.next += 1;
                self.go(state, step);
            }
            Action::BeginAgain => {
                begin_again(state);
                state.restarts += 1;
            }
            Action::Ask(step) => {
                state.requests -= 1;
                state.request = request(state, step);
                begin_again(state);
            }
            Action::Arrive => {
                if let Some(request) = state.request.take() {
                    self.arrive(state, request);
                }
            }
        }
    }

    /// The rule of the store.
    fn claim(&self, state: &mut State, index: usize) {
        let Acquisition::Granted {
            by,
            token,
            order,
            in_place,
        } = state.acquisitions[index]
        else {
            return;
        };
        let raises = |mark: Mark| mark.issuer == by && token > mark.token;
        let accepted = state.issuer == by && state.mark.is_none_or(raises);
        let others = state.acquisitions;
        if accepted {
            let is_later = |other: &Acquisition| match other {
                Acquisition::Claimed { order: its } => *its > order,
                _ => false,
            };
            state.late_claim |= others.iter().any(is_later);
            state.mark = Some(Mark { issuer: by, token });
            state.acquisitions[index] = Acquisition::Claimed { order };
        } else {
            let is_latest = order == state.grants;
            let in_place = in_place == Some(state.handovers) && self.is_done(state);
            state.locked_out |= is_latest && in_place;
            state.acquisitions[index] = Acquisition::Refused;
        }
    }
    fn go(&self, state: &mut State, step: Step) {
        let (to, from) = (state.to, 1 - state.to);
        let above_the_mark = state.mark.map_or(0, |mark| mark.token) + 1;
        match step {
            Step::Retire | Step::Reinstate => {
                if let Some(request) = request(state, step) {
                    self.arrive(state, request);
                }
            }
            Step::Look => {
                let issued = state.services.iter().map(|service| service.last + 1);
                state.floor = issued.fold(above_the_mark, std::cmp::max);
            }
            Step::LookAtTheMark => state.floor = above_the_mark,
            Step::ChangeIssuer => state.issuer = to,
            Step::SealMark => {
                let sealed = state.mark.filter(|mark| mark.issuer == from);
                if let Some(mark) = sealed {
                    let token = std::cmp::max(mark.token, below(state.floor));
                    state.mark = Some(Mark { issuer: to, token });
                }
            }
        }
    }

    /// The behaviour of a service.
    fn arrive(&self, state: &mut State, request: Request) {
        let service = &mut state.services[request.service];
        if self.late.is_compared() && service.changes != request.seen {
            return;
        }
        let retired = request.floor.is_none();
        service.changes += u8::from(self.late.counts(retired != service.retired));
        service.retired = retired;
        let floor = request.floor.map_or(0, below);
        service.last = std::cmp::max(service.last, floor);
    }
}

/// The request that a step sends to a service.
fn request(state: &State, step: Step) -> Option<Request> {
    let (service, floor) = match step {
        Step::Retire => (1 - state.to, None),
        Step::Reinstate => (state.to, Some(state.floor)),
        _ => return None,
    };
    let seen = state.services[service].changes;
    Some(Request {
        service,
        floor,
        seen,
    })
}

fn begin_again(state: &mut State) {
    state.next = 0;
    state.floor = 0;
}

/// The last token below a floor.
const fn below(floor: Token) -> Token {
    floor.saturating_sub(1)
}
