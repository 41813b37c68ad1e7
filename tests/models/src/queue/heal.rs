//! From any state, if no more faults happen, a client that goes on gets what it wants.

use super::{Action, Attempt, Client, Queue, State, messages::Answer, state::Phase};

impl Queue {
    /// Whether the clients among `alive` finish all their attempts while the others stay silent for
    /// ever. Holders release, waiters poll, leases of silent clients run out.
    pub(crate) fn can_finish(&self, state: &State, alive: &[Client]) -> bool {
        let mut state = state.clone();
        state.answers.clear();
        let mut expiries = 0;
        let mut polled = Vec::new();
        while self.is_unfinished(&state, alive) {
            if let Some(action) = self.pending(&state, alive, &mut polled) {
                self.perform(&mut state, action);
            } else if state.server.lease.is_some() && expiries < 8 {
                expiries += 1;
                polled.clear();
                self.perform(&mut state, Action::Expire);
            } else {
                return false;
            }
        }
        true
    }

    fn is_unfinished(&self, state: &State, alive: &[Client]) -> bool {
        (0..self.attempts.len()).any(|attempt| {
            let done = matches!(state.phases[attempt], Phase::Idle | Phase::Ended);
            alive.contains(&self.client(attempt)) && !done
        })
    }

    /// The next action of one of these clients. Each waiter polls once.
    fn pending(
        &self,
        state: &State,
        alive: &[Client],
        polled: &mut Vec<Attempt>,
    ) -> Option<Action> {
        let lives = |attempt: Attempt| alive.contains(&self.client(attempt));
        let cut_off = alive
            .iter()
            .find(|client| !state.connected.contains(**client));
        if let Some(client) = cut_off {
            return Some(Action::Reconnect(*client));
        }
        let mut answers = state.answers.iter();
        if let Some(answer) = answers.find(|answer: &&Answer| lives(answer.to())) {
            return Some(Action::Receive(*answer));
        }
        let mut requests = state.next_requests(self);
        if let Some(request) = requests.find(|request| lives(request.by())) {
            return Some(Action::Run(request));
        }
        for attempt in (0..self.attempts.len()).filter(|attempt| lives(*attempt)) {
            match state.phases[attempt] {
                Phase::Idle | Phase::Ended => {}
                Phase::Unregistered => return Some(Action::Register(attempt)),
                Phase::Holding { .. } => {
                    polled.clear();
                    return Some(Action::Release(attempt));
                }
                Phase::Waiting if polled.contains(&attempt) || !self.may_send(state, attempt) => {}
                Phase::Waiting => {
                    polled.push(attempt);
                    return Some(Action::Send(attempt));
                }
                _ => return Some(Action::Send(attempt)),
            }
        }
        None
    }
}
