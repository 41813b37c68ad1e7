//! The state of the service as a plain value. Each request visits one resource at one moment.

mod ending;
mod held;
mod looking;
mod queue;
mod showing;
mod together;
mod tombstones;
mod visit;

use std::{collections::BTreeMap, time::Duration};

use lock_core::{
    FencingToken, ResourceName,
    backend::{Moment, support::rule::Tokens},
};

pub use self::showing::{LeaseLeft, LeftBehind};
pub(super) use self::visit::Visit;
use self::{held::Held, queue::Queue, tombstones::Tombstones};
use super::{
    asker::Push,
    observe::{MessageId, Observe},
    settings::Settings,
};

/// Leases, queues, tombstones and the counter.
#[derive(Clone, Debug)]
pub(super) struct Table {
    settings: Settings,
    tokens: Tokens,
    resources: BTreeMap<ResourceName, Resource>,
}

#[derive(Clone, Debug, Default)]
struct Resource {
    held: Option<Held>,
    queue: Queue,
    tombstones: Tombstones,
}

/// One request in the service, at one moment.
pub(super) struct Step<'a> {
    /// The request.
    pub(super) by: MessageId,
    /// By the clock of the network.
    pub(super) at: Moment,
    /// By the clock of the service.
    pub(super) now: Moment,
    /// The wall clock of the service.
    pub(super) unix_time: Duration,
    /// How many requests came before.
    pub(super) number: u64,
    pub(super) observer: &'a dyn Observe,
    /// The pushes that go out when the step is done.
    pub(super) pushes: &'a mut Vec<Push>,
}

/// A lease, as an answer describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Given {
    pub(super) token: FencingToken,
    pub(super) left: Duration,
}

/// The answer to a look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Looked {
    Granted(Given),
    Offered(Given),
    Held { left: Duration },
    Queued { left: Duration },
}

impl Table {
    pub(super) const fn new(settings: Settings) -> Self {
        Self {
            settings,
            tokens: Tokens::of_one_counter(settings.initial),
            resources: BTreeMap::new(),
        }
    }

    pub(super) fn visit<'a, 'b>(
        &'a mut self,
        name: &'a ResourceName,
        step: &'a mut Step<'b>,
    ) -> Visit<'a, 'b> {
        self.tokens.look_at(step.unix_time);
        if !self.resources.contains_key(name) {
            self.resources.insert(name.clone(), Resource::default());
        }
        let resource = self.resources.get_mut(name).expect("it is there");
        Visit {
            name,
            settings: &self.settings,
            tokens: &mut self.tokens,
            resource,
            step,
        }
    }

    pub(super) fn lose_queue(&mut self) {
        for resource in self.resources.values_mut() {
            resource.queue.clear();
        }
    }
}
