//! Takes a node in anew that has lost its state.

use super::{
    call::Call,
    look::Look,
    marker::{Marker, MarkerState},
    node::{Node, Run},
    operate::{NodeState, RedlockNodes, blank, refused},
    scripts,
    trouble::Trouble,
};
use crate::Error;

/// About how many keys a node looks at at a time.
const PAGE: usize = 500;

/// What came of a page of deletions.
enum Cleared {
    /// Go on with this cursor, or be done if it is 0.
    Next(String),
    /// The node is being cleared by somebody else, or was taken in by them.
    Other,
}

impl RedlockNodes {
    /// Takes a node in that has lost its state, or is new among nodes that serve. What it still
    /// has is deleted. Says whether there was anything to do.
    ///
    /// It takes part at once in all but leases, which it grants when the longest time to live is
    /// over. Its counters are made anew from a majority of the others as they are asked for, and
    /// those that some others have no counter for wait until it is whole: see
    /// [`complete`](Self::complete), which is to follow. Until then it stands for no other node
    /// that loses its state.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if it is none of the nodes,
    /// [`ErrorKind::Refused`](crate::ErrorKind::Refused) if it is retired, if somebody else heals
    /// it at the same time, or if fewer than N/2 + 1 others serve: then nobody knows what was
    /// issued, and all nodes have to be emptied and provisioned above the greatest mark of the
    /// stores. [`ErrorKind::Unavailable`](crate::ErrorKind::Unavailable) if a node does not answer.
    ///
    /// # Cancel safety
    /// May be repeated until it is done.
    pub async fn heal(&self, address: &str) -> Result<bool, Error> {
        let (index, node) = self.find(address)?;
        let looks = self.nodes.look().await;
        let look = match &looks[index] {
            Ok(look) => look,
            Err(trouble) => return Err(self.failed(node, trouble)),
        };
        match NodeState::from(&looks[index]) {
            NodeState::Serving | NodeState::Healing => return Ok(false),
            NodeState::Retired => {
                return Err(refused("it is retired: empty its server to use it anew"));
            }
            _ => {}
        }
        let healing = self.healing(index, look, &looks)?;
        let clearing = self.mark_clearing(node, look).await?;
        // A server that is started again meanwhile may have back what was deleted.
        let run = node.run_of_server().await;
        let mut run = run.map_err(|trouble| self.failed(node, &trouble))?;
        self.clear(node, &mut run, &clearing).await?;
        let marked = run.mark(Some(&clearing), None, &healing.tail()).await;
        match marked.map_err(|trouble| self.failed(node, &trouble))? {
            (true, _) => Ok(true),
            (false, _) => Err(self.stopped(node, &self.nodes.look_at(node).await)),
        }
    }

    /// What the node is to be, by what the others are.
    fn healing(
        &self,
        index: usize,
        look: &Look,
        looks: &[Result<Look, Trouble>],
    ) -> Result<Marker, Error> {
        let serves = |(other, look): &(usize, &Result<Look, _>)| {
            *other != index && NodeState::from(*look).serves()
        };
        let others: Vec<_> = looks.iter().enumerate().filter(serves).collect();
        if others.len() < self.nodes.majority() {
            return Err(refused(&format!(
                "{} other nodes serve, and {} have to: too few know what was issued",
                others.len(),
                self.nodes.majority(),
            )));
        }
        let markers = others.iter().filter_map(|(_, look)| look.as_ref().ok());
        let markers = markers.filter_map(|look| look.marker.as_ref());
        let mut healing = blank(MarkerState::Healing, &look.run_id);
        for marker in markers {
            healing.base = std::cmp::max(healing.base, marker.base);
            healing.longest = std::cmp::max(healing.longest, marker.longest);
        }
        Ok(healing)
    }

    /// Marks a node as being cleared, which it shows until it is taken in: nothing is served
    /// meanwhile. The number that it draws is that of this clearing, so that a deletion of an
    /// earlier one is refused, whatever the node was before.
    async fn mark_clearing(&self, node: &Node, look: &Look) -> Result<String, Error> {
        let clearing = blank(MarkerState::Clearing, &look.run_id);
        let marked = node
            .mark(look.text.as_deref(), None, &clearing.tail())
            .await;
        match marked.map_err(|trouble| self.failed(node, &trouble))? {
            (true, clearing) => Ok(clearing),
            (false, _) => Err(self.stopped(node, &self.nodes.look_at(node).await)),
        }
    }

    /// Deletes what a node has, as long as it is in this clearing.
    async fn clear(&self, node: &Node, run: &mut Run<'_>, clearing: &str) -> Result<(), Error> {
        for pattern in self.keys.patterns() {
            let mut cursor = "0".to_owned();
            loop {
                let cleared = self.clear_page(run, clearing, &pattern, &cursor).await;
                match cleared.map_err(|trouble| self.failed(node, &trouble))? {
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
    ) -> Result<Cleared, Trouble> {
        let (next, found) = run.scan(pattern, cursor, PAGE).await?;
        let keys: Vec<_> = std::iter::once(self.keys.marker()).chain(found).collect();
        let call = Call::new(&scripts::CLEAR, &keys).arg(clearing);
        Ok(match run.run(&call).await?.first().map(String::as_str) {
            Some("cleared") => Cleared::Next(next),
            _ => Cleared::Other,
        })
    }
}
