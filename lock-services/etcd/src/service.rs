use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use super::{
    KIND,
    client::Client,
    failure::Failure,
    grant::{Granted, PATIENCE, grant, seconds_of},
    keys::{Keys, Names},
    mark_leases::MarkLeases,
    record::{Floor, Kept, Mark, Place},
    rememberer::Rememberer,
    revoker::Revoker,
    successors::Successors,
    wire::{
        Compare, KeepAliveResponse, KeyValue, LeaseId, Op, RangeRequest, RangeResponse,
        TimeToLiveResponse, TxnRequest, TxnResponse, method,
    },
};
use lock_core::{
    Clock, Error, ErrorKind, Holder, InitialToken, Moment, Operation, ResourceName, support::lock,
};

/// The same for requests that change nothing or are repeated anyway.
pub(super) const SHORT_PATIENCE: Duration = Duration::from_secs(4);
/// How often a change is tried if others get in the way.
pub(super) const TRIES: u32 = 32;

/// How many places are read at a time. With metadata, a few holds and a long name one has about
/// 2 kB, and an answer may have 4 MiB.
const PAGE: i64 = 500;

/// The cluster, and what we know of it.
#[derive(Debug)]
pub(super) struct Service {
    pub(super) client: Arc<Client>,
    pub(super) keys: Keys,
    pub(super) initial: InitialToken,
    floor: Mutex<Option<Floor>>,
    pub(super) mark_leases: Mutex<MarkLeases>,
    pub(super) rememberer: Rememberer,
    pub(super) revoker: Revoker,
    pub(super) successors: Successors,
}

/// What etcd has of an acquisition.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) round: u32,
    /// The name of its place, whether or not it has one.
    pub(super) key: Vec<u8>,
    pub(super) place: Option<Kept<Place>>,
    pub(super) mark: Option<Kept<Mark>>,
}

impl Service {
    pub(super) fn new(
        client: Client,
        keys: Keys,
        initial: InitialToken,
        rememberer: Rememberer,
    ) -> Self {
        let client = Arc::new(client);
        Self {
            revoker: Revoker::start(Arc::clone(&client)),
            rememberer,
            client,
            keys,
            initial,
            floor: Mutex::default(),
            mark_leases: Mutex::default(),
            successors: Successors::default(),
        }
    }

    pub(super) fn now(&self) -> Moment {
        self.client.clock.now()
    }

    pub(super) fn clock(&self) -> &dyn Clock {
        &*self.client.clock
    }

    pub(super) async fn txn(&self, txn: &TxnRequest) -> Result<TxnResponse, Failure> {
        let until = self.now() + PATIENCE;
        self.client.call(method::TXN, txn, until).await
    }

    /// What these ranges find, all at one revision.
    pub(super) async fn read(
        &self,
        ranges: impl IntoIterator<Item = RangeRequest>,
    ) -> Result<TxnResponse, Failure> {
        let txn = TxnRequest {
            success: ranges.into_iter().map(Op::range).collect(),
            ..TxnRequest::default()
        };
        let until = self.now() + SHORT_PATIENCE;
        self.client.call(method::TXN, &txn, until).await
    }

    /// All places, the oldest first.
    ///
    /// They are read a page at a time: thousands do not fit into one answer. So places of one line
    /// may be read one after the other. A place that was there all the time is found, and so is
    /// whatever was before it and is still there when its page is read.
    pub(super) async fn places(&self) -> Result<Vec<KeyValue>, Failure> {
        let prefix = self.keys.locks();
        let mut places: Vec<KeyValue> = Vec::new();
        loop {
            let after = places.last().map(|last| last.key.as_slice());
            let page = RangeRequest::page(&prefix, after, PAGE);
            let page = self.read([page]).await?.ranges().next().unwrap_or_default();
            let is_last = i64::try_from(page.kvs.len()).is_ok_and(|number| number < PAGE);
            places.extend(page.kvs);
            if is_last {
                places.sort_unstable_by_key(|place| place.create_revision);
                return Ok(places);
            }
        }
    }

    /// Looks for an acquisition.
    pub(super) async fn find(&self, names: &Names) -> Result<Found, Failure> {
        let mut round = 0;
        loop {
            let key = names.place(names.lease(round));
            let ranges = [RangeRequest::key(&key), RangeRequest::key(&names.mark)];
            let found = Found::read(key, round, &mut self.read(ranges).await?.ranges());
            match &found.mark {
                Some(mark) if mark.value.round != round => round = mark.value.round,
                _ => return Ok(found),
            }
        }
    }

