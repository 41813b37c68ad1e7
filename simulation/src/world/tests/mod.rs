mod dying;
mod managers;
mod pausing;
mod running;

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use lock_core::backend::{Moment, support::lock};

use super::{Order, Ran, World};

/// More polls than any of these tests needs.
const POLLS: u64 = 10_000;

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

const fn at(millis: u64) -> Moment {
    Moment::from_origin(ms(millis))
}

fn world() -> World {
    World::new(1, Order::Fifo).unwrap()
}

/// Names in the order in which they were noted.
#[derive(Clone, Debug, Default)]
struct Notes(Arc<Mutex<Vec<String>>>);

impl Notes {
    fn add(&self, note: impl Into<String>) {
        lock(&self.0).push(note.into());
    }

    fn all(&self) -> String {
        lock(&self.0).join(" ")
    }
}

fn runs_dry(world: &World) {
    assert_eq!(world.run_until(Moment::NEVER, POLLS), Ran::Quiet);
}
