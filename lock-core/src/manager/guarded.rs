use std::sync::{Arc, Mutex};

use foldhash::HashMap;

use crate::{Holder, ResourceName, Sequencer, support::lock};

/// The leases that guards of a manager hold. If such a lease is renewed without its guard, the
/// deadline that the guard knows does not move.
#[derive(Debug, Default)]
pub(super) struct Guarded(Mutex<HashMap<(ResourceName, Holder), usize>>);

/// One guard of such a lease, until it is dropped.
#[derive(Debug)]
pub(super) struct Guarding {
    guarded: Arc<Guarded>,
    lease: (ResourceName, Holder),
}

impl Guarded {
    pub(super) fn enter(self: &Arc<Self>, lease: &Sequencer) -> Guarding {
        let lease = (lease.resource().clone(), lease.holder());
        *lock(&self.0).entry(lease.clone()).or_default() += 1;
        let guarded = Arc::clone(self);
        Guarding { guarded, lease }
    }

    pub(super) fn has(&self, lease: &Sequencer) -> bool {
        lock(&self.0).contains_key(&(lease.resource().clone(), lease.holder()))
    }
}

impl Drop for Guarding {
    fn drop(&mut self) {
        let mut guarded = lock(&self.guarded.0);
        if let Some(guards) = guarded.get_mut(&self.lease) {
            *guards -= 1;
            if *guards == 0 {
                guarded.remove(&self.lease);
            }
        }
    }
}