    /// Has a lease granted, at least as long as asked for.
    pub(super) async fn grant(&self, id: i64, ttl: Duration) -> Result<Granted, Failure> {
        grant(&self.client, id, ttl).await
    }

    /// The time left of a lease, in whole seconds, rounded down, and the term of the node that was
    /// asked. `None` if the lease has ended.
    pub(super) async fn left(&self, lease: i64) -> Result<Option<(Duration, u64)>, Failure> {
        let request = LeaseId { id: lease };
        let until = self.now() + SHORT_PATIENCE;
        let TimeToLiveResponse { header, ttl } = self
            .client
            .call(method::TIME_TO_LIVE, &request, until)
            .await?;
        let term = header.map_or(0, |header| header.raft_term);
        Ok((ttl >= 0).then(|| (seconds_of(ttl), term)))
    }

    /// Keeps leases alive. Returns a moment, and for each lease its full length, which counts from
    /// that moment, and the term of the node that was asked; `None` for a lease that has ended.
    ///
    /// No majority is asked: a leader that was deposed and does not know it yet keeps leases alive
    /// that its successor lets end. So an answer counts only if its term is that of a
    /// [`read`](Self::read) of the same place. The leader of that term still led at some moment
    /// after the read began, and its successor began with the full length of each lease.
    pub(super) async fn keep_alive(
        &self,
        leases: &[i64],
    ) -> Result<(Moment, Vec<Option<(Duration, u64)>>), Failure> {
        let requests: Vec<_> = leases.iter().map(|id| LeaseId { id: *id }).collect();
        let asked = self.now();
        let until = asked + SHORT_PATIENCE;
        let answers: Vec<KeepAliveResponse> = self
            .client
            .call_each(method::KEEP_ALIVE, &requests, until)
            .await?;
        let kept = |lease: &i64| {
            let answer = answers.iter().find(|answer| answer.id == *lease)?;
            let term = answer.header.as_ref().map_or(0, |header| header.raft_term);
            (answer.ttl > 0).then(|| (seconds_of(answer.ttl), term))
        };
        Ok((asked, leases.iter().map(kept).collect()))
    }

    /// The floor as we last knew it.
    pub(super) fn floor(&self) -> Option<Floor> {
        *lock(&self.floor)
    }

    pub(super) fn know_floor(&self, floor: Floor) {
        *lock(&self.floor) = Some(floor);
    }

    /// Forgets the floor, because somebody has deleted it.
    pub(super) fn forget_floor(&self) {
        *lock(&self.floor) = None;
    }
}

impl Found {
    /// Reads the answers to a range of the place and one of the mark.
    pub(super) fn read(
        key: Vec<u8>,
        round: u32,
        ranges: &mut impl Iterator<Item = RangeResponse>,
    ) -> Self {
        let mut first = || ranges.next().and_then(|range| range.kvs.into_iter().next());
        Self {
            round,
            key,
            place: first().as_ref().map(Kept::read),
            mark: first().as_ref().map(Kept::read),
        }
    }

    /// Compares that neither its place nor its mark has changed since.
    pub(super) fn unchanged(&self, names: &Names) -> [Compare; 2] {
        let changed = |kept: Option<i64>| kept.unwrap_or(0);
        [
            Compare::changed(
                &self.key,
                changed(self.place.as_ref().map(|kept| kept.changed)),
            ),
            Compare::changed(
                &names.mark,
                changed(self.mark.as_ref().map(|kept| kept.changed)),
            ),
        ]
    }

    /// What is remembered of it, which is nothing if there is no mark.
    pub(super) fn memory(&self) -> Mark {
        self.mark
            .as_ref()
            .map_or_else(Mark::default, |mark| mark.value.clone())
    }

    /// The place, if it belongs to this holder. Very rarely, two holders get the same number for
    /// their leases.
    pub(super) fn place_of(&self, holder: Holder) -> Option<&Kept<Place>> {
        self.place
            .as_ref()
            .filter(|place| place.value.digest == holder.digest())
    }
}

/// Makes a change, however often others get in its way: then `attempt` says `None`.
///
/// A change that was refused may have been made all the same: if its answer is lost, it is sent
/// again, and then its first copy gets in its way. So whatever goes wrong after the first attempt,
/// the outcome is unknown.
pub(super) async fn insist<T, F>(
    attempt: impl Fn() -> F,
    crowded: impl FnOnce() -> Error,
) -> Result<T, Error>
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

/// The error if others got in the way each time.
pub(super) fn crowded(operation: Operation, resource: &ResourceName) -> Error {
    Error::not_applied(ErrorKind::Unavailable, operation, KIND)
        .on(resource)
        .because("others have changed it each time we looked")
}
