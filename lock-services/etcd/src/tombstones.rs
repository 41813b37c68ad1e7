//! Tombstones: the one lease that all of a client's are attached to, and how they go.

use std::{
    sync::{Arc, Mutex, Weak},
    time::Duration,
};

use prost::Message;
use tokio::sync::{Mutex as Turns, Semaphore};
use tracing::debug;

use super::{
    ENDED_TTL,
    client::Client,
    failure::Failure,
    grant::{Granted, grant},
    keys::Names,
    leases::Tombstone,
    record::State,
    service::{Found, Service},
    wire::{Compare, Op, RangeRequest, TxnRequest},
};
use lock_core::{
    Clock, Moment,
    support::{Tasks, lock},
};

/// The lease that tombstones are attached to. It is kept alive for as long as the client lives, and
/// outlasts everything that the client has asked for by [`ENDED_TTL`].
#[derive(Debug)]
pub(super) struct TombstoneLease {
    client: Arc<Client>,
    present: Mutex<Option<Present>>,
    /// Whoever asks for another one.
    turns: Turns<()>,
}

#[derive(Clone, Copy, Debug)]
struct Present {
    id: i64,
    length: Duration,
    kept_alive: Moment,
}

/// How often the client looks what is due.
const EVERY: Duration = Duration::from_secs(5);
/// How often the lease is kept alive, and how much longer it is because of that.
const KEEP_ALIVE: Duration = Duration::from_secs(10);
const RESERVE: Duration = Duration::from_secs(20);
/// How many are deleted, or looked after, in one step: a transaction may have 128 parts.
const AT_ONCE: usize = 50;
/// How many requests of renewals and waiters take tombstones over at the same time.
pub(super) const TAKEOVERS: usize = 8;

impl TombstoneLease {
    pub(super) fn new(client: Arc<Client>) -> Self {
        Self {
            client,
            present: Mutex::default(),
            turns: Turns::new(()),
        }
    }

    /// The present one, if it outlasts leases of that length.
    fn for_leases(&self, length: Duration) -> Option<i64> {
        let present = *lock(&self.present);
        let lasts = present.filter(|present| present.length >= length + ENDED_TTL + RESERVE);
        lasts.map(|present| present.id)
    }

    /// Has one granted that outlasts leases of that length. Those who need one meanwhile wait for
    /// it.
    async fn ask(&self, length: Duration) -> Result<i64, Failure> {
        let _turn = self.turns.lock().await;
        loop {
            if let Some(present) = self.for_leases(length) {
                return Ok(present);
            }
            let id = std::cmp::max(rand::random::<i64>() & i64::MAX, 1);
            let length = length + ENDED_TTL + RESERVE;
            if let Granted::New { asked, ttl } = grant(&self.client, id, length).await? {
                *lock(&self.present) = Some(Present {
                    id,
                    length: ttl,
                    kept_alive: asked,
                });
            }
        }
    }
}

/// Looks after what is due until the service is dropped.
pub(super) async fn tidy(service: Weak<Service>, clock: Arc<dyn Clock>) {
    loop {
        clock.sleep_until(clock.now() + EVERY).await;
        let Some(service) = service.upgrade() else {
            return;
        };
        service.tidy().await;
    }
}

impl Service {
    /// The lease for the tombstone of an acquisition whose own lease has that length.
    ///
    /// It is asked for on a task, because others wait for it, too, and this caller may not be
    /// polled.
    pub(super) async fn tombstone_lease(&self, length: Duration) -> Result<i64, Failure> {
        if let Some(present) = self.tombstones.for_leases(length) {
            return Ok(present);
        }
        let tombstones = Arc::clone(&self.tombstones);
        let asked = self.tasks.run(async move { tombstones.ask(length).await });
        asked.await.unwrap_or_else(|ended| Err(ended.into()))
    }

    /// The same for an acquisition that has ended.
    pub(super) async fn tombstone_lease_of_ended(&self) -> Result<i64, Failure> {
        self.tombstone_lease(Duration::ZERO).await
    }

    /// Asks for another one, because the one that we thought was there is not.
    pub(super) fn forget_tombstone_lease(&self) {
        *lock(&self.tombstones.present) = None;
    }

