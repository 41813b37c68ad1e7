//! The actions of callers, of the server, of the network and of time.

use lock_core::{
    ErrorKind, Outcome,
    backend::{Event, Failure, Reply, Wake},
};

use super::{Flaw, LONG, Machines, NOW, Stage, State, Waking, server::Copy, ticks};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Start {
        client: usize,
        hears: bool,
    },
    /// The server runs the request whose answer is awaited.
    Run(usize),
    /// The same for a copy whose answer is not awaited. It may arrive once more.
    RunLate(usize, Copy),
    /// An answer arrives. Perhaps it is that of the second of two copies.
    Answer {
        client: usize,
        copied: bool,
    },
    /// The connection breaks. A request that was sent may arrive later.
    Lose(usize),
    /// The request cannot be sent.
    Refuse(usize),
    /// A wake-up arrives. It may arrive once more.
    Wake(usize, Wake),
    Due(usize),
    /// The caller goes away, or drops its guard.
    Leave(usize),
    /// The caller gives its lease up, and waits for that.
    GiveUp(usize),
    Release(usize),
    /// The manager shuts down.
    Close(usize),
    /// The common task of the waiters finds that it is the turn of one.
    Stir(usize),
    /// The common task has no answer, or has one again.
    Silence,
    Speak,
    Tick,
}

impl Machines {
    pub(super) fn possible(&self, state: &State, actions: &mut Vec<Action>) {
        let mut is_due = false;
        for (client, it) in state.clients.iter().enumerate() {
            for copy in &it.late {
                actions.push(Action::RunLate(client, *copy));
            }
            if it.until <= NOW {
                is_due = true;
                actions.push(Action::Due(client));
            }
            self.possible_for(state, client, actions);
        }
        if self.waking == Waking::Hints {
            if state.silent {
                actions.push(Action::Speak);
            } else if state.faults > 0 && state.clients.iter().any(|it| it.stage == Stage::Waiting)
            {
                actions.push(Action::Silence);
            }
        }
        // Timers are not late; everything else may be.
        if !is_due {
            actions.push(Action::Tick);
        }
    }

    fn possible_for(&self, state: &State, client: usize, actions: &mut Vec<Action>) {
        let it = &state.clients[client];
        match (it.sent, it.reply) {
            (Some(_), None) => actions.push(Action::Run(client)),
            (Some(_), Some(_)) => {
                let copied = false;
                actions.push(Action::Answer { client, copied });
                if state.faults > 0 {
                    let copied = true;
                    actions.push(Action::Answer { client, copied });
                }
            }
            (None, _) => {}
        }
        if it.sent.is_some() && state.faults > 0 {
            actions.push(Action::Lose(client));
            if it.reply.is_none() {
                actions.push(Action::Refuse(client));
            }
        }
        match it.stage {
            Stage::New => {
                let hears = true;
                actions.push(Action::Start { client, hears });
                if self.deaf {
                    let hears = false;
                    actions.push(Action::Start { client, hears });
                }
            }
            Stage::Waiting => {
                let wakes = it.wakes.iter();
                actions.extend(wakes.map(|wake| Action::Wake(client, *wake)));
                if self.leave {
                    actions.push(Action::Leave(client));
                }
                if self.leave && !it.is_closed {
                    actions.push(Action::Close(client));
                }
                if self.may_stir(state, client) {
                    actions.push(Action::Stir(client));
                }
            }
            Stage::Holding(_) => {
                actions.push(Action::Release(client));
                if self.leave {
                    actions.extend([Action::Leave(client), Action::GiveUp(client)]);
                }
            }
            Stage::GivingBack(_) if self.leave => actions.push(Action::Leave(client)),
            Stage::GivingBack(_) | Stage::Background(_) | Stage::Over { .. } => {}
        }
    }

    /// Whether the common task would wake this waiter.
    pub(super) fn may_stir(&self, state: &State, client: usize) -> bool {
        let server = &state.server;
        let is_first = server.held.is_none() && server.first() == Some(client);
        let is_turn = is_first || !server.queue.contains(&client);
        let looks = self.waking == Waking::Hints && !self.is(Flaw::NobodyStirred);
        looks && !state.silent && is_turn && state.clients[client].sent.is_none()
    }

