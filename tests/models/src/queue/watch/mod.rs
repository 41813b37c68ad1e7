//! What an observer who sees everything remembers, in order to judge each step. Nothing in the
//! protocol reads it.

mod scripts;

pub(crate) use self::scripts::Ran;
use super::{Attempt, MOST_ATTEMPTS, Queue, State, Token, server::Server};
use crate::set::Set;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Watch {
    /// For each attempt the token that its caller was told.
    pub(crate) returned: [Option<Token>; MOST_ATTEMPTS],
    /// For each attempt the greatest token that a caller of another acquisition had been told when
    /// it began.
    floors: [Token; MOST_ATTEMPTS],
    /// Clients that let a provisional lease run out, or could not be reached, since they last
    /// polled.
    silent: Set,
    /// The lease was pushed, and its client has not been heard of since.
    unheard: bool,
    /// The faults of past steps, as numbers of [`Fault`].
    faults: Set,
    /// What was remarkable about the last step.
    pub(crate) note: Option<Note>,
}

/// A step that must not happen, whatever state it leads to. `properties` says which promise each of
/// them breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    OutOfOrder,
    Duplicate,
    SecondToken,
    ReplayActed,
    StrangerTouched,
    OtherAttemptEnded,
    EndedUnderHolder,
    Overtaken,
    PauseIsDear,
    RefusedForNothing,
    LeftFree,
}

/// A step that a scenario must be able to take; otherwise it is too small to show anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Note {
    /// A poll told a waiter what a push should have told it.
    PollFoundGrant,
    /// A client was set aside for a provisional lease that ran out, and another waiter granted.
    SetAside,
    /// A waiter that had been set aside was granted at its old place.
    BackInLine,
    /// A late acquire arrived after the end and was refused.
    LateRefused,
}

impl Watch {
    pub(crate) fn new() -> Self {
        Self {
            returned: [None; MOST_ATTEMPTS],
            floors: [0; MOST_ATTEMPTS],
            silent: Set::EMPTY,
            unheard: false,
            faults: Set::EMPTY,
            note: None,
        }
    }

    /// Before a lease runs out.
    pub(crate) fn expires(&mut self, queue: &Queue, server: &Server) {
        let Some(lease) = server.lease else {
            return;
        };
        if !lease.provisional {
            self.blame(Fault::PauseIsDear, self.unheard);
            return;
        }
        let entry = server.entry_of(lease.acquisition);
        let asked = lease.attempts.members().next();
        if let Some(attempt) = entry.map(|entry| entry.latest).or(asked) {
            self.silent.insert(queue.client(attempt));
        }
    }

    fn blame(&mut self, fault: Fault, wrong: bool) {
        if wrong {
            self.faults.insert(fault as usize);
        }
    }

    /// Notes a step that the scenario has to show.
    pub(crate) fn note_down(&mut self, queue: &Queue, note: Note) {
        if queue.shows(note) {
            self.note = Some(note);
        }
    }

    /// Whether a step was wrong in this way.
    pub(crate) fn has_seen(&self, fault: Fault) -> bool {
        self.faults.contains(fault as usize)
    }
}

impl State {
    /// When an attempt begins.
    pub(crate) fn watch_begin(&mut self, queue: &Queue, attempt: Attempt) {
        let others = self.returned_by_others(queue, attempt);
        self.watch.floors[attempt] = others.into_iter().max().unwrap_or(0);
    }

    /// Before a caller is told its token.
    pub(crate) fn watch_return(&mut self, queue: &Queue, attempt: Attempt, token: Token) {
        let others = self.returned_by_others(queue, attempt);
        let second = (0..queue.attempts.len())
            .filter(|other| queue.acquisition(*other) == queue.acquisition(attempt))
            .filter_map(|other| self.watch.returned[other])
            .any(|returned| returned != token);
        let watch = &mut self.watch;
        watch.blame(Fault::OutOfOrder, token <= watch.floors[attempt]);
        watch.blame(Fault::Duplicate, others.contains(&token));
        watch.blame(Fault::SecondToken, second);
        watch.returned[attempt] = Some(token);
        watch.floors[attempt] = 0;
    }

    /// Before an attempt is told that it has ended.
    pub(crate) fn watch_refusal(&mut self, queue: &Queue, attempt: Attempt) {
        let ended = self
            .server
            .ended_acquisitions
            .contains(queue.acquisition(attempt));
        self.watch.blame(Fault::RefusedForNothing, !ended);
    }

    fn returned_by_others(&self, queue: &Queue, attempt: Attempt) -> Vec<Token> {
        (0..queue.attempts.len())
            .filter(|other| queue.acquisition(*other) != queue.acquisition(attempt))
            .filter_map(|other| self.watch.returned[other])
            .collect()
    }
}