    /// Takes tombstones over that another client has written last, and that would go with that
    /// client. Nobody waits for it: whether it worked shows at the next renewal, or the next look.
    pub(super) fn take_over(self: &Arc<Self>, found: Vec<(Names, Found)>, length: Duration) {
        let present = self.tombstones.for_leases(length);
        let is_others = |found: &Found| {
            let on = found.tombstone.as_ref().map(|tombstone| tombstone.lease);
            found.place.is_some() && (on.is_none() || on != present)
        };
        let mut found = found;
        found.retain(|(_, found)| is_others(found));
        let permit = Arc::clone(&self.takeovers).try_acquire_owned();
        if let Ok(permit) = permit
            && !found.is_empty()
        {
            let service = Arc::clone(self);
            self.tasks.spawn(async move {
                if let Err(failure) = service.take_over_now(&found, length).await {
                    debug!(?failure, "etcd: a tombstone may go too early");
                }
                drop(permit);
            });
        }
    }

    async fn take_over_now(
        &self,
        found: &[(Names, Found)],
        length: Duration,
    ) -> Result<(), Failure> {
        let lease = self.tombstone_lease(length).await?;
        let put = |(names, found): &(Names, Found)| {
            let tombstone = found.remembered().in_state(State::InLine);
            Op::txn(TxnRequest {
                compare: found.unchanged(names).into(),
                success: vec![Op::put(&names.tombstone, tombstone.encode_to_vec(), lease)],
                failure: Vec::new(),
            })
        };
        let answer = self.each(found.iter().map(put).collect()).await;
        if answer.as_ref().is_err_and(Failure::no_lease) {
            self.forget_tombstone_lease();
        }
        let answer = answer?;
        let (changed, due) = (answer.revision(), self.now() + ENDED_TTL);
        for ((names, _), is_put) in found.iter().zip(answer.each_succeeded()) {
            if is_put {
                self.leases.wrote(names, changed, due);
            }
        }
        Ok(())
    }

    async fn tidy(&self) {
        self.leases.retire_old(self.now());
        let done = async {
            self.keep_tombstone_lease_alive().await?;
            self.look_after_used().await
        };
        if let Err(failure) = done.await {
            debug!(?failure, "etcd: what is due is done later");
        }
        let mut over = self.leases.over(self.now());
        while !over.is_empty() {
            let some = over.split_off(over.len().saturating_sub(AT_ONCE));
            if let Err(failure) = self.delete(&some).await {
                debug!(?failure, "etcd: tombstones are deleted later");
                over.extend(some);
                self.leases.not_deleted(over, self.now());
                return;
            }
        }
    }

    async fn keep_tombstone_lease_alive(&self) -> Result<(), Failure> {
        let present = *lock(&self.tombstones.present);
        let due = |present: &Present| self.now() >= present.kept_alive + KEEP_ALIVE;
        let Some(present) = present.filter(due) else {
            return Ok(());
        };
        let (asked, kept) = self.keep_alive(&[present.id]).await?;
        let lives = kept.first().is_some_and(Option::is_some);
        let mut now = lock(&self.tombstones.present);
        if now.is_some_and(|now| now.id == present.id) {
            *now = lives.then_some(Present {
                kept_alive: asked,
                ..present
            });
        }
        Ok(())
    }

    /// Finds out which acquisitions have ended without a word.
    async fn look_after_used(&self) -> Result<(), Failure> {
        let due = self.leases.due(self.now(), AT_ONCE);
        if due.is_empty() {
            return Ok(());
        }
        let places = due
            .iter()
            .map(|(_, place)| RangeRequest::key(place).without_values());
        let answer = self.read(places).await?;
        let now = self.now();
        for ((id, _), place) in due.iter().zip(answer.ranges()) {
            self.leases.looked(id, !place.kvs.is_empty(), now);
        }
        Ok(())
    }

    /// Deletes tombstones, but none that somebody has written since.
    async fn delete(&self, tombstones: &[Tombstone]) -> Result<(), Failure> {
        let delete = |tombstone: &Tombstone| {
            let key = self.keys.tombstone(&tombstone.id);
            Op::txn(TxnRequest {
                compare: vec![Compare::changed(&key, tombstone.changed)],
                success: vec![Op::delete(&key)],
                failure: Vec::new(),
            })
        };
        self.each(tombstones.iter().map(delete).collect())
            .await
            .map(drop)
    }
}

/// How many take tombstones over at the same time.
pub(super) fn takeovers() -> Arc<Semaphore> {
    Arc::new(Semaphore::new(TAKEOVERS))
}

/// Starts to look after what is due.
pub(super) fn start(service: &Arc<Service>, tasks: &Tasks) {
    tasks.spawn(tidy(
        Arc::downgrade(service),
        Arc::clone(&service.client.clock),
    ));
}
