use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::sync::Semaphore;

use super::{
    client::Client,
    failure::Failure,
    keys::{Keys, Names},
    leases::{Leases, without_slack},
    queued::{Life, seconds_of},
    record::{Entry, Floor, Kept, Tombstone},
    revoker::Revoker,
    tombstone_lease::TombstoneLease,
    wire::{
        Compare, KeepAliveResponse, KeyValue, LeaseId, Op, RangeRequest, RangeResponse,
        TimeToLiveResponse, TxnRequest, TxnResponse, method,
    },
};
use lock_core::{
    Error, ErrorKind, InitialToken,
    backend::{
        Moment, Runtime,
        support::{Tasks, lock},
    },
};

/// The number of times that a change is tried if changes of others get in the way.
pub(super) const TRIES: u32 = 32;

/// The number of entries that are read at a time. With metadata, a few holds and a long name an
/// entry has about 2 kB, and an answer may have 4 MiB.
const PAGE: i64 = 500;

/// The number of requests of renewals and waiters that take over tombstones at the same time.
const TAKEOVERS: usize = 8;

/// The cluster, and the client's knowledge of it.
#[derive(Debug)]
pub(super) struct Service {
    pub(super) client: Arc<Client>,
    pub(super) keys: Keys,
    pub(super) initial: InitialToken,
    floor: Mutex<Option<Floor>>,
    pub(super) leases: Leases,
    pub(super) tombstones: Arc<TombstoneLease>,
    /// Permits for requests that take over tombstones.
    pub(super) takeovers: Arc<Semaphore>,
    pub(super) tasks: Tasks,
}

/// The keys of an acquisition in etcd.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) entry: Option<Kept<Entry>>,
    pub(super) tombstone: Option<Kept<Tombstone>>,
}

impl Service {
    pub(super) fn new(client: Client, keys: Keys, initial: InitialToken) -> Self {
        let tasks = Tasks::here(Arc::clone(&client.runtime));
        let client = Arc::new(client);
        Self {
            leases: Leases::new(Revoker::start(Arc::clone(&client), &tasks)),
            tombstones: Arc::new(TombstoneLease::new(Arc::clone(&client))),
            takeovers: Arc::new(Semaphore::new(TAKEOVERS)),
            client,
            keys,
            initial,
            floor: Mutex::default(),
            tasks,
        }
    }

    pub(super) fn now(&self) -> Moment {
        self.client.runtime.now()
    }

    pub(super) fn runtime(&self) -> &dyn Runtime {
        &*self.client.runtime
    }

    pub(super) async fn txn(&self, txn: &TxnRequest) -> Result<TxnResponse, Failure> {
        self.change(txn).await.map(|(answer, _)| answer)
    }

    /// The answer to a transaction, and whether it was sent more than once.
    pub(super) async fn change(&self, txn: &TxnRequest) -> Result<(TxnResponse, bool), Failure> {
        self.client.call_counting_copies(method::TXN, txn).await
    }

    /// Uses no lease that is kept for later, because one of them does not exist any more.
    pub(super) fn forget_leases(&self) {
        self.leases.forget_free(self.now());
        self.tombstones.forget();
    }

    /// Reads these ranges, all at one revision.
    pub(super) async fn read(
        &self,
        ranges: impl IntoIterator<Item = RangeRequest>,
    ) -> Result<TxnResponse, Failure> {
        let txn = TxnRequest {
            success: ranges.into_iter().map(Op::range).collect(),
            ..TxnRequest::default()
        };
        self.client.call(method::TXN, &txn).await
    }

    /// All entries, the oldest first.
    ///
    /// The entries are read a page at a time, because thousands do not fit into one answer. So the
    /// entries of one queue may be read at different times. An entry that was there all the time is
    /// found. An entry before it is found, too, if it is still there when its page is read.
    pub(super) async fn entries(&self) -> Result<Vec<KeyValue>, Failure> {
        let prefix = self.keys.locks();
        let mut entries: Vec<KeyValue> = Vec::new();
        loop {
            let after = entries.last().map(|last| last.key.as_slice());
            let page = RangeRequest::page(&prefix, after, PAGE);
            let page = self.read([page]).await?.ranges().next().unwrap_or_default();
            let is_last = i64::try_from(page.kvs.len()).is_ok_and(|number| number < PAGE);
            entries.extend(page.kvs);
            if is_last {
                entries.sort_unstable_by_key(|entry| entry.create_revision);
                return Ok(entries);
            }
        }
    }

    /// Looks for an acquisition.
    pub(super) async fn find(&self, names: &Names) -> Result<Found, Failure> {
        let ranges = [&names.entry, &names.tombstone].map(|key| RangeRequest::key(key));
        Ok(Found::read(&mut self.read(ranges).await?.ranges()))
    }

