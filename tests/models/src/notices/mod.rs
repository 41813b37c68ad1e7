//! The conclusions of a client of ZooKeeper from notices, without a look: that it is the first in
//! line, and that the floor has not changed.
//!
//! A server answers a client, and notifies it of changes that it watches, in the order in which the
//! changes happened. When a connection is lost, the watches report the changes since then on the
//! next connection, in any order. A slow client may not have read its notices yet.
//!
//! Numbers of transactions and of nodes are small here, and there is no clock: a lease may run
//! out at any time, and then another client deletes its node.

mod client;
mod server;
mod tests;

use stateright::{Model, Property};

use self::{client::Client, server::Server};

/// One rule is left out. The model must find each of these flaws.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flaw {
    /// Ending a lease by force deletes its node before it writes the lock directory.
    DeletesFirst,
    /// A notice is trusted although the connection was lost since the watches were set.
    ConnectionIsForgotten,
    /// The lock directory is not watched.
    DirectoryIsNotWatched,
    /// A waiter does not watch its own node.
    OwnIsNotWatched,
    /// The number that is expected next outlives the lock directory.
    NumberOutlivesDirectory,
    /// The client that released last considers itself the first, whatever its number is.
    NumberIsNotCompared,
    /// A waiter is first when the node before its own is gone, whatever other nodes were there.
    NextIsEnough,
    /// A waiter that is looking at the line does not wait for the answer when the node before its
    /// own goes meanwhile.
    AnswerIsNotAwaited,
    /// A waiter ignores the answer to its look, which may show another node before its own.
    AnswerIsNotRead,
}

/// The model: how many faults of each kind there are, and which rule is left out.
#[derive(Clone, Debug)]
pub(crate) struct Notices {
    clients: usize,
    /// All clients have read the floor at the start.
    have_read: bool,
    /// All clients stand in line at the start.
    stand_in_line: bool,
    /// How many nodes are created.
    nodes: u8,
    /// How many leases run out, and nodes of waiters are deleted.
    deleted: u8,
    /// How many leases are ended by force.
    forced: u8,
    /// How often the lock directory is deleted and made again.
    made_again: u8,
    /// How many connections are lost.
    lost: u8,
    flaw: Option<Flaw>,
}

flawed!(Notices);

/// Everything there is at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct State {
    server: Server,
    clients: Vec<Client>,
    left: Left,
    /// The issued tokens: twice the number of the node's creation, and one more for a revocation.
    issued: Vec<(u8, u8)>,
    /// A client was granted the resource without having been the first.
    passed_others: bool,
    by_number: bool,
    by_notice: bool,
}

/// The faults that are left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Left {
    nodes: u8,
    deleted: u8,
    forced: u8,
    made_again: u8,
    lost: u8,
}

/// The possible actions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// A client reads the floor.
    Read(usize),
    /// The client stands in line.
    Create(usize),
    /// The client sets its watches, or looks at the line again.
    Look(usize),
    /// The client reads its next notice.
    Hear(usize),
    /// The client deletes its node.
    Release(usize),
    /// The node at this place in line is deleted.
    Delete(usize),
    /// The lease of the first is ended by force.
    Force,
    /// The lock directory, which is empty, is deleted and made again.
    MakeAgain,
    /// A client loses its connection, and has another one.
    Reconnect(usize),
}

impl Notices {
    /// As built.
    pub(crate) const fn as_built() -> Self {
        Self {
            clients: 2,
            have_read: false,
            stand_in_line: false,
            nodes: 3,
            deleted: 1,
            forced: 1,
            made_again: 1,
            lost: 1,
            flaw: None,
        }
    }

    /// Three clients in line, whose leases are ended by force, and who lose their connections.
    pub(crate) const fn of_three() -> Self {
        Self {
            clients: 3,
            have_read: true,
            made_again: 0,
            ..Self::as_built()
        }
    }

    /// Four clients in line, any two of which may go out of turn, for flaws that need so many.
    /// There are too many states to check all of them.
    pub(crate) const fn of_four() -> Self {
        Self {
            clients: 4,
            have_read: true,
            stand_in_line: true,
            nodes: 0,
            deleted: 2,
            forced: 0,
            made_again: 0,
            lost: 0,
            flaw: None,
        }
    }
}

impl Model for Notices {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let mut state = State {
            server: Server::default(),
            clients: vec![Client::default(); self.clients],
            left: Left {
                nodes: self.nodes,
                deleted: self.deleted,
                forced: self.forced,
                made_again: self.made_again,
                lost: self.lost,
            },
            issued: Vec::new(),
            passed_others: false,
            by_number: false,
            by_notice: false,
        };
        if self.have_read {
            for number in 0..self.clients {
                state.read(number, self);
                state.hear(number, self);
            }
        }
        if self.stand_in_line {
            for number in 0..self.clients {
                state.create(number);
                state.hear(number, self);
            }
        }
        vec![state]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        for (number, client) in state.clients.iter().enumerate() {
            if client.may_read() {
                actions.push(Action::Read(number));
            }
            if client.may_create() && state.left.nodes > 0 {
                actions.push(Action::Create(number));
            }
            if client.may_look() {
                actions.push(Action::Look(number));
            }
            if client.has_heard_less() {
                actions.push(Action::Hear(number));
            }
            if client.holds() {
                actions.push(Action::Release(number));
            }
            if state.left.lost > 0 && client.may_lose_its_connection() {
                actions.push(Action::Reconnect(number));
            }
        }
        if state.left.deleted > 0 {
            actions.extend((0..state.server.line().len()).map(Action::Delete));
        }
        if state.left.forced > 0 && !state.server.line().is_empty() {
            actions.push(Action::Force);
        }
        if state.left.made_again > 0 && state.server.line().is_empty() {
            actions.push(Action::MakeAgain);
        }
    }

    fn next_state(&self, before: &State, action: Action) -> Option<State> {
        let mut state = before.clone();
        match action {
            Action::Read(number) => state.read(number, self),
            Action::Create(number) => {
                state.left.nodes -= 1;
                state.create(number);
            }
            Action::Look(number) => state.look(number, self),
            Action::Hear(number) => state.hear(number, self),
            Action::Release(number) => state.release(number),
            Action::Delete(place) => {
                state.left.deleted -= 1;
                let created = state.server.line()[place].created;
                state.delete(created);
            }
            Action::Force => {
                state.left.forced -= 1;
                state.force(self);
            }
            Action::MakeAgain => {
                state.left.made_again -= 1;
                let told = state.server.make_again();
                state.tell(&told);
            }
            Action::Reconnect(number) => {
                state.left.lost -= 1;
                state.clients[number].reconnect();
            }
        }
        (state != *before).then_some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("the first is granted", |_, state: &State| {
                !state.passed_others
            }),
            Property::always("tokens rise", |_, state: &State| {
                let mut issued = state.issued.clone();
                issued.sort_unstable();
                issued.windows(2).all(|pair| pair[0].1 < pair[1].1)
            }),
            Property::sometimes("by its number", |_, state: &State| state.by_number),
            Property::sometimes("by a notice", |_, state: &State| state.by_notice),
        ]
    }
}
