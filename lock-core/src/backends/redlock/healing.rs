//! Makes the counters of a node that lost its state anew, resource by resource, as they are asked
//! for.

use std::sync::Arc;

use super::{call::Call, nodes::Step, scripts, service::Service, trouble::Trouble};
use crate::{FencingToken, ResourceName};

impl Service {
    /// Heals the counter of a resource at each of these nodes, in its life.
    ///
    /// It is right whoever does it, and however often, so what fails is left to the next one.
    ///
    /// # Cancel safety
    /// Some counters may have been counted up.
    pub(super) async fn heal_all(&self, resource: &ResourceName, patients: &[(usize, String)]) {
        if patients.is_empty() {
            return;
        }
        let patient = |index| patients.iter().any(|(patient, _)| *patient == index);
        let keys = [self.keys.marker(), self.keys.counter(resource)];
        let count = Arc::new(Call::new(&scripts::COUNT, &keys));
        let others = (0..self.nodes.len()).filter(|index| !patient(*index));
        let majority = self.nodes.majority();
        let mut counts: Vec<FencingToken> = Vec::new();
        let take = |_, answer: Result<Vec<String>, Trouble>| {
            // What does not begin by itself either is no measure.
            if let Ok([word, count]) = answer.as_deref()
                && word == "counted"
                && let Ok(count) = count.parse::<FencingToken>()
            {
                counts.push(count);
            }
            let enough = counts.len() >= majority;
            if enough { Step::Enough } else { Step::Wait }
        };
        let calls = others.map(|index| (index, Arc::clone(&count)));
        self.nodes.ask(calls, Step::Wait, take).await;
        // Fewer may have missed the only one that is left of those that were raised.
        let Some(most) = counts.iter().max().filter(|_| counts.len() >= majority) else {
            tracing::debug!(%resource, "too few nodes have a counter to heal from");
            return;
        };
        let seed = |(index, life): &(usize, String)| {
            let seed = Call::new(&scripts::SEED, &keys);
            (*index, Arc::new(seed.arg(life).arg(most.get())))
        };
        let seeds = patients.iter().map(seed);
        self.nodes.ask(seeds, Step::Wait, |_, _| Step::Wait).await;
    }
}
