use std::sync::Arc;

use super::{
    attempt::drift,
    call::Call,
    keys::Keys,
    node_error::NodeError,
    nodes::{Nodes, Step},
    scripts,
};
use lock_core::{
    Error, ErrorKind, InitialToken, Released, Sequencer,
    backend::{AttemptRef, Lease, RenewRequest, Renewed},
};

/// The operations of a lock service at the nodes.
#[derive(Debug)]
pub(super) struct Service {
    pub(super) nodes: Nodes,
    pub(super) keys: Keys,
    pub(super) initial: InitialToken,
}

impl Service {
    /// Renews leases at all nodes. Each lease needs a majority.
    pub(super) async fn renew(&self, leases: &[RenewRequest]) -> Vec<Result<Renewed, Error>> {
        let asked = self.nodes.runtime.now();
        let lease_key = |lease: &RenewRequest| self.keys.lease(lease.sequencer.resource());
        let keys: Vec<_> = std::iter::once(self.keys.marker())
            .chain(leases.iter().map(lease_key))
            .collect();
        let mut call = Call::new(&scripts::RENEW, &keys);
        for RenewRequest { sequencer, ttl } in leases {
            let (holder, token) = (sequencer.holder().digest(), sequencer.token());
            call = call
                .arg(ttl.as_millis())
                .arg(drift(*ttl).as_millis().to_string())
                .arg(format!("{holder}:{token}"));
        }
        let majority = self.nodes.majority();
        let mut tallies = vec![Tally::new(self.nodes.len()); leases.len()];
        let mut errors = Vec::new();
        self.nodes
            .ask_all(call, |index, answer| {
                match answer.as_deref() {
                    Ok([word, letters]) if word == "renewed" && letters.len() == leases.len() => {
                        for (tally, letter) in tallies.iter_mut().zip(letters.bytes()) {
                            tally.count(letter == b'r');
                            tally.too_long |= letter == b'l';
                        }
                    }
                    Ok(_) => errors.push((index, NodeError::Silent)),
                    Err(error) => {
                        if error.has_nothing() {
                            tallies.iter_mut().for_each(|tally| tally.count(false));
                        }
                        errors.push((index, error.clone()));
                    }
                }
                let decided = tallies
                    .iter()
                    .all(|tally| tally.decided(majority).is_some());
                if decided { Step::Enough } else { Step::Wait }
            })
            .await;
        let answers =
            leases
                .iter()
                .zip(tallies)
                .map(|(lease, tally)| match tally.decided(majority) {
                    _ if tally.too_long => Err(too_long(lease)),
                    Some(true) => Ok(Renewed::Renewed(Lease::counted_from(
                        asked,
                        lease.ttl.get(),
                    ))),
                    Some(false) => Ok(Renewed::NotHolder),
                    None => Err(self
                        .nodes
                        .too_few(&errors)
                        .on(lease.sequencer.resource())
                        .outcome_unknown()),
                });
        answers.collect()
    }

    /// Ends a lease at all nodes. The lease was held if a majority had it.
    pub(super) async fn release(&self, lease: &Sequencer) -> Result<Released, Error> {
        let (resource, digest) = (lease.resource(), lease.holder().digest());
        let keys = [
            self.keys.marker(),
            self.keys.lease(resource),
            self.keys.ended(resource, &digest),
        ];
        let call = Call::new(&scripts::RELEASE, &keys)
            .arg(&digest)
            .arg(lease.token().get());
        let majority = self.nodes.majority();
        let mut tally = Tally::new(self.nodes.len());
        let mut errors = Vec::new();
        self.nodes
            .ask_all(call, |index, answer| {
                match answer {
                    Ok(words) => tally.count(words == ["released"]),
                    Err(error) => {
                        if error.has_nothing() {
                            tally.count(false);
                        }
                        errors.push((index, error));
                    }
                }
                match tally.decided(majority) {
                    Some(_) => Step::Settled,
                    None => Step::Wait,
                }
            })
            .await;
        match tally.decided(majority) {
            Some(true) => Ok(Released::Released),
            Some(false) => Ok(Released::NotHolder),
            None => {
                let error = self.nodes.too_few(&errors);
                Err(error.outcome_unknown())
            }
        }
    }

    /// Ends an attempt at all nodes. After the answers of a majority, the attempt can have no
    /// majority any more. The end is sent to the other nodes later.
    pub(super) async fn cancel(&self, attempt: &AttemptRef) -> Result<(), Error> {
        let (resource, digest) = (&attempt.resource, attempt.holder.digest());
        let keys = [
            self.keys.marker(),
            self.keys.lease(resource),
            self.keys.ended(resource, &digest),
        ];
        let call = Call::new(&scripts::CANCEL, &keys)
            .arg(&digest)
            .arg(attempt.id.to_string());
        let call = Arc::new(call);
        let majority = self.nodes.majority();
        let (mut cancelled, mut errors) = (0, Vec::new());
        self.nodes
            .ask_all(Arc::clone(&call), |index, answer| {
                match answer {
                    Ok(_) => cancelled += 1,
                    Err(error) => {
                        cancelled += usize::from(error.has_nothing());
                        errors.push((index, error));
                    }
                }
                let enough = cancelled >= majority;
                if enough { Step::Enough } else { Step::Wait }
            })
            .await;
        if cancelled >= majority {
            self.nodes.owe(&errors, &call);
            return Ok(());
        }
        let error = self.nodes.too_few(&errors);
        Err(error.outcome_unknown())
    }
}

/// The number of nodes that had a lease, and of nodes that did not have it.
#[derive(Clone, Copy, Debug)]
struct Tally {
    had: usize,
    open: usize,
    /// Whether a node refused a ttl that is longer than was agreed.
    too_long: bool,
}

impl Tally {
    const fn new(nodes: usize) -> Self {
        Self {
            had: 0,
            open: nodes,
            too_long: false,
        }
    }

    fn count(&mut self, had: bool) {
        self.had += usize::from(had);
        self.open -= 1;
    }

    /// Whether a majority had the lease, once that is certain.
    const fn decided(self, majority: usize) -> Option<bool> {
        if self.had >= majority {
            Some(true)
        } else if self.had + self.open < majority {
            Some(false)
        } else {
            None
        }
    }
}

fn too_long(lease: &RenewRequest) -> Error {
    Error::not_applied(ErrorKind::InvalidInput)
        .on(lease.sequencer.resource())
        .because("the nodes were provisioned for shorter leases")
}
