//! What is remembered of acquisitions: which lease it is attached to, and when it is moved to
//! another.

use std::{
    sync::{Arc, MutexGuard, Weak},
    time::Duration,
};

use futures_util::{StreamExt, stream};
use prost::Message;
use tokio::sync::mpsc::UnboundedReceiver;
use tracing::debug;

use super::{
    ENDED_TTL, background,
    client::Client,
    failure::Failure,
    keys::{Keys, Names},
    mark_leases::MarkLeases,
    memories::Memories,
    record::State,
    rememberer::{Due, Rememberer},
    service::Service,
    wire::{Op, TxnRequest},
};
use lock_core::{InitialToken, support::lock};

/// How many marks are moved to another lease at the same time.
const AT_ONCE: usize = 8;

/// A service, and the task that remembers for it.
pub(super) fn start(client: Client, keys: Keys, initial: InitialToken) -> Arc<Service> {
    Arc::new_cyclic(|service| {
        let due = background::start(|queue| work(Weak::clone(service), queue));
        Service::new(client, keys, initial, Rememberer::new(due))
    })
}

async fn work(service: Weak<Service>, mut queue: UnboundedReceiver<Due>) {
    let due = stream::poll_fn(|context| queue.poll_recv(context));
    due.for_each_concurrent(AT_ONCE, |due| {
        let service = service.upgrade();
        async move {
            if let Some(service) = service {
                service.remember_due(due).await;
            }
        }
    })
    .await;
}

impl Service {
    /// A lease for the mark of an acquisition. It outlasts the acquisition's own lease by
    /// [`ENDED_TTL`], and the mark need not be moved to another one soon.
    pub(super) async fn memory(&self, ttl: Duration) -> Result<i64, Failure> {
        let least = ttl + ENDED_TTL;
        self.lease_for_mark(Memories::fresh_for(least), least).await
    }

    /// The same for an acquisition that has ended.
    pub(super) async fn memory_of_ended(&self) -> Result<i64, Failure> {
        self.lease_for_mark(ENDED_TTL, ENDED_TTL).await
    }

    /// Whether the lease that a mark is attached to is known to last long enough.
    pub(super) fn remembers(&self, lease: i64, names: &Names, ttl: Duration) -> bool {
        let due = Memories::due_for(ttl + ENDED_TTL, names.lease(0));
        self.mark_leases().known.lasts(lease, self.now() + due)
    }

    /// Soon has an acquisition remembered for longer than its lease lives. Whether that worked
    /// shows at the next renewal, or when whoever waits for it looks next.
    pub(super) fn remember_soon(&self, names: Names, ttl: Duration) {
        self.rememberer.take(names, ttl);
    }

    async fn remember_due(&self, due: Due) {
        if let Err(failure) = self.remember(&due.names, due.ttl).await {
            debug!(
                ?failure,
                "etcd: what is remembered of a lease may be forgotten early"
            );
        }
        self.rememberer.is_done(&due.names);
    }

    /// Moves the mark of an acquisition to a lease that lasts, unless somebody changes its place or
    /// its mark at the same time.
    async fn remember(&self, names: &Names, ttl: Duration) -> Result<(), Failure> {
        let found = self.find(names).await?;
        let attached_to = found.mark.as_ref().map_or(0, |mark| mark.lease);
        if found.place.is_none() || self.remembers(attached_to, names, ttl) {
            return Ok(());
        }
        let memory = self.memory(ttl).await?;
        let mark = found.memory().in_state(State::InLine);
        let txn = TxnRequest {
            compare: found.unchanged(names).into(),
            success: vec![Op::put(&names.mark, mark.encode_to_vec(), memory)],
            failure: Vec::new(),
        };
        let moved = self.txn(&txn).await;
        if moved.as_ref().is_err_and(Failure::no_lease) {
            self.forget_memories();
        }
        moved.map(drop)
    }

    /// A lease that lasts for `fresh`, and no longer than one for `least` would. All who need one
    /// while it is being asked for get the same one; at the start that is everybody.
    async fn lease_for_mark(&self, fresh: Duration, least: Duration) -> Result<i64, Failure> {
        let asking = {
            let (now, length) = (self.now(), Memories::length_for(least));
            let mut leases = self.mark_leases();
            if let Some(lease) = leases.known.ending(&(now + fresh..=now + length)) {
                return Ok(lease);
            }
            leases.ask(length, now + fresh, &self.client)
        };
        let (lease, end) = asking.await?;
        self.mark_leases().known.insert(lease, end, self.now());
        Ok(lease)
    }

    /// Forgets all of them, because one that we thought was there is not.
    pub(super) fn forget_memories(&self) {
        *self.mark_leases() = MarkLeases::default();
    }

    fn mark_leases(&self) -> MutexGuard<'_, MarkLeases> {
        lock(&self.mark_leases)
    }
}
