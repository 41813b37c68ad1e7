use std::time::Duration;

use lock_core::{
    ErrorKind, FencingToken, InitialToken, Issuer, LockManager, Operation, ResourceName, Standing,
};

use super::{Handover, HandoverError, HandoverPhase, order::Old};
use crate::{
    Dialect,
    admin::{Admin, AdminError, dialect::Administer},
};

/// The state of everything before a handover, and what the handover is going to do.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct HandoverPlan {
    /// The issuer whose tokens the store accepts now; `None` before the first claim.
    pub issuer: Option<Issuer>,
    /// How many marks belong to the old lock service, and are going to be sealed.
    pub marks: u64,
    /// The standing of the old lock service; `None` if it cannot be asked, and so cannot be
    /// retired.
    pub old: Option<Standing>,
    /// The standing of the new one; `None` if it cannot be asked, and so is lifted per resource.
    pub new: Option<Standing>,
    /// The token that marks are raised to: no mark and no token of either service is above it.
    pub above: FencingToken,
    /// The least token of the new service afterwards.
    pub floor: FencingToken,
}

/// By how much clocks may differ, if only the clock tells which tokens a service has issued.
const CLOCKS_DIFFER: Duration = Duration::from_secs(60);

impl<DB: Dialect> Admin<'_, DB> {
    /// Looks at both lock services and at the store, and says what a handover would do. Changes
    /// nothing.
    ///
    /// # Errors
    /// As [`hand_over`](Self::hand_over), before it begins.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn plan_handover(&self, order: &Handover) -> Result<HandoverPlan, HandoverError> {
        let old = match &order.old {
            Old::There(locks) => standing(locks).await.map_err(|source| HandoverError::Old {
                phase: HandoverPhase::Before,
                source,
            })?,
            Old::Lost(_) => None,
        };
        self.plan(order, old, HandoverPhase::Before).await
    }

    /// The same, after asking the old service.
    pub(super) async fn plan(
        &self,
        order: &Handover,
        old: Option<Standing>,
        phase: HandoverPhase,
    ) -> Result<HandoverPlan, HandoverError> {
        let new = standing(&order.new).await;
        let new = new.map_err(|source| HandoverError::New { phase, source })?;
        let store = |source| HandoverError::Store { phase, source };
        let issuer = self.issuer().await.map_err(store)?;
        if let Some(current) = &issuer
            && current != order.from()
            && current != order.to()
        {
            let current = current.clone();
            return Err(HandoverError::OtherIssuer { phase, current });
        }
        let survey = DB::Admin::survey(self.store.pool(), order.from()).await;
        let survey = survey.map_err(|error| store(AdminError::Store(error)))?;

        let by_the_clock = (old.is_none() || new.is_none()).then(|| clock_token(&order.new));
        let issued = [old, new].map(|standing| standing?.last);
        let issued = issued.into_iter().chain([by_the_clock.flatten()]).flatten();
        let issued = issued.fold(FencingToken::MIN, std::cmp::max);
        let (resource, above) = match survey.greatest {
            Some((resource, token)) if token > issued => (Some(resource), token),
            _ => (None, issued),
        };
        let floor = self.floor_above(phase, resource, above)?;
        check_floor(&order.new, new, floor)
            .map_err(|source| HandoverError::New { phase, source })?;
        Ok(HandoverPlan {
            issuer,
            marks: survey.marks,
            old,
            new,
            above,
            floor,
        })
    }

    fn floor_above(
        &self,
        phase: HandoverPhase,
        resource: Option<ResourceName>,
        above: FencingToken,
    ) -> Result<FencingToken, HandoverError> {
        let next = above.next().filter(|_| self.store.admits(above));
        next.ok_or(HandoverError::Implausible {
            phase,
            resource,
            token: above,
        })
    }
}

/// The standing of a service, if it supports that.
async fn standing(locks: &LockManager) -> Result<Option<Standing>, lock_core::Error> {
    supported(locks.standing().await)
}

/// Whether the new service takes the floor, as far as it can tell without being changed.
fn check_floor(
    locks: &LockManager,
    standing: Option<Standing>,
    floor: FencingToken,
) -> Result<(), lock_core::Error> {
    match standing.and_then(|standing| standing.greatest_floor) {
        Some(greatest) if floor > greatest => {
            let kind = ErrorKind::FloorImplausible;
            let service = locks.backend_kind();
            let error = lock_core::Error::not_applied(kind, Operation::Reinstate, service);
            Err(error.because(format!("at most {greatest} is plausible now")))
        }
        _ => Ok(()),
    }
}

/// `None` for an operation that the service does not support.
pub(super) fn supported<T>(
    answer: Result<T, lock_core::Error>,
) -> Result<Option<T>, lock_core::Error> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(error) if error.kind() == ErrorKind::Unsupported => Ok(None),
        Err(error) => Err(error),
    }
}

/// Counters are below the clock, if the service counts as ours do.
fn clock_token(locks: &LockManager) -> Option<FencingToken> {
    let now = locks.clock().unix_time().saturating_add(CLOCKS_DIFFER);
    FencingToken::new(InitialToken::clock_token(now)).ok()
}
