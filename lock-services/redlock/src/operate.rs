use std::{fmt, sync::Arc};

use super::{
    KIND,
    keys::Keys,
    look::Look,
    marker::{Marker, MarkerState},
    node::Node,
    node_error::NodeError,
    nodes::Nodes,
};
use lock_core::{
    Error, ErrorKind, FencingToken, InitialToken, Operation, Ttl,
    backend::{ConnectOptions, Runtime},
};

/// The operator's view of the nodes: brings them into service and takes them out of service.
///
/// None of this happens by itself, because a node without state is new or has lost its state, and
/// does not know which.
#[derive(Debug)]
pub struct RedlockNodes {
    pub(super) nodes: Nodes,
    pub(super) keys: Keys,
    initial: InitialToken,
}

/// The status of one node.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NodeStatus {
    /// Host and port, as the URL has them.
    pub address: String,
    /// Its state.
    pub state: NodeState,
}

/// The state of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NodeState {
    /// The node serves.
    Serving,
    /// The node lost its state, or is new among nodes that serve, and [`RedlockNodes::heal`] is
    /// under way or was interrupted. If it was interrupted, heal the node again. The node does not
    /// serve.
    Healing,
    /// The node is new, or has lost its state.
    Uninitialised,
    /// The server was started again and may have lost its last counts. The node has to be healed.
    Restarted,
    /// The provisioning of the node was not finished.
    Prepared,
    /// The node is permanently out of service.
    Retired,
    /// The node cannot be asked, or it is in another state. The text says which.
    Unusable(String),
}

impl NodeState {
    /// The state in one word.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Serving => "serving",
            Self::Healing => "healing",
            Self::Uninitialised => "uninitialised",
            Self::Restarted => "restarted",
            Self::Prepared => "prepared",
            Self::Retired => "retired",
            Self::Unusable(_) => "unusable",
        }
    }

    /// Whether the node takes part in locks.
    #[must_use]
    pub const fn serves(&self) -> bool {
        matches!(self, Self::Serving)
    }
}

impl fmt::Display for NodeState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unusable(why) => write!(f, "unusable: {why}"),
            state => f.write_str(state.word()),
        }
    }
}

impl From<&Result<Look, NodeError>> for NodeState {
    fn from(look: &Result<Look, NodeError>) -> Self {
        let error = match look {
            Ok(look) => look.error(),
            Err(error) => Some(error.clone()),
        };
        let Some(error) = error else {
            return Self::Serving;
        };
        match error {
            NodeError::NoState => Self::Uninitialised,
            NodeError::Restarted => Self::Restarted,
            NodeError::NotServing(Some(MarkerState::Prepared)) => Self::Prepared,
            NodeError::NotServing(Some(MarkerState::Retired)) => Self::Retired,
            NodeError::NotServing(Some(MarkerState::Healing | MarkerState::Clearing)) => {
                Self::Healing
            }
            error => Self::Unusable(error.to_string()),
        }
    }
}

impl RedlockNodes {
    /// The nodes of a URL. They are connected at the first request.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] for a URL or setting that is invalid, and an even number of
    /// nodes.
    pub fn new(to: impl Into<ConnectOptions>, runtime: Arc<dyn Runtime>) -> Result<Self, Error> {
        let nodes = Nodes::new(&to.into(), runtime);
        let (nodes, settings) = nodes.map_err(|error| error.during(Operation::Connect, KIND))?;
        Ok(Self {
            nodes,
            keys: Keys::new(&settings.prefix),
            initial: settings.initial_token,
        })
    }

    /// Looks at all nodes, in the order of the URL. A node that was started again, with all writes
    /// that it acknowledged, notes the new run.
    ///
    /// # Cancel safety
    /// Cancel safe: nothing else changes.
    pub async fn status(&self) -> Vec<NodeStatus> {
        let looks = self.nodes.look().await;
        let nodes = self.nodes.iter().zip(&looks);
        nodes.map(|(node, look)| status_of(node, look)).collect()
    }

    /// Brings all nodes, which have to be new, into service for leases of at most `longest`. Tokens
    /// begin as [`ConnectOptions::initial_token`] says, and above `above`, the greatest token that
    /// any store has seen. `longest` is also the time for which a node that lost its state grants
    /// no lease. Nodes that all serve already are left unchanged. `Ok` means that all nodes serve,
    /// for leases of `longest` and with tokens above `above`, even if another operator has brought
    /// them into service.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`] if a node does not answer. [`ErrorKind::Refused`] if one is
    /// neither new nor prepared; the error says what each node is. If some nodes already serve,
    /// heal the others. If too few serve, empty all nodes. The error is also `Refused` if all nodes
    /// serve, but were provisioned for other leases, or for tokens that are not above `above`. The
    /// error says for which.
    ///
    /// # Cancel safety
    /// The call may be repeated until the first node serves. After that heal the others.
    pub async fn provision(&self, longest: Ttl, above: Option<FencingToken>) -> Result<(), Error> {
        let seen = self.nodes.look().await;
        if seen.iter().all(|look| NodeState::from(look).serves()) {
            return self.as_ordered(&seen, longest, above);
        }
        let mut prepared = Vec::new();
        for (node, look) in self.nodes.iter().zip(&seen) {
            prepared.push(self.prepare(node, look).await?);
        }
        // Another operator may have prepared some nodes before other nodes lost their state.
        let again = self.nodes.look().await;
        for ((node, look), (text, _)) in self.nodes.iter().zip(&again).zip(&prepared) {
            let as_it_was = look.as_ref().is_ok_and(|it| it.text.as_ref() == Some(text));
            if !as_it_was {
                return Err(self.stopped(node, look));
            }
        }
        let base = match self.initial {
            InitialToken::Clock => InitialToken::clock_token(self.nodes.runtime.unix_time()),
            InitialToken::At(token) => token.get() - 1,
        };
        let base = std::cmp::max(base, above.map_or(0, FencingToken::get));
        for (node, (text, marker)) in self.nodes.iter().zip(prepared) {
            let serving = Marker {
                state: MarkerState::Serving,
                base,
                longest: longest.get(),
                ..marker
            };
            let marked = node
                .mark(Some(&text), Some(&serving.incarnation), &serving.tail())
                .await;
            let (done, now) = marked.map_err(|error| self.failed(node, &error))?;
            let same_life = Marker::parse(&now).is_some_and(|now| {
                now.incarnation == serving.incarnation && now.state == MarkerState::Serving
            });
            // Another operator may have provisioned the node first.
            if !done && !same_life {
                return Err(self.stopped(node, &self.nodes.look_at(node).await));
            }
        }
        self.as_ordered(&self.nodes.look().await, longest, above)
    }

