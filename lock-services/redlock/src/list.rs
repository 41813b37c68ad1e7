//! Lists the held resources, by a look at the leases of a majority.

use std::collections::BTreeSet;

use futures_util::{
    StreamExt, TryStreamExt,
    stream::{self, FuturesUnordered},
};

use super::{call::Call, node::Node, node_error::NodeError, scripts, service::Service};
use lock_core::{Error, Listed, ResourceName};

/// The approximate number of keys that a node looks at at a time, and the number of resources that
/// are inspected at once.
const PAGE: usize = 500;
const AT_A_TIME: usize = 32;

impl Service {
    /// Lists the leases of a majority, and inspects each resource that it finds. A held resource
    /// has a lease on a majority, so one node of any other majority has it.
    pub(super) async fn list(&self) -> Result<Vec<Listed>, Error> {
        let resources = self.with_leases().await?;
        let inspections = stream::iter(resources).map(async |resource| {
            let inspection = self.inspect(&resource).await?;
            Ok::<_, Error>(Listed::new(resource, inspection))
        });
        let listed: Vec<_> = inspections.buffered(AT_A_TIME).try_collect().await?;
        // A lease may have ended, or may not have a majority.
        let is_held = |listed: &Listed| listed.inspection.holder.is_some();
        Ok(listed.into_iter().filter(is_held).collect())
    }

    /// The resources with leases on the first majority of nodes that have listed all their leases.
    async fn with_leases(&self) -> Result<BTreeSet<ResourceName>, Error> {
        let all = self.nodes.iter().enumerate();
        let mut telling: FuturesUnordered<_> = all
            .map(async |(index, node)| (index, self.leases_of(node).await))
            .collect();
        let (mut told, mut errors, mut resources) = (0, Vec::new(), BTreeSet::new());
        while let Some((index, leases)) = telling.next().await {
            match leases {
                Ok(leases) => {
                    told += 1;
                    resources.extend(leases);
                }
                Err(error) => errors.push((index, error)),
            }
            if told >= self.nodes.majority() {
                return Ok(resources);
            }
        }
        Err(self.nodes.too_few(&errors))
    }

    /// The resources with leases on a node. All pages come from one run of the server. A loss of
    /// its state in between does not matter, because the old leases do not count for a holder any
    /// more.
    async fn leases_of(&self, node: &Node) -> Result<Vec<ResourceName>, NodeError> {
        let mut run = self.nodes.in_time(node.run_of_server()).await?;
        let (mut leases, mut cursor) = (Vec::new(), "0".to_owned());
        loop {
            let call = Call::new(&scripts::LEASES, &[self.keys.marker()])
                .arg(&cursor)
                .arg(self.keys.leases())
                .arg(PAGE);
            let mut words = self.nodes.in_time(run.ask(&call)).await?.into_iter();
            let (Some("listed"), Some(next)) = (words.next().as_deref(), words.next()) else {
                return Err(NodeError::Silent);
            };
            leases.extend(words.filter_map(|key| self.keys.leased(&key)));
            if next == "0" {
                return Ok(leases);
            }
            cursor = next;
        }
    }
}
