//! Tombstones: how a client takes them over, and how they are deleted.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use prost::Message;
use tracing::debug;

use super::{
    ENDED_TTL,
    client::Client,
    failure::Failure,
    keys::{Keys, Names},
    leases::Tombstone,
    record::State,
    service::{Found, Service},
    wire::{Compare, Op, RangeRequest, TxnRequest, TxnResponse},
};
use lock_core::{InitialToken, backend::Runtime};

/// The interval at which the client does the work that is due.
const EVERY: Duration = Duration::from_secs(5);
/// The number of tombstones or acquisitions in one step. A transaction may have 128 parts.
const AT_ONCE: usize = 50;
/// A service, and the task that does the work that is due.
pub(super) fn start(client: Client, keys: Keys, initial: InitialToken) -> Arc<Service> {
    let service = Arc::new(Service::new(client, keys, initial));
    let runtime = Arc::clone(&service.client.runtime);
    service.tasks.spawn(tidy(Arc::downgrade(&service), runtime));
    service
}

/// Does the work that is due, until the service is dropped.
async fn tidy(service: Weak<Service>, runtime: Arc<dyn Runtime>) {
    loop {
        runtime.sleep_until(runtime.now() + EVERY).await;
        let Some(service) = service.upgrade() else {
            return;
        };
        service.tidy().await;
    }
}

impl Service {
    /// The lease for the tombstone of an acquisition whose own lease has this length.
    ///
    /// A task asks for the lease, because other callers wait for it, too, and this caller may not
    /// be polled.
    pub(super) async fn tombstone_lease(&self, length: Duration) -> Result<i64, Failure> {
        if let Some(present) = self.tombstones.for_leases(length) {
            return Ok(present);
        }
        let tombstones = Arc::clone(&self.tombstones);
        let asked = self.tasks.run(async move { tombstones.ask(length).await });
        asked.await.unwrap_or_else(|ended| Err(ended.into()))
    }

    /// The lease for the tombstone of an acquisition that has ended.
    pub(super) async fn tombstone_lease_of_ended(&self) -> Result<i64, Failure> {
        self.tombstone_lease(Duration::ZERO).await
    }

    /// Carries out a transaction that writes tombstones. `None` if their lease does not exist any
    /// more. The next call asks for another one.
    pub(super) async fn bury(&self, txn: &TxnRequest) -> Result<Option<TxnResponse>, Failure> {
        match self.txn(txn).await {
            Err(failure) if failure.no_lease() => {
                self.tombstones.forget();
                Ok(None)
            }
            answer => answer.map(Some),
        }
    }

    /// Takes over tombstones that another client was the last to write. Otherwise they would end
    /// with the lease of that client. No caller waits for this: the next renewal, or the next look,
    /// shows whether it worked.
    pub(super) fn take_over(self: &Arc<Self>, found: Vec<(Names, Found)>, length: Duration) {
        let present = self.tombstones.for_leases(length);
        let is_others = |names: &Names, found: &Found| {
            let on = found.tombstone.as_ref().map(|tombstone| tombstone.lease);
            let needs_none = on.is_none() && self.leases.holding(names).is_some();
            found.entry.is_some() && !needs_none && (on.is_none() || on != present)
        };
        let mut found = found;
        found.retain(|(names, found)| is_others(names, found));
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
            let tombstone = found.remembered().in_state(State::Queued);
            Op::txn(TxnRequest {
                compare: found.unchanged(names).into(),
                success: vec![Op::put(&names.tombstone, tombstone.encode_to_vec(), lease)],
                failure: Vec::new(),
            })
        };
        let Some(answer) = self.bury(&each(found.iter().map(put).collect())).await? else {
            return Ok(());
        };
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
            while self.look_after_used().await? == AT_ONCE {}
            Ok::<_, Failure>(())
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
        let Some(present) = self.tombstones.due(self.now()) else {
            return Ok(());
        };
        let life = self.keep_one_alive(present).await?;
        self.tombstones.kept_alive(present, life);
        Ok(())
    }

    /// Finds the acquisitions that have ended although this client did not end them. Returns the
    /// number of acquisitions that it has looked at.
    async fn look_after_used(&self) -> Result<usize, Failure> {
        let due = self.leases.due(self.now(), AT_ONCE);
        if due.is_empty() {
            return Ok(0);
        }
        let entries = due
            .iter()
            .map(|(_, entry)| RangeRequest::key(entry).without_values());
        let answer = self.read(entries).await?;
        let now = self.now();
        for ((id, _), entry) in due.iter().zip(answer.ranges()) {
            self.leases.looked(id, !entry.kvs.is_empty(), now);
        }
        Ok(due.len())
    }

    /// Deletes tombstones, except those that another client has written since.
    async fn delete(&self, tombstones: &[Tombstone]) -> Result<(), Failure> {
        let delete = |tombstone: &Tombstone| {
            let key = self.keys.tombstone(&tombstone.id);
            Op::txn(TxnRequest {
                compare: vec![Compare::changed(&key, tombstone.changed)],
                success: vec![Op::delete(&key)],
                failure: Vec::new(),
            })
        };
        self.txn(&each(tombstones.iter().map(delete).collect()))
            .await
            .map(drop)
    }
}

/// Transactions within one, each of which succeeds or fails by itself.
fn each(txns: Vec<Op>) -> TxnRequest {
    TxnRequest {
        success: txns,
        ..TxnRequest::default()
    }
}
