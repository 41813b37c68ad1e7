//! Leases of etcd that a client uses again, one acquisition after the other.
//!
//! A holder may rely on its lease for the promised time, whatever the lease was used for before. A
//! lease is a step longer than that time. So for a while a client takes it without a request. After
//! that the client keeps it alive first. A copy of an entry may come in at any time, also when its
//! lease belongs to another acquisition. The tombstone refuses the copy, or the server does,
//! because the lease is gone.
//!
//! All acquisitions are of different resources and of one client. A revocation takes effect at any
//! time after it was decided on.

mod tests;

use stateright::{Model, Property};

/// The time that a holder is promised, and by how much the lease is longer.
const TTL: u8 = 2;
const SLACK: u8 = 1;
const LENGTH: u8 = TTL + SLACK;
const LAST: u8 = 8;
const ACQUISITIONS: usize = 3;
const LEASES: usize = 2;

/// One rule left out. The model must find each of these flaws.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flaw {
    /// A lease is taken without a request, however little time is left.
    TakenWithoutSlack,
    /// A lease is free although it is about to be revoked.
    RevokedIsFree,
    /// A tombstone is deleted while the lease of its acquisition lives.
    TombstoneGoesFirst,
    /// An acquisition that was released leaves no tombstone although a copy may come.
    NoTombstone,
    /// A lease is free although its entry, which was refused, was sent twice.
    SentTwiceIsFree,
}

/// The model, and which rule is left out.
#[derive(Clone, Debug)]
pub(crate) struct Leases {
    flaw: Option<Flaw>,
}

flawed!(Leases);

