//! Looks at one resource on all nodes.

use std::time::Duration;

use super::{
    answers::millis, call::Call, node_error::NodeError, nodes::Step, scripts, service::Service,
};
use lock_core::{Error, FencingToken, HolderView, Inspection, Metadata, ResourceName};

/// The nodes' views of one resource.
#[derive(Debug)]
pub(super) struct NodeViews {
    leases: Vec<Seen>,
    /// The number of nodes that may have a lease, but have not answered.
    open: usize,
    majority: usize,
    pub(super) errors: Vec<(usize, NodeError)>,
}

/// A lease in the answer of one node.
#[derive(Debug)]
struct Seen {
    holder: String,
    token: FencingToken,
    left: Duration,
    metadata: Option<Metadata>,
}

impl Service {
    /// Looks at all nodes. A holder is shown if a majority of the nodes shows it, or would show it
    /// together with those that do not answer, because no other holder can be granted the lease
    /// then.
    pub(super) async fn inspect(&self, resource: &ResourceName) -> Result<Inspection, Error> {
        let views = self.see(resource).await?;
        Ok(Inspection::new(views.holder()))
    }

    /// Looks at all nodes. A majority has to answer. Changes nothing.
    pub(super) async fn see(&self, resource: &ResourceName) -> Result<NodeViews, Error> {
        let keys = [self.keys.marker(), self.keys.lease(resource)];
        let call = Call::new(&scripts::INSPECT, &keys);
        let majority = self.nodes.majority();
        let mut views = NodeViews::new(self.nodes.len(), majority);
        let mut answered = 0;
        self.nodes
            .ask_all(call, |index, answer| {
                match answer.and_then(|words| Seen::read(&words)) {
                    Ok(lease) => {
                        answered += 1;
                        views.open -= 1;
                        views.leases.extend(lease);
                    }
                    Err(error) => {
                        views.open -= usize::from(error.has_nothing());
                        views.errors.push((index, error));
                    }
                }
                let enough = answered >= majority && !views.is_in_doubt();
                if enough { Step::Enough } else { Step::Wait }
            })
            .await;
        if answered < majority {
            let error = self.nodes.too_few(&views.errors);
            return Err(error);
        }
        Ok(views)
    }
}

impl NodeViews {
    const fn new(nodes: usize, majority: usize) -> Self {
        Self {
            leases: Vec::new(),
            open: nodes,
            majority,
            errors: Vec::new(),
        }
    }

    /// Whether the lease with this token lives, if that is certain.
    pub(super) fn has(&self, token: FencingToken) -> Option<bool> {
        let had = self.of(token).count();
        if had >= self.majority {
            Some(true)
        } else if had == 0 || had + self.open < self.majority {
            Some(false)
        } else {
            None
        }
    }

    fn of(&self, token: FencingToken) -> impl Iterator<Item = &Seen> {
        self.leases.iter().filter(move |one| one.token == token)
    }

    /// Whether the nodes that have not answered yet could decide whether there is a holder.
    fn is_in_doubt(&self) -> bool {
        self.leases.iter().any(|one| self.has(one.token).is_none())
    }

    fn holder(&self) -> Option<HolderView> {
        let count = |lease: &&Seen| (self.of(lease.token).count(), lease.token);
        let lease = self.leases.iter().max_by_key(count)?;
        if self.has(lease.token) == Some(false) {
            return None;
        }
        let mut left: Vec<_> = self.of(lease.token).map(|one| one.left).collect();
        left.sort_unstable_by(|one, other| other.cmp(one));
        // With this number of nodes a lease has a majority, or would have one.
        let last = std::cmp::min(self.majority, left.len()) - 1;
        let view = HolderView::of_digest(&lease.holder, lease.token, left[last]);
        Some(view.metadata(lease.metadata.clone()))
    }
}

impl Seen {
    fn read(words: &[String]) -> Result<Option<Self>, NodeError> {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match words[..] {
            ["free"] => Ok(None),
            ["held", holder, token, left, metadata] => {
                let token = token.parse();
                let metadata = (!metadata.is_empty()).then(|| Metadata::new(metadata).ok());
                Ok(Some(Self {
                    holder: holder.to_owned(),
                    token: token.map_err(|_| NodeError::Silent)?,
                    left: millis(left)?,
                    metadata: metadata.flatten(),
                }))
            }
            _ => Err(NodeError::Silent),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn views(nodes: usize, leases: &[(u64, u64)], silent: usize) -> NodeViews {
        let seen = |(token, left): &(u64, u64)| Seen {
            holder: format!("{token:032x}"),
            token: FencingToken::new(*token).unwrap(),
            left: Duration::from_secs(*left),
            metadata: None,
        };
        NodeViews {
            leases: leases.iter().map(seen).collect(),
            open: silent,
            ..NodeViews::new(nodes, nodes / 2 + 1)
        }
    }

    /// Catches: the wrong one of several leases on five nodes is shown.
    #[test]
    fn a_lease_that_may_have_a_majority_is_shown_and_one_that_cannot_is_not() {
        let shown = |views: NodeViews| {
            let holder = views.holder()?;
            Some((holder.token.get(), holder.remaining.as_secs()))
        };
        assert_eq!(shown(views(3, &[], 1)), None);
        assert_eq!(shown(views(3, &[(7, 5), (7, 4), (7, 3)], 0)), Some((7, 4)));
        assert_eq!(shown(views(3, &[(7, 5)], 0)), None, "a rest of it");
        assert_eq!(shown(views(3, &[(7, 5)], 1)), Some((7, 5)));
        assert_eq!(shown(views(5, &[(7, 5)], 1)), None);
        let rivals = [(7, 5), (8, 4), (8, 3)];
        assert_eq!(shown(views(5, &rivals, 1)), Some((8, 3)));
        assert_eq!(shown(views(5, &rivals, 0)), None);
    }
}
