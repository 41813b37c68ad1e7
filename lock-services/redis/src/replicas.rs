//! Grants that count only when replicas have them.

use std::{sync::Arc, time::Duration};

use redis::{Cmd, FromRedisValue};

use super::{
    call::Call,
    error::translate,
    options::Replicas,
    scripts::REWRITE,
    servers::{key_layout::Layout, link::Link, nodes::Nodes, service_url::ServiceUrl},
    service::Service,
};
use lock_core::{
    Error, ErrorKind, FencingToken,
    backend::{AcquireRequest, AttemptRef, Grant, Runtime},
};

/// Waits for replicas, on connections on which nothing else is sent. The answer is about earlier
/// writes on the same connection, and until the answer nothing else is answered on it.
#[derive(Debug)]
pub(super) struct Replication {
    nodes: Nodes,
    replicas: Replicas,
}

/// Only one grant at a time waits at each server, so that its time limit does not run while another
/// grant waits.
const TURNS: usize = 1;

impl Replication {
    /// Connects, and finds out whether the server can wait for replicas.
    pub(super) async fn open(
        url: &ServiceUrl,
        layout: Layout,
        replicas: Replicas,
        runtime: Arc<dyn Runtime>,
    ) -> Result<Self, Error> {
        let nodes = Nodes::open(url, layout, TURNS, runtime).await?;
        let mut link = nodes.link_of(0).await?;
        let none = Replicas {
            number: 0,
            within: Duration::from_millis(1),
        };
        link.send(&none.wait()).await.map_err(|error| {
            translate(error)
                .because("the server cannot wait for replicas, or the user may not: WAIT is needed")
                .outcome_not_applied()
        })?;
        Ok(Self { nodes, replicas })
    }

    /// Returns when the replicas have a grant. If they do not get it in time, or if the lease ends
    /// before, the grant is given back.
    pub(super) async fn secure(
        &self,
        service: &Arc<Service>,
        requests: &[AcquireRequest],
        grants: &[Grant],
    ) -> Result<(), Error> {
        let (Some(request), Some(grant)) = (requests.first(), grants.first()) else {
            return Ok(());
        };
        let ended = service.runtime.sleep_until(grant.lease.deadline());
        let error = tokio::select! {
            biased;
            have = self.replicate(service, request, grant) => match have {
                Ok(()) => return Ok(()),
                Err(error) => error,
            },
            () = ended => too_few("the lease ended before the replicas had it"),
        };
        // The next look replays the grant, and asks the replicas again.
        if error.kind() == ErrorKind::Unavailable {
            return Err(error.outcome_unknown());
        }
        for request in requests {
            // Until the attempt is cancelled it may hold the lease, whatever the replicas have.
            let cancelled = service.cancel(&request.attempt).await;
            cancelled.map_err(Error::outcome_unknown)?;
        }
        Err(error.outcome_not_applied().on(&request.attempt.resource))
    }

    async fn replicate(
        &self,
        service: &Arc<Service>,
        request: &AcquireRequest,
        grant: &Grant,
    ) -> Result<(), Error> {
        let attempt = request.attempt.clone();
        let shard = service.keys.of(&attempt.resource).shard;
        let (nodes, replicas, token) = (self.nodes.clone(), self.replicas, grant.token);
        let replicating = {
            let service = Arc::clone(service);
            async move { replicas.have(&nodes, &service, &attempt, token).await }
        };
        let turns = self.nodes.turns(shard);
        turns.run(&service.tasks, replicating).await
    }
}

impl Replicas {
    /// Fails if the replicas do not have a grant in time.
    async fn have(
        self,
        nodes: &Nodes,
        service: &Service,
        attempt: &AttemptRef,
        token: FencingToken,
    ) -> Result<(), Error> {
        let keys = service.keys.of(&attempt.resource);
        // This write comes after everything that was written with the grant, on the server that has
        // the grant. A server that has taken over in between may not have it.
        let mut rewrite = Call::new(&REWRITE, [keys.lease()]);
        rewrite.arg(attempt.holder.digest()).arg(token.get());
        let parse = |answer| Ok(Vec::<String>::from_redis_value(answer)?);
        let (mut link, words) = nodes
            .run_with(keys.shard, |_: &Link| &rewrite, parse)
            .await?;
        if words != ["written"] {
            return Err(too_few(
                "the server that has the shard now does not have the grant",
            ));
        }
        let answer = link.send(&self.wait()).await;
        let have = answer
            .and_then(|answer| Ok(u32::from_redis_value(answer)?))
            .map_err(translate)?;
        if have >= self.number {
            return Ok(());
        }
        let Self { number, within } = self;
        Err(too_few(&format!(
            "{have} of {number} replicas had it within {within:?}"
        )))
    }

    fn wait(self) -> Cmd {
        let mut command = redis::cmd("WAIT");
        command
            .arg(self.number)
            .arg(self.within.as_millis().to_string());
        command
    }
}

fn too_few(why: &str) -> Error {
    Error::not_applied(ErrorKind::TooFewReplicas).because(why)
}
