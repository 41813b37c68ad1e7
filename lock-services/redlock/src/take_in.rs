//! Takes in a node that has lost its state: deletes all keys that it still has, and begins a new
//! incarnation.

use super::{
    call::Call,
    heal::Sources,
    look::Look,
    marker::{Marker, MarkerState},
    node::{Node, Run},
    node_error::NodeError,
    operate::{RedlockNodes, blank},
    scripts,
};
use lock_core::Error;

/// The approximate number of keys that a node looks at at a time.
const PAGE: usize = 500;

/// The result of a page of deletions.
enum Cleared {
    /// The deletions go on with this cursor. 0 means that all pages are done.
    Next(String),
    /// Another operator is clearing the node, or has taken it in.
    Other,
}

impl RedlockNodes {
    /// Deletes all keys of a node. Returns the incarnation in which it is to be healed.
    ///
    /// # Cancel safety
    /// The call may be repeated until it is done.
    pub(super) async fn take_in(
        &self,
        node: &Node,
        look: &Look,
        sources: &Sources<'_>,
    ) -> Result<String, Error> {
        let clearing = self.mark_clearing(node, look).await?;
        // A server that is started again in between may have the deleted keys again.
        let run = node.run_of_server().await;
        let mut run = run.map_err(|error| self.failed(node, &error))?;
        self.clear(node, &mut run, &clearing).await?;
        let healing = Marker {
            base: sources.base(),
            longest: sources.longest(),
            ..blank(MarkerState::Healing, &look.run_id)
        };
        let marked = run.mark(Some(&clearing), None, &healing.tail()).await;
        let (done, text) = marked.map_err(|error| self.failed(node, &error))?;
        match Marker::parse(&text) {
            Some(marker) if done => Ok(marker.incarnation),
            _ => Err(self.stopped(node, &self.nodes.look_at(node).await)),
        }
    }

    /// Marks a node as being cleared. It has this mark until it is taken in, and does not serve.
    /// The node draws a number for this clearing, so that a late deletion of an earlier clearing is
    /// refused, whatever the node was before.
    async fn mark_clearing(&self, node: &Node, look: &Look) -> Result<String, Error> {
        let clearing = blank(MarkerState::Clearing, &look.run_id);
        let marked = node
            .mark(look.text.as_deref(), None, &clearing.tail())
            .await;
        match marked.map_err(|error| self.failed(node, &error))? {
            (true, clearing) => Ok(clearing),
            (false, _) => Err(self.stopped(node, &self.nodes.look_at(node).await)),
        }
    }

    /// Deletes all keys of a node, as long as it is in this clearing.
    async fn clear(&self, node: &Node, run: &mut Run<'_>, clearing: &str) -> Result<(), Error> {
        for pattern in self.keys.patterns() {
            let mut cursor = "0".to_owned();
            loop {
                let cleared = self.clear_page(run, clearing, &pattern, &cursor).await;
                match cleared.map_err(|error| self.failed(node, &error))? {
                    Cleared::Next(next) if next == "0" => break,
                    Cleared::Next(next) => cursor = next,
                    Cleared::Other => {
                        return Err(self.stopped(node, &self.nodes.look_at(node).await));
                    }
                }
            }
        }
        Ok(())
    }

    async fn clear_page(
        &self,
        run: &mut Run<'_>,
        clearing: &str,
        pattern: &str,
        cursor: &str,
    ) -> Result<Cleared, NodeError> {
        let (next, found) = run.scan(pattern, cursor, PAGE).await?;
        let keys: Vec<_> = std::iter::once(self.keys.marker()).chain(found).collect();
        let call = Call::new(&scripts::CLEAR, &keys).arg(clearing);
        Ok(match run.run(&call).await?.first().map(String::as_str) {
            Some("cleared") => Cleared::Next(next),
            _ => Cleared::Other,
        })
    }
}
