use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::sync::Mutex as Turns;

use super::{
    ENDED_TTL,
    client::Client,
    failure::Failure,
    grant::{fresh_id, grant},
    queued::Life,
};
use lock_core::backend::{Moment, support::lock};

/// The lease that tombstones are attached to. It is kept alive for as long as the client lives, and
/// outlasts everything that the client has asked for by [`ENDED_TTL`].
#[derive(Debug)]
pub(super) struct TombstoneLease {
    client: Arc<Client>,
    present: Mutex<Option<Present>>,
    /// Only one caller at a time asks for another lease.
    turns: Turns<()>,
}

#[derive(Clone, Copy, Debug)]
struct Present {
    id: i64,
    /// The life of the lease, as it was when the lease was last kept alive.
    life: Life,
}

/// The interval at which the lease is kept alive. The lease is longer by this time.
const KEEP_ALIVE: Duration = Duration::from_secs(10);
const RESERVE: Duration = Duration::from_secs(20);
impl TombstoneLease {
    pub(super) fn new(client: Arc<Client>) -> Self {
        Self {
            client,
            present: Mutex::default(),
            turns: Turns::new(()),
        }
    }

    /// The present lease, if it outlasts leases of this length.
    pub(super) fn for_leases(&self, length: Duration) -> Option<i64> {
        let present = *lock(&self.present);
        let lasts = present.filter(|present| present.life.length >= length + ENDED_TTL + RESERVE);
        lasts.map(|present| present.id)
    }

    /// Asks for a lease that outlasts leases of this length. Callers that need one at the same time
    /// wait for the result.
    pub(super) async fn ask(&self, length: Duration) -> Result<i64, Failure> {
        let _turn = self.turns.lock().await;
        loop {
            if let Some(present) = self.for_leases(length) {
                return Ok(present);
            }
            let id = fresh_id(&*self.client.runtime);
            let length = length + ENDED_TTL + RESERVE;
            if let Some(life) = grant(&self.client, id, length).await? {
                *lock(&self.present) = Some(Present { id, life });
            }
        }
    }

    /// The present lease, if it is time to keep it alive.
    pub(super) fn due(&self, now: Moment) -> Option<i64> {
        let present = *lock(&self.present);
        let due = present.filter(|present| now >= present.life.since + KEEP_ALIVE);
        due.map(|present| present.id)
    }

    /// Notes that the lease was kept alive, or has ended.
    pub(super) fn kept_alive(&self, id: i64, life: Option<Life>) {
        let mut present = lock(&self.present);
        if present.is_some_and(|present| present.id == id) {
            *present = life.map(|life| Present { id, life });
        }
    }

    /// Notes that the lease does not exist any more.
    pub(super) fn forget(&self) {
        *lock(&self.present) = None;
    }
}
