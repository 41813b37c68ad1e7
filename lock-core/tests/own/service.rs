use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use lock_core::{
    Capabilities, Error, ErrorKind, Fairness, Fencing, FencingToken, HolderView, InitialToken,
    Inspection, Released, ResourceName, Sequencer, Waking,
    backend::{
        AcquireRequest, AttemptId, AttemptRef, Grant, Lease, LockBackend, Moment, RenewRequest,
        Renewed, Reply, Request, Requests, Runtime, TokioRuntime,
        support::{End, Tombstones, lock},
    },
};

/// A lock service in a map of this process. Waiters poll.
#[derive(Debug)]
pub(crate) struct MapBackend(Mutex<Map>);

#[derive(Debug)]
struct Map {
    last_token: u64,
    leases: HashMap<ResourceName, Held>,
    ended: Tombstones,
}

#[derive(Debug)]
struct Held {
    lease: Sequencer,
    /// The attempts that know of the lease.
    attempts: Vec<AttemptId>,
    until: Moment,
}

impl MapBackend {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(Map {
            last_token: InitialToken::clock_token(TokioRuntime.unix_time()),
            leases: HashMap::new(),
            ended: Tombstones::new(Duration::from_secs(60)),
        }))
    }

    /// The map, without leases that are over.
    fn map(&self) -> MutexGuard<'_, Map> {
        let (mut map, now) = (lock(&self.0), TokioRuntime.now());
        let Map { leases, ended, .. } = &mut *map;
        for (resource, held) in leases.extract_if(|_, held| held.until <= now) {
            ended.acquisition(&resource, held.lease.holder(), End::Over, now);
        }
        map
    }
}

/// The requests of one attempt.
struct Attempt<'a>(&'a MapBackend, &'a AcquireRequest);

impl Requests for Attempt<'_> {
    async fn send(&self, request: Request) -> Result<Reply, Error> {
        let Self(service, AcquireRequest { attempt, .. }) = self;
        match request {
            Request::Look { queue } => service.map().look(self.1, queue),
            _ => service.cancel(attempt).await.map(|()| Reply::Cancelled),
        }
    }
}

impl Map {
    fn look(&mut self, request: &AcquireRequest, queue: bool) -> Result<Reply, Error> {
        let (attempt, now) = (&request.attempt, TokioRuntime.now());
        let greatest = InitialToken::Clock.greatest_floor(0, TokioRuntime.unix_time());
        let floor = request.floor.map_or(0, FencingToken::get);
        if self.ended.forbids(attempt) {
            return Err(Error::not_applied(ErrorKind::Released));
        } else if floor > greatest {
            return Err(Error::not_applied(ErrorKind::FloorImplausible));
        }
        if let Some(held) = self.leases.get_mut(&attempt.resource) {
            let left = held.until.since(now);
            if held.lease.holder() == attempt.holder {
                held.attempts.push(attempt.id);
                let lease = Lease::counted_from(now, left);
                return Ok(Reply::Granted(Grant::new(held.lease.token(), lease)));
            }
            let look_again = left.min(Duration::from_millis(20));
            return Ok(match queue {
                true => Reply::Queued { left, look_again },
                false => Reply::Held { left },
            });
        }
        self.last_token = (self.last_token + 1).max(floor);
        let exhausted = |_| Error::not_applied(ErrorKind::TokensExhausted);
        let token = FencingToken::new(self.last_token).map_err(exhausted)?;
        let lease = Lease::counted_from(now, request.ttl.get());
        let (issuer, resource) = ("map".try_into()?, attempt.resource.clone());
        let held = Held {
            lease: Sequencer::new(issuer, resource.clone(), token, attempt.holder),
            attempts: vec![attempt.id],
            until: lease.deadline(),
        };
        self.leases.insert(resource, held);
        Ok(Reply::Granted(Grant::new(token, lease)))
    }

    fn held(&mut self, lease: &Sequencer) -> Option<&mut Held> {
        let held = self.leases.get_mut(lease.resource())?;
        let present = (held.lease.holder(), held.lease.token());
        (present == (lease.holder(), lease.token())).then_some(held)
    }
}

impl LockBackend for MapBackend {
    fn kind(&self) -> &'static str {
        "map"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::new(Fencing::BestEffort, Fairness::None, Waking::Polled)
    }

    fn runtime(&self) -> Arc<dyn Runtime> {
        Arc::new(TokioRuntime)
    }

    fn requests<'a>(&'a self, request: &'a AcquireRequest) -> impl Requests + 'a {
        Attempt(self, request)
    }

    async fn renew(&self, leases: &[RenewRequest]) -> Vec<Result<Renewed, Error>> {
        let (mut map, now) = (self.map(), TokioRuntime.now());
        let mut renew = |request: &RenewRequest| match map.held(&request.sequencer) {
            None => Renewed::NotHolder,
            Some(held) => {
                let lease = Lease::counted_from(now, request.ttl.get());
                held.until = held.until.max(lease.deadline());
                Renewed::Renewed(lease)
            }
        };
        leases.iter().map(|lease| Ok(renew(lease))).collect()
    }

    async fn release(&self, lease: &Sequencer, _tombstone: bool) -> Result<Released, Error> {
        let (mut map, now) = (self.map(), TokioRuntime.now());
        let (resource, holder) = (lease.resource(), lease.holder());
        if map.held(lease).is_none() {
            let end = map.ended.how(resource, holder);
            return Ok(end.map_or(Released::NotHolder, |end| end.answer(lease)));
        }
        map.leases.remove(resource);
        let end = End::Released(lease.token());
        map.ended.acquisition(resource, holder, end, now);
        Ok(Released::Released)
    }

    async fn cancel(&self, attempt: &AttemptRef) -> Result<(), Error> {
        let (mut map, now) = (self.map(), TokioRuntime.now());
        map.ended.attempt(attempt, End::Over, now);
        if let Some(held) = map.leases.get_mut(&attempt.resource) {
            held.attempts.retain(|id| *id != attempt.id);
            if held.attempts.is_empty() && held.lease.holder() == attempt.holder {
                map.leases.remove(&attempt.resource);
            }
        }
        Ok(())
    }

    async fn inspect(&self, resource: &ResourceName) -> Result<Inspection, Error> {
        let (map, now) = (self.map(), TokioRuntime.now());
        let view = |held: &Held| {
            let (holder, token) = (held.lease.holder(), held.lease.token());
            HolderView::new(holder, token, held.until.since(now))
        };
        Ok(Inspection::new(map.leases.get(resource).map(view)))
    }
}
