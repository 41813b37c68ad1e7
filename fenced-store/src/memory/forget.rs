//! Forgets marks in memory.

use std::time::Duration;

use super::{Memory, rules::Rules};
use crate::{
    admin::AdminError,
    forget::{Batch, Forget, LEAST_AGE, LEAST_OF_CLOCK, not_by_the_clock},
};
use lock_core::{FencingToken, ResourceName, backend::support::lock};

impl Memory {
    /// The greatest token of a mark that was forgotten; `None` if none ever was.
    #[must_use]
    pub fn floor(&self) -> Option<FencingToken> {
        lock(&self.shared.state).rules.floor()
    }

    pub(super) fn forget(&self, order: &Forget) -> Result<Batch, AdminError> {
        let now = self.shared.runtime.unix_time();
        lock(&self.shared.state).rules.forget(order, now)
    }
}

impl Rules {
    fn forget(&mut self, order: &Forget, now: Duration) -> Result<Batch, AdminError> {
        order.check_age(std::cmp::max(self.longest_hold, LEAST_AGE))?;
        if order.below.is_none() {
            let mut marks = self.marks.iter();
            let small = marks.find(|(_, kept)| kept.token().get() < LEAST_OF_CLOCK);
            if let Some((resource, _)) = small {
                return Err(not_by_the_clock(resource.as_str()));
            }
        }
        let ceiling = order.ceiling(now);
        let before = now.saturating_sub(order.older_than);
        let marks = self.marks.iter();
        let idle: Vec<ResourceName> = marks
            .filter(|(resource, kept)| {
                kept.at < before && kept.token().get() < ceiling && !self.is_busy(resource)
            })
            .map(|(resource, _)| resource.clone())
            .collect();
        for resource in &idle {
            if let Some(kept) = self.marks.remove(resource) {
                self.floor = std::cmp::max(self.floor, Some(kept.token()));
            }
        }
        Ok(Batch {
            forgotten: idle.len() as u64,
            last: None,
        })
    }
}
