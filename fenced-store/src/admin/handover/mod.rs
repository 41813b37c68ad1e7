//! Replacing the lock service in front of a store by another one.

mod error;
mod lift;
mod order;
mod phase;
mod plan;

use lock_core::{FencingToken, ResourceName, Standing};

pub use self::{
    error::HandoverError, lift::Lifted, order::Handover, phase::HandoverPhase, plan::HandoverPlan,
};
use self::{order::Old, plan::supported};
use super::{Admin, Seal};
use crate::Dialect;

/// The resource that a handover acquires from the new service, and gives back, before it changes
/// anything else.
pub const PROBE: &str = "palisade-handover-probe";

/// The steps of a handover, as they are done.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum HandoverStep<'a> {
    /// The old lock service grants no more; `None` if it cannot be retired, and goes on granting
    /// leases that the store is not going to accept.
    Retired(Option<Standing>),
    /// The floor was chosen.
    Floor(FencingToken),
    /// One more resource of the new lock service was lifted; and the count so far.
    Lifted(&'a ResourceName, u64),
    /// The new lock service is in service above the floor.
    InService,
    /// One more mark is sealed; and the count of this call so far.
    Sealed(&'a ResourceName, u64),
}

/// The result of a handover.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct HandedOver {
    /// Whether the old lock service is retired. If not, it goes on granting, and the store accepts
    /// none of its tokens: stop its clients.
    pub retired: bool,
    /// The least token of the new lock service.
    pub floor: FencingToken,
    /// How far the new lock service was lifted above it.
    pub lifted: Lifted,
    /// How many marks this call has sealed.
    pub sealed: u64,
}

impl<DB: Dialect> Admin<'_, DB> {
    /// Replaces one lock service by another. From then on the store accepts tokens of the new one,
    /// above all that either has issued before, and none of the old one.
    ///
    /// The order of steps is justified in decision 19 and was checked by a model:
    ///
    /// 1. The old service is retired: it grants no more, and reports the last token that it issued.
    /// 2. A floor is chosen above that, above all that the new one has issued, and above all marks.
    /// 3. The new service is lifted: it issues nothing below the floor.
    /// 4. The store is [sealed](Admin::seal): it accepts tokens of the new service only, and of
    ///    those none below the floor. Holders of leases of the old service are shut out.
    ///
    /// From the first step on, nobody is granted a lease that the store would accept until the mark
    /// of its resource is sealed; so continue quickly after an error. Holders go on writing until
    /// their mark is sealed.
    ///
    /// It can be interrupted at any point, and called again with the same order, as often as
    /// necessary; when there is nothing left to do it only lifts the new service a little. To turn
    /// back, half way or years later, hand over in the other direction.
    ///
    /// A service that does not support [`Extension::Retire`](lock_core::Extension::Retire) is not
    /// retired: stop its clients. If it is the new one, it is lifted for each resource that has a
    /// mark, one after the other. In both cases the tokens it has issued are assumed to be below
    /// the clock.
    ///
    /// # Errors
    /// [`HandoverError::OtherIssuer`], [`HandoverError::Implausible`], or an error of one of the
    /// three parts; the [phase](HandoverPhase) says whether anything was changed by then. Problems
    /// that can be detected early are: before the old service is retired, the new one is asked
    /// whether it takes the floor, and for a lease of [`PROBE`], which is given back. If the
    /// handover stops there, that lease is all that has happened to the new service. One that does
    /// not support [`Extension::Retire`](lock_core::Extension::Retire) is asked for that lease
    /// above the floor, so the tokens of [`PROBE`] stay above it.
    /// [`AdminError::Unfinished`](crate::admin::AdminError::Unfinished) as the source means that
    /// open transactions keep some marks from being sealed: all the others are in service.
    ///
    /// # Cancel safety
    /// Completed steps stay done. Call again.
    pub async fn hand_over(
        &self,
        order: &Handover,
        mut progress: impl FnMut(HandoverStep<'_>) + Send,
    ) -> Result<HandedOver, HandoverError> {
        // Everything that can be refused is refused before anything is changed.
        let plan = self.plan_handover(order).await?;
        self.probe(order, &plan).await?;

        let phase = HandoverPhase::Retiring;
        let old = match &order.old {
            Old::There(locks) => supported(locks.retire().await)
                .map_err(|source| HandoverError::Old { phase, source })?,
            Old::Lost(_) => None,
        };
        let phase = match old {
            Some(_) => HandoverPhase::Retired,
            None => HandoverPhase::NotRetired,
        };
        progress(HandoverStep::Retired(old));

        let plan = self.plan(order, old, phase).await?;
        progress(HandoverStep::Floor(plan.floor));

        let lifted = self.lift(order, phase, plan.floor, &mut progress).await?;
        progress(HandoverStep::InService);

        let store = |source| HandoverError::of_seal(phase, source);
        let (from, to) = (order.from().clone(), order.to().clone());
        let seal = Seal::new(from, to, plan.above, order.reason.clone()).map_err(store)?;
        let sealed = self.seal(&seal, |resource, sealed| {
            progress(HandoverStep::Sealed(resource, sealed));
        });
        Ok(HandedOver {
            retired: old.is_some(),
            floor: plan.floor,
            lifted,
            sealed: sealed.await.map_err(store)?,
        })
    }
}