/// Everything there is at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct State {
    now: u8,
    leases: [Lease; LEASES],
    acquisitions: [Acquisition; ACQUISITIONS],
    was_used_again: bool,
    was_kept_alive: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Lease {
    /// When the lease ends on the server, if it is there.
    ends: Option<u8>,
    /// When the lease ends, as the client has counted it.
    counted: u8,
    use_of_it: Use,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
enum Use {
    #[default]
    NotGranted,
    Free,
    By(usize),
    /// The lease is about to be revoked, or was revoked.
    Over,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Acquisition {
    phase: Phase,
    /// The lease of its place in the queue.
    place: Option<usize>,
    has_tombstone: bool,
    /// The lease of a copy of its entry that is still under way.
    copy: Option<usize>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
enum Phase {
    #[default]
    Out,
    /// The holder was promised the lease until then.
    Told(u8),
    /// The acquisition was released, ended by force, or refused.
    Ended,
}

/// One step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Time goes by.
    Pass,
    /// An acquisition takes a lease, and enters.
    Enter(usize, usize),
    /// An acquisition takes a lease, and its entry is refused. The entry was sent twice.
    Refused(usize, usize),
    /// A copy of an entry comes in.
    Copy(usize),
    /// A holder gives the lock back.
    Release(usize),
    /// An operator ends a lease by force.
    Force(usize),
    /// The client does not use a lease any more.
    Retire(usize),
    /// A revocation takes effect.
    Revoke(usize),
    /// A tombstone is deleted.
    Delete(usize),
}

impl Leases {
    /// As it is built.
    pub(crate) const fn as_built() -> Self {
        Self { flaw: None }
    }

    /// Takes a lease that lives for long enough. False if the lease has ended.
    fn take(&self, state: &mut State, of: usize, number: usize) -> bool {
        let now = state.now;
        let lease = &mut state.leases[number];
        match lease.use_of_it {
            Use::NotGranted => (lease.ends, lease.counted) = (Some(now + LENGTH), now + LENGTH),
            _ if lease.counted >= now + TTL || self.is(Flaw::TakenWithoutSlack) => {
                state.was_used_again = true;
            }
            _ if lease.ends.is_some() => {
                (lease.ends, lease.counted) = (Some(now + LENGTH), now + LENGTH);
                state.was_kept_alive = true;
            }
            _ => {
                lease.use_of_it = Use::Over;
                return false;
            }
        }
        lease.use_of_it = Use::By(of);
        true
    }

    /// The client frees or retires a lease whose acquisition has ended.
    fn end(&self, state: &mut State, of: usize, is_free: bool) {
        for lease in &mut state.leases {
            if lease.use_of_it == Use::By(of) {
                lease.use_of_it = if is_free { Use::Free } else { Use::Over };
            }
        }
        let acquisition = &mut state.acquisitions[of];
        acquisition.phase = Phase::Ended;
        if acquisition.place.take().is_some() {
            acquisition.has_tombstone = !self.is(Flaw::NoTombstone);
        }
        // The client knows that its entry was sent once, and takes its tombstone back.
        if is_free && acquisition.copy.is_none() {
            acquisition.has_tombstone = false;
        }
    }
}

/// The entry, which compares that there is neither a place nor a tombstone. It leaves a tombstone
/// only if another client may know the acquisition, as is the case for the first acquisition.
fn enter(state: &mut State, of: usize, lease: usize) {
    let lives = state.leases[lease].ends.is_some();
    let acquisition = &mut state.acquisitions[of];
    if lives && acquisition.place.is_none() && !acquisition.has_tombstone {
        (acquisition.place, acquisition.has_tombstone) = (Some(lease), of == 0);
    }
}

/// A lease ends on the server, and with it the places on it.
fn ends(state: &mut State, lease: usize) {
    state.leases[lease].ends = None;
    for acquisition in &mut state.acquisitions {
        if acquisition.place == Some(lease) {
            acquisition.place = None;
        }
    }
}

impl Model for Leases {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State::default()]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if state.now < LAST {
            actions.push(Action::Pass);
        }
        for (of, acquisition) in state.acquisitions.iter().enumerate() {
            match acquisition.phase {
                Phase::Out => {
                    for (number, lease) in state.leases.iter().enumerate() {
                        if matches!(lease.use_of_it, Use::NotGranted | Use::Free) {
                            actions.push(Action::Enter(of, number));
                            actions.push(Action::Refused(of, number));
                        }
                    }
                }
                Phase::Told(_) => actions.extend([Action::Release(of), Action::Force(of)]),
                Phase::Ended if acquisition.has_tombstone => actions.push(Action::Delete(of)),
                Phase::Ended => {}
            }
            if acquisition.copy.is_some() {
                actions.push(Action::Copy(of));
            }
        }
        for (number, lease) in state.leases.iter().enumerate() {
            match lease.use_of_it {
                Use::Free => actions.push(Action::Retire(number)),
                Use::Over if lease.ends.is_some() => actions.push(Action::Revoke(number)),
                _ if self.is(Flaw::RevokedIsFree) && lease.ends.is_some() => {
                    actions.push(Action::Revoke(number));
                }
                _ => {}
            }
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Action::Pass => {
                state.now += 1;
                for lease in 0..LEASES {
                    if state.leases[lease].ends == Some(state.now) {
                        ends(&mut state, lease);
                    }
                }
            }
            Action::Enter(of, lease) => {
                if self.take(&mut state, of, lease) {
                    enter(&mut state, of, lease);
                    state.acquisitions[of].copy = Some(lease);
                    // If the lease has ended, the caller gets no promise.
                    if state.acquisitions[of].place == Some(lease) {
                        state.acquisitions[of].phase = Phase::Told(state.now + TTL);
                    } else {
                        self.end(&mut state, of, false);
                    }
                }
            }
            Action::Refused(of, lease) => {
                if self.take(&mut state, of, lease) {
                    state.acquisitions[of].copy = Some(lease);
                    self.end(&mut state, of, self.is(Flaw::SentTwiceIsFree));
                }
            }
            Action::Copy(of) => {
                let lease = state.acquisitions[of].copy.take()?;
                enter(&mut state, of, lease);
            }
            Action::Release(of) => {
                let is_there = state.acquisitions[of].place.is_some();
                self.end(&mut state, of, is_there);
            }
            Action::Force(of) => self.end(&mut state, of, self.is(Flaw::RevokedIsFree)),
            Action::Retire(lease) => state.leases[lease].use_of_it = Use::Over,
            Action::Revoke(lease) => ends(&mut state, lease),
            Action::Delete(of) => {
                let copy = state.acquisitions[of].copy;
                let lives = copy.is_some_and(|lease| state.leases[lease].ends.is_some());
                if lives && !self.is(Flaw::TombstoneGoesFirst) {
                    return None;
                }
                state.acquisitions[of].has_tombstone = false;
            }
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("for as long as promised", |_, state: &State| {
                let holds = |acquisition: &Acquisition| match acquisition.phase {
                    Phase::Told(until) => until <= state.now || acquisition.place.is_some(),
                    _ => true,
                };
                state.acquisitions.iter().all(holds)
            }),
            // A place on a lease that is over ends with the lease.
            Property::always("no place is left", |_, state: &State| {
                let is_nobodys = |acquisition: &Acquisition| {
                    let on = acquisition.place.map(|lease| state.leases[lease].use_of_it);
                    acquisition.phase == Phase::Ended && on.is_some_and(|on| on != Use::Over)
                };
                !state.acquisitions.iter().any(is_nobodys)
            }),
            Property::sometimes("a lease is used again", |_, state: &State| {
                state.was_used_again
            }),
            Property::sometimes("a lease is kept alive first", |_, state: &State| {
                state.was_kept_alive
            }),
        ]
    }
}