    /// Checks that nodes that another operator has brought into service have the settings of this
    /// call.
    fn as_ordered(
        &self,
        looks: &[Result<Look, NodeError>],
        longest: Ttl,
        above: Option<FencingToken>,
    ) -> Result<(), Error> {
        let least = above.map_or(0, FencingToken::get);
        for (node, look) in self.nodes.iter().zip(looks) {
            let marker = look.as_ref().ok().and_then(|look| look.marker.as_ref());
            let Some(marker) = marker.filter(|_| NodeState::from(look).serves()) else {
                return Err(self.stopped(node, look));
            };
            if marker.base < least || marker.longest != longest.get() {
                return Err(refused(&format!(
                    "{} serves already, for leases of at most {} ms and with tokens above {}, \
                     which is not what was asked for: take the nodes as they are, or empty all of \
                     them and provision them anew",
                    node.address(),
                    marker.longest.as_millis(),
                    marker.base,
                )));
            }
        }
        Ok(())
    }

    async fn prepare(
        &self,
        node: &Node,
        look: &Result<Look, NodeError>,
    ) -> Result<(String, Marker), Error> {
        let look = match look {
            Ok(look) => look,
            Err(error) => return Err(self.failed(node, error)),
        };
        let text = match &look.text {
            Some(text) => text.clone(),
            None => {
                let new = blank(MarkerState::Prepared, &look.run_id);
                let marked = node.mark(None, None, &new.tail()).await;
                marked.map_err(|error| self.failed(node, &error))?.1
            }
        };
        match Marker::parse(&text) {
            Some(marker) if marker.state == MarkerState::Prepared => Ok((text, marker)),
            _ => Err(self.stopped(node, &self.nodes.look_at(node).await)),
        }
    }

    /// Takes a node out of service permanently: it refuses everything from then on.
    ///
    /// To replace a node: retire it, or make sure that it will never come back. Then heal the new
    /// node under a URL that names it instead of the old one. Then give that URL to all clients.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] if the address is none of the nodes, [`ErrorKind::Unavailable`]
    /// if the node does not answer.
    ///
    /// # Cancel safety
    /// The node may or may not be retired. The call can be repeated.
    pub async fn retire(&self, address: &str) -> Result<(), Error> {
        let (_, node) = self.find(address)?;
        loop {
            let look = self.nodes.look_at(node).await;
            let look = look.map_err(|error| self.failed(node, &error))?;
            let retired = Marker {
                state: MarkerState::Retired,
                ..look
                    .marker
                    .unwrap_or_else(|| blank(MarkerState::Retired, &look.run_id))
            };
            let incarnation =
                Some(retired.incarnation.as_str()).filter(|incarnation| !incarnation.is_empty());
            let marked = node
                .mark(look.text.as_deref(), incarnation, &retired.tail())
                .await;
            let (done, _) = marked.map_err(|error| self.failed(node, &error))?;
            if done {
                return Ok(());
            }
        }
    }

    pub(super) fn find(&self, address: &str) -> Result<(usize, &Node), Error> {
        let mut nodes = self.nodes.iter().enumerate();
        let found = nodes.find(|(_, node)| node.address() == address);
        found.ok_or_else(|| {
            let why = format!("{address} is none of the nodes in the URL");
            error(ErrorKind::InvalidInput).because(why)
        })
    }

    /// The error for a node in a wrong state.
    pub(super) fn stopped(&self, node: &Node, look: &Result<Look, NodeError>) -> Error {
        let status = status_of(node, look);
        refused(&format!("stopped: {} is {}", status.address, status.state))
    }

    pub(super) fn failed(&self, node: &Node, why: &NodeError) -> Error {
        let kind = match why {
            NodeError::SameAs(_) => ErrorKind::InvalidInput,
            _ => ErrorKind::Unavailable,
        };
        error(kind).because(format!("{}: {why}", node.address()))
    }
}

fn status_of(node: &Node, look: &Result<Look, NodeError>) -> NodeStatus {
    NodeStatus {
        address: node.address().to_string(),
        state: NodeState::from(look),
    }
}

/// A marker without an incarnation, which the node draws.
pub(super) fn blank(state: MarkerState, run_id: &str) -> Marker {
    Marker {
        incarnation: String::new(),
        state,
        base: 0,
        longest: std::time::Duration::ZERO,
        run_id: run_id.to_owned(),
        is_durable: false,
    }
}

pub(super) fn refused(why: &str) -> Error {
    error(ErrorKind::Refused).because(why)
}

/// An error of an operator's command. Nothing changed.
pub(super) fn error(kind: ErrorKind) -> Error {
    Error::not_applied(kind).during(Operation::Connect, KIND)
}
