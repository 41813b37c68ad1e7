//! The server: one lock directory, its floor, and the watches of each client.

use std::collections::BTreeSet;

/// A contender's node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Node {
    /// The number in its name.
    pub(super) number: u8,
    /// The number of the transaction that created it.
    pub(super) created: u8,
    pub(super) owner: usize,
}

/// A notice to a client, or an answer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Told {
    /// The lock directory was written, or deleted and made again.
    Written,
    /// The node that was created in this transaction is gone.
    Gone(u8),
    /// The answer to a read.
    Floor(Floor),
    /// The answer to a creation: the node, and the nodes before it.
    Created(Node, Vec<u8>),
    /// The answer to a look: the nodes before the client's own. `None` if its own node is gone.
    Line(Option<Vec<u8>>),
}

/// The answer to a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Floor {
    pub(super) value: u8,
    /// The transaction that has written the directory last.
    pub(super) written: u8,
}

/// A notice, and the client that gets it.
pub(super) type Notice = (usize, Told);

/// The server, as the module describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Server {
    transaction: u8,
    next_number: u8,
    /// In the order in which they were created.
    line: Vec<Node>,
    floor: u8,
    written: u8,
    /// The clients that get a notice when the directory is written.
    of_directory: BTreeSet<usize>,
    /// The clients that get a notice when a node is gone.
    of_nodes: BTreeSet<(usize, u8)>,
    /// The nodes that were the first at some time.
    firsts: BTreeSet<u8>,
}

impl Server {
    pub(super) fn line(&self) -> &[Node] {
        &self.line
    }

    pub(super) const fn floor(&self) -> u8 {
        self.floor
    }

    pub(super) fn was_first(&self, created: u8) -> bool {
        self.firsts.contains(&created)
    }

    /// The floor. From now on the client gets a notice of each change.
    pub(super) fn read(&mut self, client: usize, is_watched: bool) -> Told {
        if is_watched {
            self.of_directory.insert(client);
        }
        Told::Floor(Floor {
            value: self.floor,
            written: self.written,
        })
    }

    pub(super) fn create(&mut self, owner: usize) -> Told {
        self.transaction += 1;
        let node = Node {
            number: self.next_number,
            created: self.transaction,
            owner,
        };
        self.next_number += 1;
        let before = self.line.iter().map(|node| node.created).collect();
        self.line.push(node);
        self.note_first();
        Told::Created(node, before)
    }

    /// The nodes before a node.
    pub(super) fn list(&self, own: u8) -> Told {
        let place = self.line.iter().position(|node| node.created == own);
        let before = |place: usize| self.line[..place].iter().map(|node| node.created).collect();
        Told::Line(place.map(before))
    }

    /// The nodes before a node. From now on the owner of the node gets a notice when one of the
    /// last two of them, or the node itself, is gone.
    pub(super) fn look(&mut self, client: usize, own: u8, is_own_watched: bool) -> Told {
        let told = self.list(own);
        if let Told::Line(Some(before)) = &told {
            let watched = before.iter().rev().take(2);
            self.of_nodes.extend(watched.map(|node| (client, *node)));
            if is_own_watched {
                self.of_nodes.insert((client, own));
            }
        }
        told
    }

    /// Deletes a node, if it is there.
    pub(super) fn delete(&mut self, created: u8) -> Vec<Notice> {
        let Some(place) = self.line.iter().position(|node| node.created == created) else {
            return Vec::new();
        };
        self.transaction += 1;
        self.line.remove(place);
        self.note_first();
        let told: Vec<_> = self.of_nodes.iter().copied().collect();
        let told = told.into_iter().filter(|(_, node)| *node == created);
        let told: Vec<_> = told.collect();
        for watch in &told {
            self.of_nodes.remove(watch);
        }
        let notice = |(client, node)| (client, Told::Gone(node));
        told.into_iter().map(notice).collect()
    }

    /// Lifts the floor by one, which writes the directory.
    pub(super) fn lift(&mut self) -> Vec<Notice> {
        self.floor += 1;
        self.write()
    }

    /// Deletes the directory, which is empty, and makes it again: numbers begin anew.
    pub(super) fn make_again(&mut self) -> Vec<Notice> {
        self.next_number = 0;
        self.write()
    }

    fn write(&mut self) -> Vec<Notice> {
        self.transaction += 1;
        self.written = self.transaction;
        let told = std::mem::take(&mut self.of_directory);
        told.into_iter()
            .map(|client| (client, Told::Written))
            .collect()
    }

    fn note_first(&mut self) {
        self.firsts
            .extend(self.line.first().map(|node| node.created));
    }
}
