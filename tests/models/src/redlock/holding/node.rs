//! How a node handles a request.

use super::{
    Flaw, Holding,
    state::{Lease, Node, Phase, State},
};

impl Node {
    pub(crate) fn grant(&mut self, attempt: usize) {
        self.acquires.remove(attempt);
        self.lease = Some(Lease { attempt, term: 0 });
        self.granted.insert(attempt);
    }

    /// The lease is gone. So the node need not be silent for it any more.
    pub(crate) fn end(&mut self) {
        self.lease = None;
        self.is_silent = false;
    }
}

impl<const N: usize> Holding<N> {
    /// Forgets messages that can no longer matter.
    pub(crate) fn forget(&self, state: &mut State<N>) {
        for (attempt, phase) in state.attempts.iter().enumerate() {
            for node in &mut state.nodes {
                if *phase != Phase::Asking {
                    node.granted.remove(attempt);
                }
                if *phase != (Phase::FirstTerm { renews: true }) {
                    node.renewed.remove(attempt);
                }
                if *phase == Phase::Ended && !self.is(Flaw::RenewIsNotCompared) {
                    node.renewals.remove(attempt);
                }
                // By the rules, the lease that it ends may have run out by now anyway.
                let may_hurt = self.is(Flaw::UndoIsNotCompared) || self.is(Flaw::NonceIsReused);
                if !may_hurt {
                    node.undos.remove(attempt);
                }
            }
        }
    }

    pub(crate) fn undo(&self, state: &mut State<N>, attempt: usize, node: usize) {
        let loose = self.is(Flaw::UndoIsNotCompared);
        let node = state.node(node);
        node.undos.remove(attempt);
        if let Some(lease) = node.lease
            && (loose || self.share_nonce(lease.attempt, attempt))
        {
            node.end();
            state.stranger_touched |= lease.attempt != attempt;
        }
    }

    pub(crate) fn extend(&self, state: &mut State<N>, attempt: usize, node: usize) {
        let loose = self.is(Flaw::RenewIsNotCompared);
        let node = state.node(node);
        node.renewals.remove(attempt);
        if let Some(lease) = &mut node.lease
            && (loose || self.share_nonce(lease.attempt, attempt))
        {
            lease.term = 1;
            let own = lease.attempt == attempt;
            node.renewed.insert(attempt);
            state.stranger_touched |= !own;
        }
    }
}
