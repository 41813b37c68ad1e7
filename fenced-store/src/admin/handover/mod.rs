//! Replacing the lock service in front of a store by another one.

mod error;
mod phase;
mod plan;
mod probe;
mod sealing;

use lock_core::{FencingToken, Issuer, LockManager, ResourceName};

use self::probe::probe;
pub use self::{error::HandoverError, phase::HandoverPhase, plan::HandoverPlan, probe::PROBE};
use super::{Admin, Reason, order::Seal};
use crate::Dialect;

/// The order to replace one lock service in front of a store by another, and why.
#[derive(Clone, Debug)]
pub struct Handover {
    pub(super) from: Issuer,
    pub(super) new: LockManager,
    pub(super) reason: Reason,
}

impl Handover {
    /// From the lock service of this name, which is never asked for anything, to another one.
    ///
    /// # Errors
    /// [`HandoverError::SameIssuer`] if the store could not tell them apart: name the new one with
    /// [`LockManagerBuilder::issuer`](lock_core::LockManagerBuilder::issuer), and make all its
    /// clients do the same.
    pub fn new(from: Issuer, new: &LockManager, reason: Reason) -> Result<Self, HandoverError> {
        if from == *new.issuer() {
            return Err(HandoverError::SameIssuer);
        }
        let new = new.clone();
        Ok(Self { from, new, reason })
    }

    /// The issuer whose tokens the store has accepted so far.
    #[must_use]
    pub const fn from(&self) -> &Issuer {
        &self.from
    }

    /// The issuer whose tokens it accepts from then on.
    #[must_use]
    pub fn to(&self) -> &Issuer {
        self.new.issuer()
    }
}

/// The steps of a handover, as they are done.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum HandoverStep<'a> {
    /// The store accepts claims of the new lock service, and none of the old one.
    IssuerChanged,
    /// One more mark is sealed; and the count of this call so far.
    Sealed(&'a ResourceName, u64),
}

/// The result of a handover.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct HandedOver {
    /// The least token of the new lock service that the marks which this call has sealed accept.
    pub floor: FencingToken,
    /// How many marks this call has sealed.
    pub sealed: u64,
}

impl<DB: Dialect> Admin<'_, DB> {
    /// Replaces one lock service by another. From then on the store accepts tokens of the new one,
    /// and none of the old one, which is asked for nothing: it may be gone, or go on granting
    /// leases that the store does not accept. Stop its clients.
    ///
    /// The order of steps is justified in decision 19 and was checked by a model:
    ///
    /// 1. The new service is asked for a lease of [`PROBE`], which is given back. It must grant it,
    ///    with a token that is no greater than all marks and the clock plus a minute.
    /// 2. The store accepts claims of the new service only, once the claims that are under way have
    ///    ended. Holders who have claimed go on writing.
    /// 3. A floor is chosen above all marks and above the clock plus a minute.
    /// 4. Each mark is sealed, in a transaction of its own after its open transactions: its
    ///    holder is shut out, and it accepts tokens of the new service from the floor on.
    ///
    /// The first acquire of a sealed resource is granted a token below the floor and refused as
    /// stale. [`FencedLocks`](crate::FencedLocks) then acquires again, above the mark. Who claims
    /// without it acquires with [`at_least`](lock_core::Acquire::at_least) the
    /// [`needed_token`](crate::FenceError::needed_token) of the refusal.
    ///
    /// **The order of claims depends on an assumption**: when the store changes the issuer, no
    /// token that the new service has issued so far is greater than all marks and this machine's
    /// clock plus a minute. That is so if counters start at the clock, clocks differ by less, and
    /// fewer than 100 000 tokens a second are issued. If not, a grant that the new service made
    /// before the handover may be claimed after a later one of the old service. Nothing of the old
    /// service is accepted in either case.
    ///
    /// It can be interrupted at any point, and called again with the same order, as often as
    /// necessary. To turn back, half way or years later, hand over in the other direction. **Finish
    /// one handover, or turn back, before you go on to a third service.** What an unfinished one
    /// has left is reported, and an order from the old service to the latest one then seals it.
    ///
    /// # Errors
    /// With nothing changed: [`HandoverError::OtherIssuer`], [`HandoverError::Implausible`],
    /// [`HandoverError::CountsPast`], [`HandoverError::New`], or [`HandoverError::Store`], such as
    /// [`FenceError::Busy`](crate::FenceError::Busy) if the claims under way do not end within the
    /// store's lock timeout. Where an error has a [phase](HandoverPhase), that says whether the
    /// store was changed. [`HandoverError::Unfinished`] if open transactions keep some marks from
    /// being sealed; all the others are in service. [`HandoverError::OthersLeft`] if this handover
    /// is done, but an earlier one is not.
    ///
    /// # Cancel safety
    /// Completed steps stay done, and the mark that is being sealed is sealed in the background.
    /// Call again.
    pub async fn hand_over(
        &self,
        order: &Handover,
        mut progress: impl FnMut(HandoverStep<'_>) + Send,
    ) -> Result<HandedOver, HandoverError> {
        let plan = self.plan_handover(order).await?;
        probe(order, plan.floor).await?;
        let seal = Seal {
            from: order.from().clone(),
            to: order.to().clone(),
            reason: order.reason.clone(),
        };
        self.change_issuer(&seal).await?;
        progress(HandoverStep::IssuerChanged);
        // Not the floor of before: claims of the old service were accepted meanwhile, and time has
        // passed in which the new one has issued tokens.
        let floor = self.plan(order, HandoverPhase::Sealing).await?.floor;
        let sealed = self.seal_marks(&seal, floor, &mut progress).await?;
        Ok(HandedOver { floor, sealed })
    }
}
