use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use crate::{
    plan::{Net, Plan},
    service::{Fate, Leg},
    world::{Stream, draw},
};

/// The fate of each message, until the weather is calm.
#[derive(Debug)]
pub(crate) struct Weather {
    seed: u64,
    to_service: Net,
    to_store: Net,
    is_calm: AtomicBool,
}

/// The streams of draws, one for each client and way.
const FATES: u64 = 1 << 32;

impl Weather {
    pub(crate) fn of(plan: &Plan) -> Self {
        Self {
            seed: plan.seed,
            to_service: plan.to_service,
            to_store: plan.to_store,
            is_calm: AtomicBool::new(false),
        }
    }

    /// From now on every message arrives, and soon.
    pub(crate) fn calm_down(&self) {
        self.is_calm.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_calm(&self) -> bool {
        self.is_calm.load(Ordering::Relaxed)
    }

    /// The fate of a message to the lock service, or from it.
    pub(crate) fn to_service(&self, client: u32, leg: Leg, number: u64) -> Fate {
        self.draw(self.to_service, client, way(leg), number)
    }

    /// The fate of a message to the store, or of its answer.
    pub(crate) fn to_store(&self, client: u32, leg: Leg, number: u64) -> Fate {
        self.draw(self.to_store, client, 4 + way(leg), number)
    }

    /// The fate of a request to the service behind the edge, or of its answer.
    pub(crate) fn to_edge(&self, client: u32, leg: Leg, number: u64) -> Fate {
        self.draw(self.to_store, client, 8 + way(leg), number)
    }

    fn draw(&self, net: Net, client: u32, way: u64, number: u64) -> Fate {
        let key = draw(self.seed, FATES + (u64::from(client) << 8) + way, number);
        let mut stream = Stream::new(key, 0);
        let delay = stream.between(Duration::ZERO, net.delay);
        if self.is_calm() {
            return Fate {
                delay,
                ..Fate::default()
            };
        }
        let mut is = |thousandths: u16| stream.below(1_000) < u64::from(thousandths);
        let (lost, copied, late) = (is(net.lost), is(net.copied), is(net.late));
        let mut later = || stream.between(net.late_by / 4, net.late_by);
        Fate {
            delay: if late { delay + later() } else { delay },
            lost,
            copy_after: copied.then(later),
        }
    }
}

const fn way(leg: Leg) -> u64 {
    match leg {
        Leg::Request => 0,
        Leg::Answer => 1,
        Leg::Push => 2,
    }
}
