use std::collections::{HashMap, VecDeque};

use super::Fault;
use lock_core::Operation;

/// The faults that come next, and counts of those that happened.
#[derive(Debug, Default)]
pub(super) struct Script {
    next: HashMap<Operation, VecDeque<Fault>>,
    always: HashMap<Operation, Fault>,
    counts: HashMap<Operation, Counts>,
}

/// The numbers of faults of a [`Chaos`](super::Chaos) in the requests of one operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Requests that came from the client.
    pub requests: usize,
    /// Requests that were lost on the way. Postponed requests count, too, although they arrive
    /// later.
    pub requests_dropped: usize,
    /// Requests whose reply was lost.
    pub replies_dropped: usize,
    /// Requests that were delayed, on the way there or back.
    pub delayed: usize,
    /// Late requests that arrived: copies and postponed requests.
    pub delivered_late: usize,
}

impl Script {
    pub(super) fn next(&mut self, operation: Operation, fault: Fault) {
        self.next.entry(operation).or_default().push_back(fault);
    }

    pub(super) fn always(&mut self, operation: Operation, fault: Fault) {
        self.always.insert(operation, fault);
    }

    pub(super) fn clear(&mut self) {
        self.next.clear();
        self.always.clear();
    }

    pub(super) fn unused(&self) -> usize {
        self.next.values().map(VecDeque::len).sum()
    }

    /// The fault for the request that is being sent. Counts the request and the fault.
    pub(super) fn take(&mut self, operation: Operation) -> Fault {
        let scripted = self.next.get_mut(&operation).and_then(VecDeque::pop_front);
        let fault = scripted.or_else(|| self.always.get(&operation).cloned());
        let fault = fault.unwrap_or(Fault::Pass);
        let counts = self.counts_mut(operation);
        counts.requests += 1;
        match fault {
            Fault::Pass | Fault::Duplicate => {}
            Fault::DropRequest | Fault::Postpone => counts.requests_dropped += 1,
            Fault::DropReply => counts.replies_dropped += 1,
            Fault::DelayRequest(_) | Fault::DelayReply(_) => counts.delayed += 1,
        }
        fault
    }

    pub(super) fn counts(&self, operation: Operation) -> Counts {
        self.counts.get(&operation).copied().unwrap_or_default()
    }

    pub(super) fn counts_mut(&mut self, operation: Operation) -> &mut Counts {
        self.counts.entry(operation).or_default()
    }
}