    pub(super) fn take(&self, state: &mut State, action: Action) {
        match action {
            Action::Start { client, hears } => {
                let greatest = state.greatest;
                let it = &mut state.clients[client];
                (it.stage, it.floor) = (Stage::Waiting, greatest);
                self.on(state, client, Event::Started { hears });
            }
            Action::Run(client) => {
                if let Some((copy, asked)) = state.clients[client].sent {
                    let reply = self.run(state, client, copy, asked);
                    state.clients[client].reply = Some(reply);
                    if self.prompt {
                        self.replied(state, client, false);
                    }
                }
            }
            Action::RunLate(client, copy) => {
                self.run(state, client, copy, NOW);
            }
            Action::Answer { client, copied } => self.replied(state, client, copied),
            Action::Lose(client) => {
                let it = &mut state.clients[client];
                it.late.extend(it.sent.map(|(copy, _)| copy));
                self.fail(state, client, Outcome::Unknown);
            }
            Action::Refuse(client) => self.fail(state, client, Outcome::NotApplied),
            Action::Wake(client, wake) => self.on(state, client, Event::Woken(wake)),
            Action::Due(client) => self.on(state, client, Event::Due),
            Action::Leave(client) => {
                let it = &state.clients[client];
                let leaves_silently = self.is(Flaw::LeavesSilently) && it.stage == Stage::Waiting;
                if leaves_silently || !it.machine.owes() {
                    let it = &mut state.clients[client];
                    it.late.extend(it.sent.map(|(copy, _)| copy));
                    self.end(state, client, true);
                } else {
                    self.go(state, client);
                }
            }
            Action::GiveUp(client) => self.give_back(state, client, Event::GiveUp),
            Action::Release(client) => {
                let lived = state.server.holder() == Some(client);
                let it = &mut state.clients[client];
                let held = it.relies();
                it.released = Some((lived, held));
                self.give_back(state, client, Event::Release { held });
            }
            Action::Close(client) => {
                state.clients[client].is_closed = true;
                self.on(state, client, Event::Closed);
            }
            Action::Stir(client) => self.on(state, client, Event::Woken(Wake::Look)),
            Action::Silence => {
                state.faults -= 1;
                state.silent = true;
            }
            Action::Speak => {
                state.silent = false;
                self.wake_all(state, Wake::Heard);
            }
            Action::Tick => {
                state.age();
                self.expire(state);
                if state.silent {
                    self.wake_all(state, Wake::Silent(NOW));
                }
            }
        }
    }

    fn give_back(&self, state: &mut State, client: usize, how: Event) {
        let it = &mut state.clients[client];
        it.stage = Stage::GivingBack(it.token());
        self.on(state, client, how);
    }

    fn replied(&self, state: &mut State, client: usize, copied: bool) {
        let it = &mut state.clients[client];
        let sent = it.sent.take();
        if copied {
            state.faults -= 1;
            it.late.extend(sent.map(|(copy, _)| copy));
        }
        if let Some(reply) = it.reply.take() {
            self.on(state, client, Event::Replied { reply, copied });
        }
    }

    fn fail(&self, state: &mut State, client: usize, outcome: Outcome) {
        state.faults -= 1;
        let it = &mut state.clients[client];
        (it.sent, it.reply) = (None, None);
        let kind = ErrorKind::Unavailable;
        let reply = Reply::Failed(Failure { kind, outcome });
        let copied = false;
        self.on(state, client, Event::Replied { reply, copied });
    }

    fn wake_all(&self, state: &mut State, wake: Wake) {
        for client in 0..state.clients.len() {
            if state.clients[client].stage != Stage::Waiting {
                continue;
            }
            self.on(state, client, Event::Woken(wake));
            let it = &state.clients[client];
            let rests = it.stage == Stage::Waiting && it.sent.is_none();
            if rests && matches!(wake, Wake::Silent(_)) && it.until > NOW + ticks(LONG) {
                state.broken.insert(super::Lie::SilenceUnbounded);
            }
        }
    }
}
