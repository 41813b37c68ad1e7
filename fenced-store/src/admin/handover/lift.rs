use futures_util::{StreamExt, stream};
use lock_core::{Attempt, ErrorKind, FencingToken, Issuer, LockManager, ResourceName, Ttl};

use super::{
    Handover, HandoverError, HandoverPhase, HandoverPlan, HandoverStep, PROBE, plan::supported,
};
use crate::{
    Dialect,
    admin::{Admin, AdminError, BATCH, dialect::Administer},
};

/// How far the new lock service was lifted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Lifted {
    /// The service as a whole: no token of any resource is below the floor.
    Service,
    /// The service has no common floor. Each resource that has a mark was acquired above the floor.
    Resources {
        /// For how many resources that was done.
        lifted: u64,
        /// How many resources somebody held. If their tokens are below the floor the store refuses
        /// them, and then `Protected` makes the service raise its tokens.
        held: u64,
    },
}

/// How many resources to lift at a time.
const AT_A_TIME: usize = 16;

/// The ttl of a lease that is given back at once. It is short because some services
/// may require short leases, and so that nobody waits long if it cannot be given back.
const LIFTING: Ttl = Ttl::secs(2);

impl<DB: Dialect> Admin<'_, DB> {
    /// Acquires one resource of the new service, and gives it back, so that a service that cannot
    /// grant is noticed while the old one still can. A retired service refuses, as it should.
    ///
    /// A service that can be asked has said by now that it takes the floor. Only one that cannot is
    /// asked for a token above the floor: its tokens are lifted per resource, and nobody uses this
    /// one.
    pub(super) async fn probe(
        &self,
        order: &Handover,
        plan: &HandoverPlan,
    ) -> Result<(), HandoverError> {
        let phase = HandoverPhase::Before;
        let failed = |source| HandoverError::New { phase, source };
        let probe = ResourceName::new(PROBE).map_err(lock_core::Error::from);
        let floor = plan.new.is_none().then_some(plan.floor);
        let granted = acquire_once(&order.new, &probe.map_err(failed)?, floor).await;
        match granted {
            Ok(_) => Ok(()),
            Err(error) if error.kind() == ErrorKind::Retired => Ok(()),
            Err(error) => Err(failed(error)),
        }
    }

    /// Puts the new service into service above the floor.
    pub(super) async fn lift(
        &self,
        order: &Handover,
        phase: HandoverPhase,
        floor: FencingToken,
        progress: &mut (impl FnMut(HandoverStep<'_>) + Send),
    ) -> Result<Lifted, HandoverError> {
        let failed = |source| HandoverError::New { phase, source };
        let reinstated = supported(order.new.reinstate(floor).await).map_err(failed)?;
        if reinstated.is_some() {
            return Ok(Lifted::Service);
        }
        let (mut lifted, mut held) = (0, 0);
        // The marks of the new service are sealed already.
        for issuer in [order.from(), order.to()] {
            let mut after = String::new();
            loop {
                let marks = self.marks_after(issuer, phase, &after).await?;
                let Some(last) = marks.last() else {
                    break;
                };
                after = last.to_string();
                let each = marks.into_iter().map(|resource| async {
                    let granted = acquire_once(&order.new, &resource, Some(floor)).await;
                    (resource, granted)
                });
                let mut each = stream::iter(each).buffer_unordered(AT_A_TIME);
                while let Some((resource, granted)) = each.next().await {
                    match granted.map_err(failed)? {
                        true => lifted += 1,
                        false => held += 1,
                    }
                    progress(HandoverStep::Lifted(&resource, lifted));
                }
            }
        }
        Ok(Lifted::Resources { lifted, held })
    }

    async fn marks_after(
        &self,
        issuer: &Issuer,
        phase: HandoverPhase,
        after: &str,
    ) -> Result<Vec<ResourceName>, HandoverError> {
        let marks = DB::Admin::marks_of(self.store.pool(), issuer, after, BATCH).await;
        marks.map_err(|error| HandoverError::Store {
            phase,
            source: AdminError::Store(error),
        })
    }
}

/// Acquires it, above the floor if there is one, and gives it back; false if somebody holds it.
async fn acquire_once(
    locks: &LockManager,
    resource: &ResourceName,
    floor: Option<FencingToken>,
) -> Result<bool, lock_core::Error> {
    let mut lease = locks.acquire(resource.clone()).ttl(LIFTING).renew(false);
    if let Some(floor) = floor {
        lease = lease.at_least(floor);
    }
    match lease.try_now().await? {
        Attempt::Granted(guard) => {
            guard.release().await?;
            Ok(true)
        }
        Attempt::Held { .. } => Ok(false),
    }
}
