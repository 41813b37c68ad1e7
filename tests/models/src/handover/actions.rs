use super::{Acquisition, Broken, Handover, Lift, MARGIN, Mark, State, Step, Token};

/// One step of an acquisition, or of the operator who hands over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// A service grants this token to a new acquisition, or to an acquisition that was refused as
    /// stale.
    Grant {
        /// The number of the acquisition.
        to: usize,
        /// The service.
        by: usize,
        /// The token.
        token: u8,
    },
    /// The token is claimed in the store.
    Claim(usize),
    /// A holder who has claimed writes.
    Write(usize),
    /// An operator begins to hand over to the other service.
    Begin,
    /// The next step of the handover.
    Go(Step),
    /// The operator was killed, and begins again.
    BeginAgain,
}

impl Handover {
    pub(super) fn possible(&self, state: &State, actions: &mut Vec<Action>) {
        for (index, acquisition) in state.acquisitions.iter().enumerate() {
            match acquisition {
                // Acquisitions are alike: they begin in the order of their numbers.
                Acquisition::Idle => {
                    if index == 0 || state.acquisitions[index - 1] != Acquisition::Idle {
                        for by in 0..2 {
                            self.possible_grants(state, index, by, 0, actions);
                        }
                    }
                }
                Acquisition::Stale { by, mark, .. } => {
                    let least = match self.lift {
                        Lift::AboveTheMark => mark + 1,
                        Lift::Anywhere => 0,
                    };
                    self.possible_grants(state, index, *by, least, actions);
                }
                Acquisition::Granted { .. } => actions.push(Action::Claim(index)),
                Acquisition::Claimed { .. } => actions.push(Action::Write(index)),
                Acquisition::Refused => {}
            }
        }
        // An operator who turns back does not finish what was begun.
        if state.handovers < 2 && !state.refused {
            actions.push(Action::Begin);
        }
        if state.handovers > 0
            && !state.refused
            && let Some(step) = self.steps(state).get(state.next)
        {
            actions.push(Action::Go(*step));
            if state.next > 0 && state.restarts < self.restarts {
                actions.push(Action::BeginAgain);
            }
        }
    }

    /// The next token, or a token that was asked for, or the clock, if a service follows the clock.
    fn possible_grants(
        &self,
        state: &State,
        to: usize,
        by: usize,
        least: Token,
        actions: &mut Vec<Action>,
    ) {
        let next = std::cmp::max(state.last[by] + 1, least);
        actions.push(Action::Grant {
            to,
            by,
            token: next,
        });
        let clock = state.grants + 1;
        if clock > next {
            let token = clock;
            actions.push(Action::Grant { to, by, token });
        }
    }

    pub(super) fn take(&self, state: &mut State, action: Action) {
        match action {
            Action::Grant { to, by, token } => self.grant(state, to, by, token),
            Action::Claim(index) => self.claim(state, index),
            Action::Write(index) => self.write(state, index),
            Action::Begin => {
                state.to = 1 - state.to;
                state.next = 0;
                state.handovers += 1;
            }
            Action::Go(step) => {
                state.next += 1;
                go(state, step);
            }
            Action::BeginAgain => {
                state.next = 0;
                state.above = 0;
                state.restarts += 1;
            }
        }
    }

    fn grant(&self, state: &mut State, to: usize, by: usize, token: Token) {
        let again = match state.acquisitions[to] {
            Acquisition::Stale { again, .. } => again,
            _ => None,
        };
        state.last[by] = token;
        state.grants += 1;
        let in_place = by == state.to && self.is_done(state) && !state.refused;
        state.acquisitions[to] = Acquisition::Granted {
            by,
            token,
            order: state.grants,
            again,
            in_place: in_place.then_some(state.handovers),
        };
    }

    /// The rule of the store.
    fn claim(&self, state: &mut State, index: usize) {
        let Acquisition::Granted {
            by,
            token,
            order,
            again,
            in_place,
        } = state.acquisitions[index]
        else {
            return;
        };
        let is_ours = |mark: Mark| mark.issuer == by;
        let is_of_issuer = state.issuer == by && state.mark.is_none_or(is_ours);
        let mark = state.mark.map_or(0, |mark| mark.token);
        if is_of_issuer && token > mark {
            if claimed(state).any(|later| later > order) {
                state.broken = Some(Broken::LateClaim);
            } else if self.is_in_place(state) && by != state.to {
                state.broken = Some(Broken::Replaced);
            }
            let holder = Some(index);
            state.mark = Some(Mark {
                issuer: by,
                token,
                holder,
            });
            state.acquisitions[index] = Acquisition::Claimed { by, order };
            state.was_lifted |= again.is_some() && self.is_in_place(state);
            state.came_back |= by == 0 && state.handovers == 2 && self.is_in_place(state);
            return;
        }
        let is_latest = order == state.grants;
        let now = self.is_done(state).then_some(state.handovers);
        let was_told = !is_of_issuer || again == now;
        if is_latest && now.is_some() && in_place == now && was_told {
            state.broken = Some(Broken::LockedOut);
        }
        let again = now.filter(|_| by == state.to);
        state.acquisitions[index] = match is_of_issuer {
            true => Acquisition::Stale { by, mark, again },
            false => Acquisition::Refused,
        };
    }

    /// A transaction enters if the mark shows its grant.
    fn write(&self, state: &mut State, index: usize) {
        let Acquisition::Claimed { by, order } = state.acquisitions[index] else {
            return;
        };
        if state.mark.and_then(|mark| mark.holder) != Some(index) {
            return;
        }
        if claimed(state).any(|later| later > order) {
            state.broken = Some(Broken::LateWrite);
        } else if self.is_in_place(state) && by != state.to {
            state.broken = Some(Broken::Replaced);
        }
    }
}

/// The order of the grants that were claimed.
fn claimed(state: &State) -> impl Iterator<Item = u8> + '_ {
    state.acquisitions.iter().filter_map(|other| match other {
        Acquisition::Claimed { order, .. } => Some(*order),
        _ => None,
    })
}

fn go(state: &mut State, step: Step) {
    let (to, from) = (state.to, 1 - state.to);
    let mark = state.mark.map_or(0, |mark| mark.token);
    let above_the_clock = std::cmp::max(mark, state.grants + MARGIN);
    match step {
        Step::Probe => state.refused = state.last[to] > above_the_clock,
        Step::ChangeIssuer => state.issuer = to,
        Step::Choose => state.above = above_the_clock,
        Step::ChooseTheMark => state.above = mark,
        Step::SealMark | Step::RaiseMark => {
            if let Some(mark) = state.mark.filter(|mark| mark.issuer == from) {
                state.mark = Some(Mark {
                    issuer: to,
                    token: std::cmp::max(mark.token, state.above),
                    holder: mark.holder.filter(|_| step == Step::RaiseMark),
                });
            }
        }
    }
}
