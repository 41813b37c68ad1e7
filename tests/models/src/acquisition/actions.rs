//! The actions of callers, of the server, of the network and of time.

use std::cmp::max;

use lock_core::{
    ErrorKind, Outcome,
    backend::{Event, Failure, Reply, Wake},
};

use super::{
    Flaw, LONG, Machines, May, NOW, State, Waking,
    database::Step,
    server::Copy,
    state::{Client, Lie, Stage},
    ticks,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Start {
        client: usize,
        hears: bool,
    },
    /// The server runs the request whose answer is awaited.
    Run(usize),
    /// The server runs a copy of a request, whose answer is not awaited. The copy may arrive once
    /// more.
    RunLate(usize, Copy),
    /// An answer arrives, perhaps the answer to the second of two copies.
    Answer {
        client: usize,
        copied: bool,
    },
    /// The connection breaks. A request that was sent may arrive later.
    Lose(usize),
    /// The request cannot be sent.
    Refuse(usize),
    /// Without [`May::RunLate`]: the request is late, and its answer does not arrive.
    Delay(usize),
    /// A wake-up arrives. It may arrive once more.
    Wake(usize, Wake),
    Due(usize),
    /// The caller goes away, or drops its guard.
    Leave(usize),
    /// The caller gives up its lease, and waits for the answer.
    GiveUp(usize),
    Release(usize),
    /// A holder renews.
    Renew(usize),
    /// The manager shuts down.
    Close(usize),
    /// A process dies, or only one of its attempts does nothing any more.
    Die {
        client: usize,
        looks: bool,
    },
    /// PostgreSQL: a waiter that does not look was silent for so long that it loses its place.
    PassOver(usize),
    /// The channel of a process breaks, and there is another one.
    Cut(usize),
    Mend(usize),
    /// Only with [`Flaw::OldSnapshot`]: the function begins to wait for its mutex.
    Snapshot(usize),
    /// Only with [`Flaw::TombstoneGoesFirst`]: the tombstones of an attempt are deleted.
    Forget(usize),
    Database(Step),
    /// The common task of the waiters finds that it is the turn of this waiter.
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
            self.possible_for_request(state, client, actions);
            self.possible_for_caller(state, client, actions);
            self.possible_for_process(state, client, actions);
        }
        if self.waking == Waking::Hints {
            if state.silent {
                actions.push(Action::Speak);
            } else if state.faults > 0 && state.clients.iter().any(|it| it.waits()) {
                actions.push(Action::Silence);
            }
        }
        let mut steps = Vec::new();
        self.possible_for_database(state, &mut steps);
        actions.extend(steps.into_iter().map(Action::Database));
        let is_sent = |it: &Client| it.sent.is_some() && it.reply.is_none();
        let runs = !self.may(May::RunLate) && state.clients.iter().any(is_sent);
        // Timers are not late; everything else may be.
        if !is_due && !runs {
            actions.push(Action::Tick);
        }
    }

    fn possible_for_request(&self, state: &State, client: usize, actions: &mut Vec<Action>) {
        let it = &state.clients[client];
        let Some((copy, _)) = it.sent else { return };
        if it.reply.is_some() {
            let copied = false;
            actions.push(Action::Answer { client, copied });
            if state.faults > 0 {
                let copied = true;
                actions.push(Action::Answer { client, copied });
            }
        } else {
            actions.push(Action::Run(client));
            let is_look = matches!(copy, Copy::Look { .. });
            if self.is(Flaw::OldSnapshot) && is_look && it.snapshot.is_none() {
                actions.push(Action::Snapshot(client));
            }
        }
        if state.faults > 0 {
            actions.push(Action::Lose(client));
            if it.reply.is_none() {
                actions.push(Action::Refuse(client));
                if !self.may(May::RunLate) {
                    actions.push(Action::Delay(client));
                }
            }
        }
    }

    fn possible_for_caller(&self, state: &State, client: usize, actions: &mut Vec<Action>) {
        let it = &state.clients[client];
        let wakes = it.wakes.iter();
        actions.extend(wakes.map(|wake| Action::Wake(client, *wake)));
        let leave = self.may(May::Leave);
        match it.stage {
            Stage::New => {
                let hears = true;
                actions.push(Action::Start { client, hears });
                if self.may(May::BeDeaf) {
                    let hears = false;
                    actions.push(Action::Start { client, hears });
                }
            }
            Stage::Waiting => {
                if leave {
                    actions.push(Action::Leave(client));
                }
                if leave && !it.is_closed {
                    actions.push(Action::Close(client));
                }
                if self.may_stir(state, client) {
                    actions.push(Action::Stir(client));
                }
            }
            Stage::Holding(_) => {
                actions.push(Action::Release(client));
                if leave {
                    actions.extend([Action::Leave(client), Action::GiveUp(client)]);
                }
                if self.may(May::Renew) {
                    actions.push(Action::Renew(client));
                }
            }
            Stage::GivingBack(_) if leave => actions.push(Action::Leave(client)),
            _ => {}
        }
    }

    /// The end of a process, and of its channel.
    fn possible_for_process(&self, state: &State, client: usize, actions: &mut Vec<Action>) {
        let (it, process) = (&state.clients[client], self.process(client));
        if !state.had_accident && it.waits() {
            for (may, looks) in [(May::Die, false), (May::Idle, true)] {
                if self.may(may) {
                    actions.push(Action::Die { client, looks });
                }
            }
        }
        if self.may_pass_over(state, client) {
            actions.push(Action::PassOver(client));
        }
        if process == client && self.may(May::Cut) {
            if state.server.unreached.contains(process) {
                actions.push(Action::Mend(process));
            } else if !state.had_accident {
                actions.push(Action::Cut(process));
            }
        }
        if self.is(Flaw::TombstoneGoesFirst) && state.server.tables.ended.contains(client) {
            actions.push(Action::Forget(client));
        }
    }

    /// Whether it is the turn of this attempt, or it has no place.
    fn is_turn(&self, state: &State, client: usize) -> bool {
        let server = &state.server;
        let mut places = server.queue.iter();
        let first = places.next().filter(|_| server.tables.living().is_none());
        first.is_some_and(|place| place.attempts.contains(client)) || !server.has_place(client)
    }

    /// Whether the common task would wake this waiter.
    pub(super) fn may_stir(&self, state: &State, client: usize) -> bool {
        let it = &state.clients[client];
        let looks = self.waking == Waking::Hints && !self.is(Flaw::NoneStirred) && !state.silent;
        looks && it.waits() && it.sent.is_none() && self.is_turn(state, client)
    }

    /// Whether an attempt loses its place. Looks of its process are signs of life only of attempts
    /// that wait and whose turn has not come.
    pub(super) fn may_pass_over(&self, state: &State, client: usize) -> bool {
        let silent = match state.clients[client].stage {
            Stage::Waiting => false,
            Stage::Dead { looks: true } => {
                !self.is(Flaw::IdleStaysFirst) && self.is_turn(state, client)
            }
            _ => true,
        };
        silent && self.waking == Waking::Hints && state.server.has_place(client)
    }

    pub(super) fn take(&self, state: &mut State, action: Action) {
        match action {
            Action::Start { client, hears } => self.start(state, client, hears),
            Action::Run(client) => {
                if let Some((copy, asked)) = state.clients[client].sent {
                    let reply = self.run(state, client, copy, Some(asked));
                    state.clients[client].reply = Some(reply);
                    if !self.may(May::AnswerLate) {
                        self.replied(state, client, false);
                    }
                }
            }
            Action::RunLate(client, copy) => {
                self.run(state, client, copy, None);
            }
            Action::Answer { client, copied } => self.replied(state, client, copied),
            Action::Lose(client) => {
                let it = &mut state.clients[client];
                it.late.extend(it.sent.map(|(copy, _)| copy));
                self.fail(state, client, Outcome::Unknown);
            }
            Action::Refuse(client) => self.fail(state, client, Outcome::NotApplied),
            Action::Delay(client) => {
                state.faults -= 1;
                state.clients[client].stop_awaiting();
            }
            Action::Wake(client, wake) => self.wake(state, client, wake),
            Action::Due(client) => self.on(state, client, Event::Due),
            Action::Leave(client) => self.leave(state, client),
            Action::GiveUp(client) => self.give_back(state, client, Event::GiveUp),
            Action::Release(client) => {
                let (acquisition, it) = (self.acquisition(client), &mut state.clients[client]);
                let lease = state.server.tables.exactly(acquisition, it.token());
                let held = it.relies();
                it.released = Some((lease.is_some(), held));
                self.give_back(state, client, Event::Release { held });
            }
            Action::Renew(client) => self.renew(state, client),
            Action::Close(client) => {
                state.clients[client].is_closed = true;
                self.on(state, client, Event::Closed);
            }
            Action::Stir(client) => self.on(state, client, Event::Woken(Wake::Look)),
            Action::Database(step) => self.step_of_database(state, step),
            Action::Tick => {
                self.age(state);
                if state.silent {
                    self.wake_all(state, Wake::Silent(NOW));
                }
            }
            rare => self.take_rare(state, rare),
        }
    }

    fn take_rare(&self, state: &mut State, action: Action) {
        match action {
            Action::Die { client, looks } => {
                state.had_accident = true;
                self.end(state, client, false);
                let it = &mut state.clients[client];
                it.stage = Stage::Dead { looks };
                // Late requests are in other scenarios. They would make the process look alive
                // without end.
                it.late.clear();
            }
            Action::PassOver(client) => state.server.leave(client),
            Action::Cut(process) => {
                state.had_accident = true;
                state.server.unreached.insert(process);
            }
            Action::Mend(process) => {
                state.server.unreached.remove(process);
                for client in 0..state.clients.len() {
                    if self.process(client) == process && state.clients[client].waits() {
                        self.on(state, client, Event::Woken(Wake::Look));
                    }
                }
            }
            Action::Snapshot(client) => {
                let tables = Box::new(state.server.tables.clone());
                state.clients[client].snapshot = Some(tables);
            }
            Action::Forget(client) => state.server.tables.ended.remove(client),
            Action::Silence => {
                state.faults -= 1;
                state.silent = true;
            }
            Action::Speak => {
                state.silent = false;
                self.wake_all(state, Wake::Heard);
            }
            other => unreachable!("{other:?} is no rare action"),
        }
    }

    fn start(&self, state: &mut State, client: usize, hears: bool) {
        let acquisition = self.acquisition(client);
        let told = state.told.iter().enumerate();
        let of_others = told.filter(|(other, _)| *other != acquisition);
        let greatest = of_others.filter_map(|(_, told)| *told).max();
        let it = &mut state.clients[client];
        it.floor = max(state.greatest, greatest.unwrap_or(0));
        it.stage = Stage::Waiting;
        self.on(state, client, Event::Started { hears });
    }

    fn leave(&self, state: &mut State, client: usize) {
        let it = &mut state.clients[client];
        let leaves_silently = self.is(Flaw::LeavesSilently) && it.waits();
        if leaves_silently || !it.machine.owes() {
            it.stop_awaiting();
            self.end(state, client, true);
        } else {
            self.go(state, client);
        }
    }

    /// Whether this wake-up brings a grant of Redis, which is sent back if its attempt does not
    /// wait.
    pub(super) fn is_push(&self, wake: &Wake) -> bool {
        let grant = matches!(wake, Wake::Offered(_) | Wake::Granted(_));
        grant && self.waking == Waking::Offers
    }

    /// A wake-up arrives. If no waiter of this process awaits a push, the client sends it back.
    fn wake(&self, state: &mut State, client: usize, wake: Wake) {
        let it = &mut state.clients[client];
        let unregistered = self.is(Flaw::RegistersLate) && it.sent.is_some();
        let (Wake::Offered(grant) | Wake::Granted(grant)) = wake else {
            return self.on(state, client, Event::Woken(wake));
        };
        // The answer to a release arrives once.
        if self.is_push(&wake) && matches!(wake, Wake::Granted(_)) && !self.is(Flaw::HandedTwice) {
            it.wakes.retain(|other| *other != wake);
        }
        if !self.is_push(&wake) || it.waits() && !unregistered {
            return self.on(state, client, Event::Woken(wake));
        }
        it.wakes.retain(|other| *other != wake);
        let is_sibling = |other: &usize| {
            let its = self.acquisition(*other) == self.acquisition(client);
            its && *other != client && state.clients[*other].waits()
        };
        match (0..state.clients.len()).find(is_sibling) {
            Some(other) if self.is(Flaw::PushMatchesAcquisition) => {
                self.on(state, other, Event::Woken(wake));
            }
            _ => {
                let send_back = Copy::SendBack(grant.token.get());
                state.clients[client].late.insert(send_back);
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
        (it.sent, it.reply, it.snapshot) = (None, None, None);
        let kind = ErrorKind::Unavailable;
        let reply = Reply::Failed(Failure { kind, outcome });
        let copied = false;
        self.on(state, client, Event::Replied { reply, copied });
    }

    fn wake_all(&self, state: &mut State, wake: Wake) {
        for client in 0..state.clients.len() {
            if !state.clients[client].waits() {
                continue;
            }
            self.on(state, client, Event::Woken(wake));
            let it = &state.clients[client];
            let rests = it.waits() && it.sent.is_none();
            let unbounded = rests && it.until > NOW + ticks(LONG);
            let is_silent = matches!(wake, Wake::Silent(_));
            state.blame(Lie::SilenceUnbounded, is_silent && unbounded);
        }
    }
}