    /// The time left of a lease without the slack, in whole seconds, rounded down, so that it is
    /// not more than its holder knows. `None` if the lease has ended.
    pub(super) async fn left(&self, lease: i64) -> Result<Option<Life>, Failure> {
        let request = LeaseId { id: lease };
        let since = self.now();
        let answer = self.client.call(method::TIME_TO_LIVE, &request);
        let answer: TimeToLiveResponse = answer.await?;
        let length = seconds_of(answer.granted_ttl);
        Ok((answer.ttl >= 0).then(|| Life {
            since,
            ttl: seconds_of(answer.ttl).saturating_sub(length - without_slack(length)),
            length,
            said_in: Some(answer.header.map_or(0, |header| header.raft_term)),
        }))
    }

    /// Keeps leases alive. `None` for a lease that has ended.
    ///
    /// No majority is asked: a leader that was deposed and does not know that yet keeps leases
    /// alive that its successor lets end. So an answer counts only if it has the same term as a
    /// [`read`](Self::read) of the same entry. The leader of that term still led at some moment
    /// after the read began, and its successor began with the full length of each lease.
    ///
    /// A follower forwards the keep-alives of a stream one after the other, and waits for each
    /// answer. A stream carries as many keep-alives as fit into the time of an answer if each takes
    /// as long as `each`. The streams are sent at the same time. More streams cost the node more.
    pub(super) async fn keep_alive(
        &self,
        leases: &[i64],
        each: Duration,
    ) -> Result<Vec<Option<Life>>, Failure> {
        let requests: Vec<_> = leases.iter().map(|id| LeaseId { id: *id }).collect();
        let asked = self.now();
        let in_a_row = self.client.in_a_row(each);
        let answers = self
            .client
            .call_each(method::KEEP_ALIVE, &requests, in_a_row);
        let answers: Vec<KeepAliveResponse> = answers.await?;
        let kept = |lease: &i64| {
            let answer = answers.iter().find(|answer| answer.id == *lease)?;
            let term = answer.header.as_ref().map_or(0, |header| header.raft_term);
            (answer.ttl > 0).then(|| Life::whole(asked, answer.ttl, Some(term)))
        };
        Ok(leases.iter().map(kept).collect())
    }

    /// As [`keep_alive`](Self::keep_alive), for one lease.
    pub(super) async fn keep_one_alive(&self, lease: i64) -> Result<Option<Life>, Failure> {
        let kept = self.keep_alive(&[lease], Duration::ZERO).await?;
        Ok(kept.into_iter().next().flatten())
    }

    /// The floor as this client last knew it.
    pub(super) fn floor(&self) -> Option<Floor> {
        *lock(&self.floor)
    }

    pub(super) fn know_floor(&self, floor: Floor) {
        *lock(&self.floor) = Some(floor);
    }

    /// Forgets the floor, because an operator has deleted it.
    pub(super) fn forget_floor(&self) {
        *lock(&self.floor) = None;
    }
}

impl Found {
    /// Reads the answers to a range of the entry and one of the tombstone.
    pub(super) fn read(ranges: &mut impl Iterator<Item = RangeResponse>) -> Self {
        let mut first = || ranges.next().and_then(|range| range.kvs.into_iter().next());
        Self {
            entry: first().as_ref().map(Kept::read),
            tombstone: first().as_ref().map(Kept::read),
        }
    }

    /// Conditions that neither the entry nor the tombstone has changed since.
    pub(super) fn unchanged(&self, names: &Names) -> [Compare; 2] {
        let entry = self.entry.as_ref().map_or(0, |kept| kept.changed);
        let tombstone = self.tombstone.as_ref().map_or(0, |kept| kept.changed);
        [
            Compare::changed(&names.entry, entry),
            Compare::changed(&names.tombstone, tombstone),
        ]
    }

    /// The memory of the acquisition, which is empty without a tombstone.
    pub(super) fn remembered(&self) -> Tombstone {
        let tombstone = self.tombstone.as_ref();
        tombstone.map_or_else(Tombstone::default, |kept| kept.value.clone())
    }
}

/// Makes a change, and tries again when changes of others get in the way. Then `attempt` returns
/// `None`.
///
/// A change that was refused may have been made nevertheless. If its answer is lost, the change is
/// sent again, and then its first copy gets in its way. So after any error that follows the first
/// try, the outcome is unknown.
pub(super) async fn insist<T, F>(attempt: impl Fn() -> F) -> Result<T, Error>
where
    F: Future<Output = Result<Option<T>, Error>>,
{
    if let Some(changed) = attempt().await? {
        return Ok(changed);
    }
    for _ in 1..TRIES {
        if let Some(changed) = attempt().await.map_err(Error::outcome_unknown)? {
            return Ok(changed);
        }
    }
    Err(crowded().outcome_unknown())
}

/// The error if changes of others got in the way each time.
pub(super) fn crowded() -> Error {
    Error::not_applied(ErrorKind::Unavailable).because("others have changed it each time we looked")
}
