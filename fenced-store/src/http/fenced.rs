use lock_core::{FencingToken, ResourceName, Sequencer};

use crate::Presented;

/// A token that has passed the layer: the form was right, the verifier accepted it, and it is for
/// the resource that the request is about.
///
/// It may be stale all the same, and out of order. Hand it to the store, which decides in the
/// transaction of the write: `store.begin(&fenced)`, which takes along the number that the client
/// has given to the write.
///
/// The layer puts it into the request's extensions. With feature `axum` it is an extractor, and
/// so is `Option<Fenced>` behind [`FencingLayer::optional`](super::FencingLayer::optional).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fenced {
    pub(super) sequencer: Sequencer,
    pub(super) seq: Option<u64>,
}

impl Fenced {
    /// The grant that was presented.
    #[must_use]
    pub const fn sequencer(&self) -> &Sequencer {
        &self.sequencer
    }

    /// The resource that it was issued for.
    #[must_use]
    pub const fn resource(&self) -> &ResourceName {
        self.sequencer.resource()
    }

    /// The fencing token.
    #[must_use]
    pub const fn token(&self) -> FencingToken {
        self.sequencer.token()
    }

    /// The number of this write among those of its holder, if the client counts.
    #[must_use]
    pub const fn seq(&self) -> Option<u64> {
        self.seq
    }
}

/// With the number of the write: a delayed duplicate is refused.
impl<'a> From<&'a Fenced> for Presented<'a> {
    fn from(fenced: &'a Fenced) -> Self {
        Self::numbered(&fenced.sequencer, fenced.seq)
    }
}

/// The layer has looked and there was no token, which it was told to allow.
///
/// Without it, "no token" and "no layer" would look the same to a handler.
#[derive(Clone, Copy, Debug)]
pub(super) struct NoToken;
