use std::fmt;

use redis::RedisError;

use super::marker::{Marker, MarkerState};
use lock_core::ErrorKind;
use palisade_redis::independent::meaning;

/// The reason why a node takes no part in a request.
#[derive(Clone, Debug)]
pub(super) enum NodeError {
    /// The node was not reached, or cannot be used. Nothing was sent.
    Unreachable(String),
    /// Something was sent, but no answer that could be read came back.
    Broken(String),
    /// No answer in time.
    Silent,
    /// The node answered with an error of its own.
    Refused(String),
    /// The node is new, or has lost its state.
    NoState,
    /// The marker of the node says that it does not serve.
    NotServing(Option<MarkerState>),
    /// The server was started again, and may have lost its last writes.
    Restarted,
    /// The node is the same server as another node.
    SameAs(String),
}

impl NodeError {
    /// The meaning of an error that came before anything was sent.
    pub(super) fn before(error: &RedisError) -> Self {
        let (_, why) = meaning(error);
        Self::Unreachable(why)
    }

    /// The meaning of an error that came instead of an answer.
    pub(super) fn after(error: &RedisError) -> Self {
        match meaning(error) {
            (ErrorKind::Refused, why) => Self::Refused(why),
            (_, why) => Self::Broken(why),
        }
    }

    pub(super) fn of_marker(text: Option<&str>) -> Self {
        Self::NotServing(text.and_then(Marker::parse).map(|marker| marker.state))
    }

    /// Whether the request may have been run nevertheless.
    pub(super) const fn may_have_run(&self) -> bool {
        matches!(self, Self::Broken(_) | Self::Silent | Self::Refused(_))
    }

    /// Whether the node may keep a lease that it granted before. A node that does not serve has to
    /// be healed first, and that ends all its leases.
    pub(super) const fn may_keep_a_lease(&self) -> bool {
        self.may_have_run() || matches!(self, Self::Unreachable(_))
    }

    /// Whether the node has no lease, and will grant none for longer than requests are under way.
    pub(super) const fn has_nothing(&self) -> bool {
        match self {
            Self::NoState => true,
            // A node that is being healed may serve in a moment.
            Self::NotServing(state) => !matches!(state, Some(MarkerState::Healing)),
            _ => false,
        }
    }

    /// Whether trying again does not help: an operator has to act.
    pub(super) const fn needs_an_operator(&self) -> bool {
        self.has_nothing() || matches!(self, Self::Restarted | Self::SameAs(_))
    }
}

impl fmt::Display for NodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable(why) | Self::Broken(why) | Self::Refused(why) => f.write_str(why),
            Self::Silent => f.write_str("no answer in time"),
            Self::NoState => f.write_str("uninitialised: it is new, or has lost its state"),
            Self::NotServing(Some(MarkerState::Prepared)) => {
                f.write_str("prepared, but its provisioning was not finished")
            }
            Self::NotServing(Some(MarkerState::Healing | MarkerState::Clearing)) => {
                f.write_str("being healed: it serves when `redlock heal` is done")
            }
            Self::NotServing(Some(MarkerState::Retired)) => f.write_str("retired"),
            Self::NotServing(_) => f.write_str("its marker cannot be read"),
            Self::Restarted => f.write_str(
                "it was started again, and may have lost its last counts: it has to be healed",
            ),
            Self::SameAs(other) => write!(f, "it is the same server as {other}"),
        }
    }
}
