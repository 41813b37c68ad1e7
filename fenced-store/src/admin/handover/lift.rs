use futures_util::{StreamExt, stream};
use lock_core::{Attempt, FencingToken, Issuer, LockManager, ResourceName};

use super::{Handover, HandoverError, HandoverStep, plan::supported};
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
    /// It has no floor for all. Each resource that has a mark was acquired above the floor.
    Resources {
        /// For how many that was done.
        lifted: u64,
        /// How many somebody held. If their tokens are below the floor the store refuses them, and
        /// `Protected` has the service lifted then.
        held: u64,
    },
}

/// So many resources at a time.
const AT_A_TIME: usize = 16;

impl<DB: Dialect> Admin<'_, DB> {
    /// Puts the new service into service above the floor.
    pub(super) async fn lift(
        &self,
        order: &Handover,
        floor: FencingToken,
        progress: &mut (impl FnMut(HandoverStep<'_>) + Send),
    ) -> Result<Lifted, HandoverError> {
        let begun = true;
        let failed = |source| HandoverError::New { begun, source };
        let reinstated = supported(order.new.reinstate(floor).await).map_err(failed)?;
        if reinstated.is_some() {
            return Ok(Lifted::Service);
        }
        let (mut lifted, mut held) = (0, 0);
        // Those of the new service are sealed already.
        for issuer in [order.from(), order.to()] {
            let mut after = String::new();
            loop {
                let marks = self.marks_after(issuer, &after).await?;
                let Some(last) = marks.last() else {
                    break;
                };
                after = last.to_string();
                let each = marks.into_iter().map(|resource| async {
                    let granted = lift_one(&order.new, &resource, floor).await;
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
        after: &str,
    ) -> Result<Vec<ResourceName>, HandoverError> {
        let marks = DB::Admin::marks_of(self.store.pool(), issuer, after, BATCH).await;
        marks.map_err(|error| HandoverError::Store {
            begun: true,
            source: AdminError::Store(error),
        })
    }
}

/// Acquires it above the floor and gives it back; false if somebody holds it.
async fn lift_one(
    locks: &LockManager,
    resource: &ResourceName,
    floor: FencingToken,
) -> Result<bool, lock_core::Error> {
    let lease = locks.acquire(resource.clone()).renew(false).at_least(floor);
    match lease.try_now().await? {
        Attempt::Granted(guard) => {
            guard.release().await?;
            Ok(true)
        }
        Attempt::Held { .. } => Ok(false),
    }
}
