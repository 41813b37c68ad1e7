//! The same writes without a fence. They lose updates, which is the reason for fencing.

use std::collections::BTreeMap;

use super::act::Act;

/// Rows that unfenced clients write. Each writes a count that is greater by one than it has read.
#[derive(Debug, Default)]
pub(crate) struct Twin {
    rows: BTreeMap<String, u64>,
    writes: BTreeMap<String, u64>,
}

impl Twin {
    pub(super) fn act(&mut self, act: &Act) {
        if let Act::Unfenced { resource, read } = act {
            self.rows.insert(resource.clone(), read + 1);
            *self.writes.entry(resource.clone()).or_default() += 1;
        }
    }

    pub(crate) fn read(&self, resource: &str) -> u64 {
        self.rows.get(resource).copied().unwrap_or(0)
    }

    /// Whether a write was lost.
    pub(crate) fn has_lost(&self) -> bool {
        let mut writes = self.writes.iter();
        writes.any(|(resource, writes)| self.read(resource) < *writes)
    }
}
