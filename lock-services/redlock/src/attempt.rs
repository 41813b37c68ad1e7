//! One try to acquire: ask all nodes, fix the nodes that count, and raise these, or undo
//! everything.

use std::{sync::Arc, time::Duration};

use super::{
    ENDED_TTL,
    answers::{Answers, Decision, Granted},
    call::Call,
    keys::Keys,
    nodes::{Nodes, Step},
    scripts,
};
use lock_core::{
    FencingToken, InitialToken, Ttl,
    backend::{AcquireRequest, Grant, Lease, Moment},
};

/// The outcome of a try.
#[derive(Debug)]
pub(super) struct Tried {
    pub(super) end: End,
    pub(super) answers: Answers,
    /// Whether nothing of the try is left on any node.
    pub(super) undone: bool,
}

#[derive(Debug)]
pub(super) enum End {
    Granted(Grant),
    /// The try was not granted, for this reason, which is never `Elected` or `Again`.
    NotGranted(Decision),
    /// Enough nodes granted the lease, but then too few were raised, or the try took too long.
    NotRaised,
}

/// A try, with a nonce of its own, with which each undo and raise is compared.
pub(super) struct Try<'a> {
    nodes: &'a Nodes,
    keys: &'a Keys,
    request: &'a AcquireRequest,
    /// The digest of the holder.
    digest: String,
    nonce: String,
    asked: Moment,
    /// The token of the lease whose place the try takes by force, at each node that has it. `None`:
    /// the try gets a lease only where the resource is free.
    instead_of: Option<FencingToken>,
}

/// The time by which a node keeps a lease longer than the client counts, because clocks run
/// unevenly: 1 % and 2 ms.
///
/// The node keeps the lease for the ttl and the drift. The validity is that time less the elapsed
/// time and the drift. So it is the ttl less the elapsed time.
pub(super) fn drift(ttl: Ttl) -> Duration {
    Duration::from_millis(ttl.as_millis() / 100 + 2)
}

impl<'a> Try<'a> {
    pub(super) fn new(nodes: &'a Nodes, keys: &'a Keys, request: &'a AcquireRequest) -> Self {
        Self {
            nodes,
            keys,
            request,
            digest: request.attempt.holder.digest(),
            nonce: format!("{:016x}", nodes.runtime.random() >> 64),
            asked: nodes.runtime.now(),
            instead_of: None,
        }
    }

    /// A try that ends the lease with this token at each node where it takes its place.
    pub(super) fn by_force(
        nodes: &'a Nodes,
        keys: &'a Keys,
        request: &'a AcquireRequest,
        instead_of: FencingToken,
    ) -> Self {
        Self {
            instead_of: Some(instead_of),
            ..Self::new(nodes, keys, request)
        }
    }

    /// # Cancel safety
    /// It may leave leases on nodes. Only a cancel of the attempt ends them before their time.
    pub(super) async fn run(self, initial: InitialToken) -> Tried {
        let mut answers = Answers::new(self.nodes.len());
        let call = self.acquire(initial);
        let take = |index, answer| answers.take(index, answer);
        self.nodes.ask_all(call, take).await;
        let end = match answers.decided() {
            Decision::Again(token, left) => {
                let lease = Lease::counted_from(self.asked, left);
                End::Granted(Grant::new(token, lease))
            }
            Decision::Elected => match self.raise(&answers.granted).await {
                Some(grant) => {
                    let undone = false;
                    let end = End::Granted(grant);
                    return Tried {
                        end,
                        answers,
                        undone,
                    };
                }
                None => End::NotRaised,
            },
            decision => End::NotGranted(decision),
        };
        let undone = self.undo(&answers).await;
        Tried {
            end,
            answers,
            undone,
        }
    }

