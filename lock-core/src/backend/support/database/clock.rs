use std::{sync::Mutex, time::Duration};

use crate::{Moment, unpoisoned::lock};

/// A request to acquire may take effect for this time after it was sent. Tombstones last longer.
const REQUEST_TTL: Duration = Duration::from_secs(30);

/// The clock of a database, as it was read last.
#[derive(Debug, Default)]
pub struct ServerClock(Mutex<Sample>);

/// A time of the database's clock, and the moment of our own clock when it was read.
#[derive(Clone, Copy, Debug, Default)]
struct Sample {
    unix: Duration,
    at: Moment,
}

impl ServerClock {
    /// Notes a time of Unix that was read after this moment.
    pub fn was(&self, unix: Duration, at: Moment) {
        *lock(&self.0) = Sample { unix, at };
    }

    /// The time, by the database's clock, until which a request that is sent now may take effect. A
    /// pooler or a proxy may keep a request for minutes.
    pub(super) fn not_after(&self, now: Moment) -> Duration {
        let Sample { unix, at } = *lock(&self.0);
        unix + now.since(at) + REQUEST_TTL
    }
}
