//! The states of the nodes, as the markers and the servers show them.

use std::time::Duration;

use futures_util::future::join_all;

use super::{
    call::Call,
    marker::{Marker, MarkerState},
    node::Node,
    node_error::NodeError,
    nodes::Nodes,
};
use lock_core::{Error, backend::support::connecting::invalid};

/// The time for which a client waits for all nodes when it connects, or when an operator looks.
const PATIENCE: Duration = Duration::from_secs(3);

/// The state of one node.
#[derive(Clone, Debug)]
pub(super) struct Look {
    /// The text of the marker as it was read, for later comparisons.
    pub(super) text: Option<String>,
    pub(super) marker: Option<Marker>,
    /// The present run of the node's server.
    pub(super) run_id: String,
}

impl Look {
    /// The reason why the node does not serve.
    pub(super) fn error(&self) -> Option<NodeError> {
        let Some(marker) = &self.marker else {
            return Some(match self.text {
                Some(_) => NodeError::NotServing(None),
                None => NodeError::NoState,
            });
        };
        match marker.state {
            state if state.has_counters() && marker.run_id != self.run_id => {
                Some(NodeError::Restarted)
            }
            MarkerState::Serving => None,
            state => Some(NodeError::NotServing(Some(state))),
        }
    }

    /// The marker of the node, if it serves.
    pub(super) fn serving(&self) -> Option<&Marker> {
        let serves = self.error().is_none();
        self.marker.as_ref().filter(|_| serves)
    }

    /// The incarnation in which the node is being healed, if it is being healed.
    pub(super) fn healing(&self) -> Option<&str> {
        match self.error() {
            Some(NodeError::NotServing(Some(MarkerState::Healing))) => self
                .marker
                .as_ref()
                .map(|marker| marker.incarnation.as_str()),
            _ => None,
        }
    }
}

impl Nodes {
    /// Looks at all nodes.
    pub(super) async fn look(&self) -> Vec<Result<Look, NodeError>> {
        join_all(self.iter().map(|node| self.look_at(node))).await
    }

    pub(super) async fn look_at(&self, node: &Node) -> Result<Look, NodeError> {
        let (text, link) = self.in_time(node.look()).await?;
        let marker = text.as_deref().and_then(Marker::parse);
        let run_id = link.run_id.to_string();
        Ok(Look {
            text,
            marker,
            run_id,
        })
    }

    /// Sends a script for locks to one node, and waits for it with the patience of an operator.
    pub(super) async fn ask_patiently(
        &self,
        node: &Node,
        call: &Call,
    ) -> Result<Vec<String>, NodeError> {
        self.in_time(node.ask(call)).await
    }

    /// Waits for the answer of one node with the patience of an operator.
    pub(super) async fn in_time<T>(
        &self,
        answer: impl Future<Output = Result<T, NodeError>>,
    ) -> Result<T, NodeError> {
        let answer = self.runtime.timeout(PATIENCE, answer).await;
        answer.unwrap_or(Err(NodeError::Silent))
    }

    /// Fails if no majority serves, or if two nodes are the same server.
    pub(super) async fn check_serving(&self) -> Result<(), Error> {
        let looks = self.look().await.into_iter().enumerate();
        let error = |(index, look): (usize, Result<Look, _>)| match look {
            Ok(look) => look.error().map(|error| (index, error)),
            Err(error) => Some((index, error)),
        };
        let errors: Vec<_> = looks.filter_map(error).collect();
        let same = |(_, error): &&(usize, NodeError)| matches!(error, NodeError::SameAs(_));
        if let Some(same) = errors.iter().find(same) {
            return Err(invalid(self.in_words([same])));
        }
        // Restarted nodes count here, because their state is unknown. An operation that needs them
        // fails and names them.
        let absent = |(_, error): &&(usize, NodeError)| !matches!(error, NodeError::Restarted);
        if self.len() - errors.iter().filter(absent).count() >= self.majority() {
            return Ok(());
        }
        Err(self.too_few(&errors))
    }
}
