//! Several resources at once, or none of them.

use std::time::Duration;

use super::{
    RedisBackend,
    answers::{Refusal, RenewedWord, Together},
    call::Call,
    keys::ResourceKeys,
    scripts::TOGETHER,
    servers::link::Link,
    service::refused,
};
use lock_core::{
    Attempt, Error, ErrorKind, FencingToken, Metadata,
    backend::{AcquireRequest, Grant, Lease, Moment},
};

/// The greatest number of resources that one script looks at. A script keeps all other clients
/// waiting.
const RESOURCES_MAX: usize = 256;

impl RedisBackend {
    /// One look at resources of one shard.
    pub(super) async fn together(
        &self,
        requests: &[AcquireRequest],
    ) -> Result<Attempt<Vec<Grant>>, Error> {
        let shard = self.common_shard(requests)?;
        let mut has_left_something = false;
        let looked = self.look_at_all(requests, shard, &mut has_left_something);
        match looked.await {
            Ok(Attempt::Held { retry_after }) if has_left_something => {
                for request in requests {
                    let cancelled = self.service.cancel(&request.attempt).await;
                    cancelled.map_err(Error::outcome_unknown)?;
                }
                Ok(Attempt::Held { retry_after })
            }
            Err(error) if has_left_something => Err(error.outcome_unknown()),
            answer => answer,
        }
    }

    /// Looks until there is an answer. Sets `has_left_something` if an answer has granted some
    /// resources, because others may be gone before they are confirmed.
    async fn look_at_all(
        &self,
        requests: &[AcquireRequest],
        shard: u16,
        has_left_something: &mut bool,
    ) -> Result<Attempt<Vec<Grant>>, Error> {
        let mut start = false;
        loop {
            let asked = self.service.runtime.now();
            let (_, answer) = self
                .service
                .nodes
                .run_with(
                    shard,
                    |link| self.fill_in_all(requests, shard, link, start),
                    Together::parse,
                )
                .await?;
            match answer {
                Together::Granted(granted) => {
                    *has_left_something = true;
                    let granted: Vec<_> = granted.into_iter().zip(requests).collect();
                    if let Some(grants) = self.confirmed(&granted, asked).await? {
                        return Ok(Attempt::Granted(grants));
                    }
                }
                Together::Held { left } => return Ok(Attempt::Held { retry_after: left }),
                Together::Refused(Refusal::Missing) if !start => {
                    self.service.nodes.agree().await?;
                    start = true;
                }
                Together::Refused(refusal) => return Err(refused(refusal)),
            }
        }
    }

    /// The grants. Leases that were pushed to this holder before are confirmed first. `None` if one
    /// of them was gone by then. The next request shows which are left.
    async fn confirmed(
        &self,
        granted: &[((FencingToken, Duration, bool), &AcquireRequest)],
        asked: Moment,
    ) -> Result<Option<Vec<Grant>>, Error> {
        let mut grants = Vec::with_capacity(granted.len());
        for &((token, left, provisional), request) in granted {
            let AcquireRequest { attempt, ttl, .. } = request;
            let lease = if provisional {
                let (digest, now) = (attempt.holder.digest(), self.service.runtime.now());
                let confirmed = self
                    .service
                    .confirm(&self.service.nodes, &attempt.resource, &digest, token, *ttl)
                    .await
                    .map_err(Error::outcome_unknown)?;
                if confirmed != RenewedWord::Renewed {
                    return Ok(None);
                }
                Lease::counted_from(now, ttl.get())
            } else {
                Lease::counted_from(asked, std::cmp::min(left, ttl.get()))
            };
            grants.push(Grant::new(token, lease));
        }
        Ok(Some(grants))
    }

    fn common_shard(&self, requests: &[AcquireRequest]) -> Result<u16, Error> {
        let error = |why| Error::not_applied(ErrorKind::InvalidInput).because(why);
        let shard =
            |request: &AcquireRequest| self.service.keys.of(&request.attempt.resource).shard;
        let (first, others) = requests
            .split_first()
            .ok_or_else(|| error("there is no resource to acquire"))?;
        let first = shard(first);
        if requests.len() > RESOURCES_MAX {
            return Err(error("these are too many resources to acquire at once"));
        }
        if others.iter().any(|request| shard(request) != first) {
            return Err(error(
                "the resources are of several shards: give their names a common {tag}",
            ));
        }
        Ok(first)
    }

    fn fill_in_all(
        &self,
        requests: &[AcquireRequest],
        shard: u16,
        link: &Link,
        start: bool,
    ) -> Call {
        let keys: Vec<_> = requests
            .iter()
            .map(|request| self.service.keys.of(&request.attempt.resource))
            .collect();
        let counter = keys.first().map(ResourceKeys::counter);
        let absent = keys.first().and_then(|first| self.service.absent(first));
        let keys = keys.iter().map(ResourceKeys::lease);
        let mut call = Call::new(&TOGETHER, counter.into_iter().chain(keys).chain(absent));
        self.service
            .say_where_counters_start(&mut call, shard, link);
        call.arg(u8::from(start));
        for request in requests {
            call.arg(request.attempt.holder.digest())
                .arg(request.attempt.id.to_string())
                .arg(request.ttl.as_millis())
                .arg(floor(request.floor))
                .arg(request.metadata.as_ref().map_or("", Metadata::as_str));
        }
        call
    }
}

fn floor(floor: Option<FencingToken>) -> String {
    floor.map(|floor| floor.to_string()).unwrap_or_default()
}
