//! The actions that are possible, and their effects.

use super::{
    Attempt, Client, Flaw, Queue, State,
    messages::{Answer, Request},
    scripts::execute,
    state::{Phase, insert_sorted},
    watch::Ran,
};

/// One step of a participant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// A caller begins an attempt, and the first request goes out.
    Begin(Attempt),
    /// Only with [`Flaw::RegistersLate`]: pushes find the attempt from now on.
    Register(Attempt),
    /// A client sends, or sends again, the request that is due: a poll, a confirm, an end.
    Send(Attempt),
    /// The caller drops the future of an attempt that has returned nothing yet.
    GiveUp(Attempt),
    /// The holder releases.
    Release(Attempt),
    /// The server runs the oldest request of a connection.
    Run(Request),
    /// The server runs a request of a connection that was given up long ago.
    RunLate(Request),
    /// Such a request never arrives.
    LoseLate(Request),
    /// A client receives an answer or a push.
    Receive(Answer),
    /// The lease runs out.
    Expire,
    /// The connection of a client breaks; the server sees it at once, or not for a long time.
    Cut {
        /// Whose connection.
        client: Client,
        /// Whether the server notices.
        noticed: bool,
    },
    /// A client has a new connection and has subscribed again.
    Reconnect(Client),
}

impl Queue {
    /// All actions that are possible in a state.
    pub(crate) fn possible(&self, state: &State, actions: &mut Vec<Action>) {
        for attempt in 0..self.attempts.len() {
            self.possible_for(state, attempt, actions);
        }
        actions.extend(state.next_requests(self).map(Action::Run));
        for request in &state.late {
            actions.push(Action::RunLate(*request));
            actions.push(Action::LoseLate(*request));
        }
        for answer in &state.answers {
            actions.push(Action::Receive(*answer));
        }
        if state.expiries_left > 0 && state.server.lease.is_some() {
            actions.push(Action::Expire);
        }
        for client in 0..self.clients() {
            if !state.connected.contains(client) {
                actions.push(Action::Reconnect(client));
            } else if state.cuts_left > 0 {
                actions.push(Action::Cut {
                    client,
                    noticed: true,
                });
                actions.push(Action::Cut {
                    client,
                    noticed: false,
                });
            }
        }
    }

    fn possible_for(&self, state: &State, attempt: Attempt, actions: &mut Vec<Action>) {
        match state.phases[attempt] {
            Phase::Idle if self.is_next_to_begin(state, attempt) => {
                actions.push(Action::Begin(attempt));
            }
            Phase::Idle => {}
            Phase::Unregistered => actions.push(Action::Register(attempt)),
            Phase::Waiting | Phase::Confirming(_) => actions.push(Action::GiveUp(attempt)),
            Phase::Holding { .. } => actions.push(Action::Release(attempt)),
            Phase::Releasing(..) | Phase::Cancelling | Phase::Ended => {}
        }
        if self.may_send(state, attempt) {
            actions.push(Action::Send(attempt));
        }
    }

    /// Attempts that are alike begin in the order of their numbers: any other order is the same
    /// story with other names.
    fn is_next_to_begin(&self, state: &State, attempt: Attempt) -> bool {
        let turn = attempt <= self.alike.start
            || attempt >= self.alike.end
            || state.phases[attempt - 1] != Phase::Idle;
        let given_up = |first: Attempt| {
            matches!(state.phases[first], Phase::Cancelling | Phase::Ended)
                && state.watch.returned[first].is_none()
        };
        turn && self.attempts[attempt].after.is_none_or(given_up)
    }

    /// Whether there is a request to send that is not already on its way. It may have been sent
    /// before: its answer may be slow or lost.
    pub(crate) fn may_send(&self, state: &State, attempt: Attempt) -> bool {
        let Some(due) = state.due(attempt) else {
            return false;
        };
        let client = self.client(attempt);
        let queued = state.server.entry_of(self.acquisition(attempt)).is_some();
        let never = self.is(Flaw::NeverPolls) && due == Request::Acquire(attempt) && queued;
        state.connected.contains(client) && !state.requests.contains(&due) && !never
    }

    /// Takes one step.
    pub(crate) fn perform(&self, state: &mut State, action: Action) {
        match action {
            Action::Begin(attempt) => self.begin(state, attempt),
            Action::Register(attempt) => state.phases[attempt] = Phase::Waiting,
            Action::Send(attempt) => self.send_due(state, attempt),
            Action::GiveUp(attempt) => self.cancel(state, attempt),
            Action::Release(attempt) => self.release(state, attempt),
            Action::Run(request) => {
                take(&mut state.requests, request);
                self.run(state, request, false);
            }
            Action::RunLate(request) => {
                take(&mut state.late, request);
                self.run(state, request, true);
            }
            Action::LoseLate(request) => take(&mut state.late, request),
            Action::Receive(answer) => {
                take(&mut state.answers, answer);
                self.receive(state, answer);
            }
            Action::Expire => {
                state.expiries_left = state.expiries_left.saturating_sub(1);
                state.watch.expires(self, &state.server);
                state.server.expire(self);
            }
            Action::Cut { client, noticed } => self.cut(state, client, noticed),
            Action::Reconnect(client) => self.reconnect(state, client),
        }
        state.forget_deaf(self);
    }

    fn run(&self, state: &mut State, request: Request, late: bool) {
        let before = state.server.clone();
        let outcome = execute(self, &mut state.server, request);
        let ran = Ran {
            request,
            before,
            reply: outcome.reply,
            late,
        };
        state.watch_script(self, &ran);
        if let (Some(reply), false) = (outcome.reply, late) {
            state.answer(self, reply);
        }
        if let Some(push) = outcome.push {
            state.answer(self, push);
        }
    }

    fn cut(&self, state: &mut State, client: Client, noticed: bool) {
        state.cuts_left -= 1;
        state.connected.remove(client);
        if noticed {
            state.server.subscribed.remove(client);
        }
        let is_cut = |request: &mut Request| self.client(request.by()) == client;
        for request in state.requests.extract_if(.., is_cut) {
            insert_sorted(&mut state.late, request);
        }
        state
            .answers
            .retain(|answer| self.client(answer.to()) != client);
    }

    fn reconnect(&self, state: &mut State, client: Client) {
        state.connected.insert(client);
        state.server.subscribed.insert(client);
        if self.kills {
            state
                .late
                .retain(|request| self.client(request.by()) != client);
        }
        for attempt in 0..self.attempts.len() {
            if self.client(attempt) == client {
                self.send_due(state, attempt);
            }
        }
    }
}

fn take<T: PartialEq>(items: &mut Vec<T>, item: T) {
    if let Some(position) = items.iter().position(|other| *other == item) {
        items.remove(position);
    }
}
