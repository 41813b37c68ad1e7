use lock_core::Sequencer;

/// A token that has passed the layer: the form was right, the verifier accepted it, and it is for
/// the resource that the request is about.
///
/// It may be stale all the same. Hand the sequencer to the store, which decides in the transaction
/// of the write: `store.begin(&sequencer)`.
///
/// The layer puts it into the request's extensions. With feature `axum` it is an extractor, and
/// so is `Option<Fenced>` behind [`FencingLayer::optional`](super::FencingLayer::optional).
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "made to be taken apart: Fenced(sequencer)"
)]
pub struct Fenced(pub Sequencer);

/// The layer has looked and there was no token, which it was told to allow.
///
/// Without it, "no token" and "no layer" would look the same to a handler.
#[derive(Clone, Copy, Debug)]
pub(super) struct NoToken;
