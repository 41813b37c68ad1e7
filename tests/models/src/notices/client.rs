//! A client, and its conclusions from notices and answers.

use super::{
    Flaw, Notices, State,
    server::{Floor, Node, Notice, Told},
};

/// A client, as the module describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Client {
    phase: Phase,
    known: Option<Known>,
    /// The notices that the client has not read yet, the oldest first.
    unread: Vec<Told>,
    /// The connection was lost after the watches were set.
    is_broken: bool,
}

/// The knowledge of a client about the resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Known {
    floor: Floor,
    /// A notice says that the knowledge is outdated.
    is_old: bool,
    /// The number of the next node, if the line is empty and stays so.
    next: Option<u8>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
enum Phase {
    #[default]
    Idle,
    Reads,
    Creates,
    /// The client's node, the floor in it, and the nodes before it.
    InLine(Node, u8, Ahead),
    Looks(Node, u8),
    /// The client's node, and the transaction that had last written the directory before.
    Holds(Node, u8),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Ahead {
    /// Unknown: the client has to look.
    Unknown,
    /// Watched: the last two of these nodes, and the client's own node.
    Watched(Vec<u8>),
    /// The last node but one is gone. The client has asked for the line, in which this node was the
    /// last before its own.
    Asked { next: u8, is_gone: bool },
}

impl Client {
    pub(super) fn may_read(&self) -> bool {
        self.phase == Phase::Idle && !self.knows()
    }

    pub(super) fn may_create(&self) -> bool {
        self.phase == Phase::Idle && self.knows()
    }

    pub(super) const fn may_look(&self) -> bool {
        matches!(self.phase, Phase::InLine(_, _, Ahead::Unknown))
    }

    pub(super) const fn has_heard_less(&self) -> bool {
        !self.unread.is_empty()
    }

    pub(super) const fn holds(&self) -> bool {
        matches!(self.phase, Phase::Holds(..))
    }

    /// Answers that are lost with a connection are left out: they are asked for again.
    pub(super) fn may_lose_its_connection(&self) -> bool {
        let is_notice = |told: &Told| matches!(told, Told::Written | Told::Gone(_));
        self.unread.iter().all(is_notice)
    }

    /// Notices that the client has not received yet arrive on the next connection, in another
    /// order.
    pub(super) fn reconnect(&mut self) {
        self.unread.reverse();
        self.is_broken = true;
    }

    fn knows(&self) -> bool {
        self.known.is_some_and(|known| !known.is_old)
    }
}

impl State {
    pub(super) fn tell(&mut self, notices: &[Notice]) {
        for (client, told) in notices {
            self.clients[*client].unread.push(told.clone());
        }
    }

    pub(super) fn read(&mut self, number: usize, model: &Notices) {
        let is_watched = !model.is(Flaw::DirectoryIsNotWatched);
        let told = self.server.read(number, is_watched);
        self.clients[number].phase = Phase::Reads;
        self.tell(&[(number, told)]);
    }

    pub(super) fn create(&mut self, number: usize) {
        let told = self.server.create(number);
        self.clients[number].phase = Phase::Creates;
        self.tell(&[(number, told)]);
    }

    pub(super) fn look(&mut self, number: usize, model: &Notices) {
        let Phase::InLine(node, floor, _) = self.clients[number].phase else {
            return;
        };
        let is_own_watched = !model.is(Flaw::OwnIsNotWatched);
        let told = self.server.look(number, node.created, is_own_watched);
        self.clients[number].phase = Phase::Looks(node, floor);
        self.clients[number].is_broken = false;
        self.tell(&[(number, told)]);
    }

    pub(super) fn release(&mut self, number: usize) {
        let Phase::Holds(node, written) = self.clients[number].phase else {
            return;
        };
        let was_there = self.server.line().contains(&node);
        self.delete(node.created);
        let client = &mut self.clients[number];
        client.phase = Phase::Idle;
        if let Some(known) = client.known.as_mut()
            && known.floor.written == written
            && was_there
        {
            known.next = Some(node.number + 1);
        }
    }

    pub(super) fn delete(&mut self, created: u8) {
        let told = self.server.delete(created);
        self.tell(&told);
    }

    /// Ends the lease of the first. The revocation token lies between its token and the next.
    pub(super) fn force(&mut self, model: &Notices) {
        let first = self.server.line()[0].created;
        if model.is(Flaw::DeletesFirst) {
            self.delete(first);
        }
        let told = self.server.lift();
        self.tell(&told);
        if !model.is(Flaw::DeletesFirst) {
            self.delete(first);
        }
        self.issued
            .push((2 * first + 1, self.server.floor() + first));
    }

