//! The service as a whole: its floor says whether it grants.

use std::collections::HashMap;

use futures_util::{StreamExt, TryStreamExt, stream};
use prost::Message;

use super::{
    failure::Failure,
    floor::{Floor, broken},
    record::{Kept, Place, token},
    service::{Service, TRIES, insist},
    wire::{Compare, KeyValue, Op, RangeRequest, TxnRequest},
};
use crate::{Error, ErrorKind, FencingToken, Operation, Standing};

/// How many are bound at the same time.
const AT_ONCE: usize = 16;

/// A place that is not the first in its line.
struct Waiter {
    /// The place before it, and the revision that made that.
    before: (Vec<u8>, i64),
    key: Vec<u8>,
    place: Kept<Place>,
}

impl Service {
    pub(super) async fn standing(&self) -> Result<Standing, Error> {
        let (floor, revision) = self.read_floor(Operation::Standing).await?;
        Ok(self.stands(floor, revision))
    }

    /// Who takes a place compares the floor, so nobody takes one from then on. The revision that
    /// retired it is greater than that of every place there is: so whoever is bound to what comes
    /// after it is told nothing more.
    pub(super) async fn retire(&self) -> Result<Standing, Error> {
        let retire = |floor: Floor, _| Ok(floor.out_of_service());
        let standing = self.change_floor(Operation::Retire, retire).await?;
        if let Some(last) = standing.last {
            let least = last.get() + 1;
            let bound = self.bind_waiters(least, Operation::Retire).await;
            bound.map_err(Error::outcome_unknown)?;
        }
        Ok(standing)
    }

    pub(super) async fn reinstate(&self, least: FencingToken) -> Result<Standing, Error> {
        let reinstate = |floor: Floor, revision| {
            let last = token(floor.value, revision).map_or(0, u64::from);
            self.check_plausible(least, last, Operation::Reinstate)?;
            let value = std::cmp::max(floor.value, Floor::for_token(least.get(), revision));
            let changed = Floor {
                value,
                retired: false,
                retired_by: 0,
                ..floor
            };
            // Also if it is so already: a request to retire that arrives late finds another one.
            Ok(changed)
        };
        let standing = self.change_floor(Operation::Reinstate, reinstate).await?;
        let bound = self.bind_waiters(least.get(), Operation::Reinstate).await;
        bound.map_err(Error::outcome_unknown)?;
        Ok(standing)
    }

    /// Sees to it that nobody who waits is told of a place whose token is below that. Whoever is
    /// first in line holds the resource by now, and may have been told so.
    ///
    /// Nobody takes such a place any more when this begins, so it ends.
    async fn bind_waiters(&self, least: u64, operation: Operation) -> Result<(), Error> {
        let failed = |failure: Failure| failure.error(operation);
        for _ in 0..TRIES {
            let places = self.places().await.map_err(failed)?;
            let waiters = self.unbound(places, least);
            if waiters.is_empty() {
                return Ok(());
            }
            stream::iter(waiters)
                .map(|waiter| self.bind(waiter, least))
                .buffer_unordered(AT_ONCE)
                .try_for_each(|()| std::future::ready(Ok(())))
                .await
                .map_err(failed)?;
        }
        Err(crowded_service(operation))
    }

    /// Those who wait, and are not bound yet.
    fn unbound(&self, places: Vec<KeyValue>, least: u64) -> Vec<Waiter> {
        let mut lines = HashMap::new();
        let mut waiters = Vec::new();
        // The oldest come first.
        for entry in places {
            let Some(resource) = self.keys.resource(&entry.key) else {
                continue;
            };
            let (key, place) = (entry.key.clone(), Kept::<Place>::read(&entry));
            let Some(before) = lines.insert(resource, (entry.key, place.created)) else {
                continue;
            };
            // `etcdctl lock` has no token that anybody would look at.
            let is_ours = !place.value.digest.is_empty();
            let is_less = place.token().is_some_and(|token| token.get() < least);
            if is_ours && is_less && place.value.least < least {
                waiters.push(Waiter { before, key, place });
            }
        }
        waiters
    }

    /// Binds one, as long as somebody is before it. Otherwise it is looked at once more.
    async fn bind(&self, waiter: Waiter, least: u64) -> Result<(), Failure> {
        let Waiter { before, key, place } = waiter;
        let bound = Place {
            least,
            ..place.value
        };
        let txn = TxnRequest {
            compare: vec![
                Compare::created(&before.0, before.1),
                Compare::changed(&key, place.changed),
            ],
            success: vec![Op::put(&key, bound.encode_to_vec(), place.lease)],
            failure: Vec::new(),
        };
        match self.txn(&txn).await {
            Err(failure) if !failure.no_lease() => Err(failure),
            // Done, or not as it was any more.
            _ => Ok(()),
        }
    }

    async fn change_floor(
        &self,
        operation: Operation,
        change: impl Fn(Floor, i64) -> Result<Floor, Error> + Send + Sync,
    ) -> Result<Standing, Error> {
        let attempt = || self.try_to_change_floor(operation, &change);
        insist(attempt, || crowded_service(operation)).await
    }

    /// `None` if it was changed in between.
    async fn try_to_change_floor(
        &self,
        operation: Operation,
        change: &(impl Fn(Floor, i64) -> Result<Floor, Error> + Sync),
    ) -> Result<Option<Standing>, Error> {
        let (floor, revision) = self.read_floor(operation).await?;
        let put = self.put_floor(change(floor, revision)?).await;
        let put = put.map_err(|failure| failure.error(operation))?;
        Ok(put.map(|floor| self.stands(floor, floor.changed)))
    }

    /// What has been issued at most, when the cluster was at that revision, and what
    /// [`reinstate`](Self::reinstate) would take.
    fn stands(&self, floor: Floor, revision: i64) -> Standing {
        let greatest = self.greatest_floor(token(floor.value, revision).map_or(0, u64::from));
        Standing {
            retired: floor.retired,
            last: token(floor.value, floor.last(revision)),
            greatest_floor: FencingToken::new(greatest).ok(),
        }
    }

    /// The floor, and the revision of the cluster when it was read.
    async fn read_floor(&self, operation: Operation) -> Result<(Floor, i64), Error> {
        let failed = |failure: Failure| failure.error(operation);
        let read = self
            .read([RangeRequest::key(&self.keys.floor())])
            .await
            .map_err(failed)?;
        let revision = read.revision();
        let floor = match read.ranges().flat_map(|range| range.kvs).next() {
            Some(entry) => Floor::read(&entry).ok_or_else(broken)?,
            None => Floor::default(),
        };
        Ok((floor, revision))
    }
}

fn crowded_service(operation: Operation) -> Error {
    Error::not_applied(ErrorKind::Unavailable, operation, super::KIND)
        .because("others have changed something each time we looked: send it again")
}
