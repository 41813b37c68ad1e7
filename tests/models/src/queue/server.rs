//! The server's state for one resource.

use super::{Attempt, Client, Flaw, Queue, Token};
use crate::set::Set;

/// The contents of the keys of one resource.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Server {
    pub(crate) counter: Token,
    pub(crate) lease: Option<Lease>,
    /// In the order of their tickets.
    pub(crate) queue: Vec<Entry>,
    /// Clients that get no grant until they poll.
    pub(crate) aside: Set,
    /// Clients whose channel has a subscriber, as far as the server has noticed.
    pub(crate) subscribed: Set,
    /// Tombstones: acquisitions that were released, or whose full lease ran out.
    pub(crate) ended_acquisitions: Set,
    /// Tombstones: attempts that were cancelled.
    pub(crate) ended_attempts: Set,
}

/// A living lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Lease {
    pub(crate) acquisition: usize,
    pub(crate) token: Token,
    /// The attempts that asked for it and were not cancelled.
    pub(crate) attempts: Set,
    /// Short, and waiting for its confirm.
    pub(crate) provisional: bool,
}

/// A place in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Entry {
    pub(crate) acquisition: usize,
    /// The attempts that asked and were not cancelled.
    pub(crate) attempts: Set,
    /// The attempt among them that asked last. A push goes to this one.
    pub(crate) latest: Attempt,
    /// Whether it has been granted, and neither confirmed nor ended since.
    pub(crate) granted: bool,
}

impl Server {
    pub(crate) fn new(subscribed: Set) -> Self {
        Self {
            counter: 0,
            lease: None,
            queue: Vec::new(),
            aside: Set::EMPTY,
            subscribed,
            ended_acquisitions: Set::EMPTY,
            ended_attempts: Set::EMPTY,
        }
    }

    /// The living lease runs out. No script runs; the entry of a provisional one stays marked.
    pub(crate) fn expire(&mut self, queue: &Queue) {
        let Some(lease) = self.lease.take() else {
            return;
        };
        // In Redis the key outlives its logical end, so that the script that overwrites it leaves
        // the mark.
        if !lease.provisional && !queue.is(Flaw::ExpiryIsForgotten) {
            self.ended_acquisitions.insert(lease.acquisition);
        }
    }

    /// The living lease, if this acquisition has it.
    pub(crate) fn lease_of(&self, acquisition: usize) -> Option<Lease> {
        self.lease.filter(|lease| lease.acquisition == acquisition)
    }

    pub(crate) fn entry_of(&self, acquisition: usize) -> Option<Entry> {
        let mut entries = self.queue.iter();
        entries
            .find(|entry| entry.acquisition == acquisition)
            .copied()
    }

    pub(crate) fn entry_mut(&mut self, acquisition: usize) -> Option<&mut Entry> {
        let mut entries = self.queue.iter_mut();
        entries.find(|entry| entry.acquisition == acquisition)
    }

    pub(crate) fn remove_entry(&mut self, acquisition: usize) {
        self.queue.retain(|entry| entry.acquisition != acquisition);
    }
}

impl Entry {
    /// The client that a push goes to.
    pub(crate) fn client(&self, queue: &Queue) -> Client {
        queue.client(self.latest)
    }
}