    fn acquire(&self, initial: InitialToken) -> Call {
        let AcquireRequest {
            attempt,
            ttl,
            floor,
            metadata,
            ..
        } = self.request;
        let resource = &attempt.resource;
        let keys = [
            self.keys.marker(),
            self.keys.counter(resource),
            self.keys.lease(resource),
            self.keys.ended(resource, &self.digest),
        ];
        let drift = drift(*ttl);
        let note = metadata.as_ref().map_or("", |note| note.as_str());
        let head = format!("{}:{}:0:", self.digest, self.nonce);
        let tail = format!(":{}:{}:{note}", drift.as_millis(), attempt.id);
        let stay = ttl.get() + drift + ENDED_TTL;
        let script = match self.instead_of {
            None => &scripts::ACQUIRE,
            Some(_) => &scripts::FORCE,
        };
        let call = Call::new(script, &keys)
            .arg(head)
            .arg(tail)
            .arg(stay.as_millis().to_string());
        if let Some(token) = self.instead_of {
            return call.arg(token.get());
        }
        let call = call.arg(ttl.as_millis());
        match (floor, initial) {
            (None, _) => call,
            (Some(floor), InitialToken::Clock) => call.arg(floor.get()),
            (Some(floor), InitialToken::At(_)) => call.arg(floor.get()).arg(InitialToken::MAX_JUMP),
        }
    }

    /// Raises the nodes that count to their greatest count. These nodes were fixed before the first
    /// raise is sent, and no others are raised. A majority of *all* nodes has to be raised.
    async fn raise(&self, counted: &[Granted]) -> Option<Grant> {
        let token = counted.iter().map(|granted| granted.count).max()?;
        let resource = &self.request.attempt.resource;
        let keys = [
            self.keys.marker(),
            self.keys.counter(resource),
            self.keys.lease(resource),
        ];
        let lease = format!("{}:{}:", self.digest, self.nonce);
        let call = |granted: &Granted| {
            let call = Call::new(&scripts::RAISE, &keys)
                .arg(&granted.incarnation)
                .arg(&lease)
                .arg(granted.count.get());
            match token > granted.count {
                true => call.arg(token.get()),
                false => call,
            }
        };
        let calls = counted
            .iter()
            .map(|granted| (granted.index, Arc::new(call(granted))));
        let (mut raised, mut open) = (0, counted.len());
        let majority = self.nodes.majority();
        let take = |_, answer: Result<Vec<String>, _>| {
            open -= 1;
            raised += usize::from(answer.is_ok_and(|words| words == ["raised"]));
            if raised >= majority {
                Step::Settled
            } else if raised + open < majority {
                Step::Done
            } else {
                Step::Wait
            }
        };
        self.nodes.ask(calls, Step::Wait, take).await;
        let lease = Lease::counted_from(self.asked, self.request.ttl.get());
        let in_time = self.nodes.runtime.now() < lease.deadline();
        (raised >= majority && in_time).then_some(Grant::new(token, lease))
    }

    /// Undoes the try at each node that may have run it. Returns true if nothing is left.
    async fn undo(&self, answers: &Answers) -> bool {
        let granted = answers.granted.iter().map(|granted| granted.index);
        let may_have_run =
            |(_, error): &&(usize, super::node_error::NodeError)| error.may_have_run();
        let unclear = answers.errors.iter().filter(may_have_run);
        let unclear = unclear.map(|(index, _)| *index);
        let unclear: Vec<_> = unclear.chain(answers.unheard.iter().copied()).collect();
        let mut left: Vec<_> = granted.collect();
        if left.is_empty() && unclear.is_empty() {
            return true;
        }
        let attempt = &self.request.attempt;
        let keys = [
            self.keys.marker(),
            self.keys.lease(&attempt.resource),
            self.keys.ended(&attempt.resource, &self.digest),
        ];
        let call = Call::new(&scripts::UNDO, &keys)
            .arg(&self.digest)
            .arg(&self.nonce)
            .arg(attempt.id.to_string());
        let targets: Vec<_> = left.iter().chain(&unclear).copied().collect();
        // The nodes that granted are known to answer. The other nodes get only a moment.
        let first = match left.is_empty() {
            true => Step::Enough,
            false => Step::Wait,
        };
        let mut unsure = unclear;
        let call = Arc::new(call);
        let calls = targets.into_iter().map(|index| (index, Arc::clone(&call)));
        let take = |index, answer: Result<_, super::node_error::NodeError>| {
            if answer.map_or_else(|error| !error.may_keep_a_lease(), |_| true) {
                left.retain(|other| *other != index);
                unsure.retain(|other| *other != index);
            }
            match left.is_empty() {
                true => Step::Enough,
                false => Step::Wait,
            }
        };
        self.nodes.ask(calls, first, take).await;
        left.is_empty() && unsure.is_empty()
    }
}