    pub(super) fn hear(&mut self, number: usize, model: &Notices) {
        let told = self.clients[number].unread.remove(0);
        let client = &mut self.clients[number];
        match (told, client.phase.clone()) {
            (Told::Written, _) => {
                if let Some(known) = client.known.as_mut() {
                    known.is_old = true;
                }
            }
            (Told::Floor(floor), _) => {
                let next = client.known.and_then(|known| known.next);
                client.known = Some(Known {
                    floor,
                    is_old: false,
                    next: next.filter(|_| model.is(Flaw::NumberOutlivesDirectory)),
                });
                client.phase = Phase::Idle;
            }
            (Told::Created(node, before), _) => self.created(number, node, &before, model),
            (Told::Line(None), _) => client.phase = Phase::Idle,
            (Told::Line(Some(before)), Phase::Looks(node, floor)) => {
                if before.is_empty() {
                    self.grant(number, node, floor);
                } else {
                    client.phase = Phase::InLine(node, floor, Ahead::Watched(before));
                }
            }
            (Told::Gone(gone), Phase::InLine(node, floor, Ahead::Watched(before))) => {
                self.gone(number, gone, (node, floor), &before, model);
            }
            (Told::Gone(gone), Phase::InLine(node, floor, Ahead::Asked { next, .. })) => {
                if gone == next && model.is(Flaw::AnswerIsNotAwaited) {
                    self.grant(number, node, floor);
                } else if gone == next {
                    let is_gone = true;
                    let ahead = Ahead::Asked { next, is_gone };
                    client.phase = Phase::InLine(node, floor, ahead);
                } else {
                    client.phase = Phase::InLine(node, floor, Ahead::Unknown);
                }
            }
            (
                Told::Line(Some(before)),
                Phase::InLine(node, floor, Ahead::Asked { next, is_gone }),
            ) => {
                let is_last = before == [next] || model.is(Flaw::AnswerIsNotRead);
                if before.is_empty() || (is_last && is_gone) {
                    self.turn(number, node, floor, model);
                } else {
                    let watched = Ahead::Watched(vec![next]);
                    let ahead = if is_last { watched } else { Ahead::Unknown };
                    client.phase = Phase::InLine(node, floor, ahead);
                }
            }
            (Told::Gone(_) | Told::Line(_), _) => {}
        }
    }

    /// One of the nodes that a waiter watches is gone.
    fn gone(
        &mut self,
        number: usize,
        gone: u8,
        (node, floor): (Node, u8),
        before: &[u8],
        model: &Notices,
    ) {
        let is_enough = |last: &u8| *last == gone && model.is(Flaw::NextIsEnough);
        match before {
            [next] if *next == gone => self.turn(number, node, floor, model),
            [.., last] if is_enough(last) => self.turn(number, node, floor, model),
            [.., beyond, next] if *beyond == gone => {
                let (next, is_gone) = (*next, false);
                let ahead = Ahead::Asked { next, is_gone };
                self.clients[number].phase = Phase::InLine(node, floor, ahead);
                let told = self.server.list(node.created);
                self.tell(&[(number, told)]);
            }
            _ => self.clients[number].phase = Phase::InLine(node, floor, Ahead::Unknown),
        }
    }

    /// The client is the first according to its notices, if they came in order.
    fn turn(&mut self, number: usize, node: Node, floor: u8, model: &Notices) {
        let client = &mut self.clients[number];
        if client.is_broken && !model.is(Flaw::ConnectionIsForgotten) {
            client.phase = Phase::InLine(node, floor, Ahead::Unknown);
        } else {
            self.by_notice = true;
            self.grant(number, node, floor);
        }
    }

    fn created(&mut self, number: usize, node: Node, before: &[u8], model: &Notices) {
        let client = &mut self.clients[number];
        let Some(known) = client.known else {
            return;
        };
        let is_next = known
            .next
            .is_some_and(|next| next == node.number || model.is(Flaw::NumberIsNotCompared));
        if is_next && !known.is_old {
            self.by_number = true;
            self.grant(number, node, known.floor.value);
        } else if before.is_empty() {
            self.grant(number, node, known.floor.value);
        } else {
            client.phase = Phase::InLine(node, known.floor.value, Ahead::Unknown);
        }
    }

    /// The client considers itself the first. If the floor may have changed, it binds its node to
    /// the present floor, in one step that also checks whether the node exists.
    fn grant(&mut self, number: usize, node: Node, floor: u8) {
        let client = &mut self.clients[number];
        let Some(known) = client.known else {
            return;
        };
        let mut token = floor + node.created;
        if known.is_old || known.floor.value != floor {
            if !self.server.line().contains(&node) {
                client.phase = Phase::Idle;
                return;
            }
            token = self.server.floor() + node.created;
        }
        self.clients[number].phase = Phase::Holds(node, known.floor.written);
        self.passed_others |= !self.server.was_first(node.created);
        self.issued.push((2 * node.created, token));
    }
}
