//! Several resources at once, or none of them.

use redis::ScriptInvocation;

use super::{
    KIND, RedisBackend,
    answers::{Refusal, Together},
    link::Link,
    scripts::TOGETHER,
    service::refused,
};
use crate::{
    AcquireRequest, Attempt, Error, ErrorKind, FencingToken, Grant, Lease, Metadata, Operation,
};

/// So many resources one script looks at, which keeps everybody else waiting meanwhile.
const RESOURCES_MAX: usize = 256;

impl RedisBackend {
    /// One look at resources of one shard.
    pub(super) async fn together(
        &self,
        requests: &[AcquireRequest],
    ) -> Result<Attempt<Vec<Grant>>, Error> {
        AcquireRequest::each_resource_once(requests, KIND)?;
        let shard = self.common_shard(requests)?;
        let mut start = false;
        loop {
            let asked = self.service.clock.now();
            let (link, answer) = self
                .service
                .nodes
                .run_with(
                    shard,
                    Operation::Acquire,
                    |link| self.fill_in_all(requests, shard, link, start),
                    Together::parse,
                )
                .await?;
            match answer {
                Together::Granted(granted) => {
                    link.has_raised(shard);
                    let grants = granted.into_iter().zip(requests);
                    let grants = grants.map(|((token, left), request)| {
                        let left = std::cmp::min(left, request.ttl.get());
                        Grant::new(token, Lease::counted_from(asked, left))
                    });
                    return Ok(Attempt::Granted(grants.collect()));
                }
                Together::Held { left } => return Ok(Attempt::Held { retry_after: left }),
                Together::Refused(Refusal::Missing) if !start => {
                    self.service.nodes.agree(Operation::Acquire).await?;
                    start = true;
                }
                Together::Refused(refusal) => return Err(refused(refusal, Operation::Acquire)),
            }
        }
    }

    fn common_shard(&self, requests: &[AcquireRequest]) -> Result<u16, Error> {
        let error =
            |why| Error::new(ErrorKind::InvalidInput, Operation::Acquire, KIND).because(why);
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
    ) -> ScriptInvocation<'static> {
        let mut script = TOGETHER.prepare_invoke();
        if let Some(first) = requests.first() {
            script.key(self.service.keys.of(&first.attempt.resource).counter());
        }
        self.service
            .say_where_counters_start(&mut script, shard, link);
        script.arg(u8::from(start));
        for request in requests {
            let attempt = &request.attempt;
            let (keys, digest) = (
                self.service.keys.of(&attempt.resource),
                attempt.holder.digest(),
            );
            script
                .key(keys.lease())
                .key(keys.aside())
                .key(keys.tombstone(&digest))
                .key(keys.tombstone_of_attempt(&digest, attempt.id))
                .arg(&digest)
                .arg(attempt.id.to_string())
                .arg(request.ttl.as_millis())
                .arg(floor(request.floor))
                .arg(request.lock_delay.as_millis().to_string())
                .arg(request.metadata.as_ref().map_or("", Metadata::as_str));
        }
        script
    }
}

fn floor(floor: Option<FencingToken>) -> String {
    floor.map(|floor| floor.to_string()).unwrap_or_default()
}
