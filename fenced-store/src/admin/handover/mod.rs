//! A handover replaces the lock service in front of a store by another one. [`Admin::hand_over`]
//! carries out all of its steps. `plan.rs` looks at the store, `probe.rs` tries the new service,
//! and `sealing.rs` changes the issuer and the marks. `phase.rs` is the progress that an error
//! reports.

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

/// The order to replace the lock service in front of a store by another one, with the reason.
#[derive(Clone, Debug)]
pub struct Handover {
    pub(super) from: Issuer,
    pub(super) new: LockManager,
    pub(super) reason: Reason,
}

impl Handover {
    /// From the lock service of this name to another one. The old service gets no request.
    ///
    /// # Errors
    /// [`HandoverError::SameIssuer`] if both have the same issuer name. Name the new one with
    /// [`LockManagerBuilder::issuer`](lock_core::LockManagerBuilder::issuer), in all its clients.
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

    /// The issuer whose tokens the store accepts after the handover.
    #[must_use]
    pub fn to(&self) -> &Issuer {
        self.new.issuer()
    }
}

/// A completed step of a handover.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum HandoverStep<'a> {
    /// The store accepts claims of the new lock service, and none of the old one.
    IssuerChanged,
    /// One more mark is sealed. The number counts the marks that this call has sealed so far.
    Sealed(&'a ResourceName, u64),
}

/// The result of a handover.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct HandedOver {
    /// The least token of the new lock service that a mark accepts after this call has sealed it.
    pub floor: FencingToken,
    /// The number of marks that this call has sealed.
    pub sealed: u64,
}

impl<DB: Dialect> Admin<'_, DB> {
    /// Replaces one lock service by another. From then on the store accepts tokens of the new one,
    /// and none of the old one. The old service gets no request: it may be gone, or it may go on
    /// granting leases that the store does not accept. Stop its clients.
    ///
    /// Decision 19 justifies the order of the steps, and a model has checked it:
    ///
    /// 1. The new service must grant a lease of [`PROBE`], with a token that is no greater than all
    ///    marks and the clock plus a minute. The lease is given back.
    /// 2. The store accepts claims of the new service only, once the claims that are under way have
    ///    ended. Holders who have claimed go on writing.
    /// 3. A floor is chosen above all marks, above the clock plus a minute, and above the floor of
    ///    a store that has forgotten marks. Resources whose marks are forgotten take only tokens
    ///    from there on.
    /// 4. Each mark is sealed, in a transaction of its own, after the open transactions of its
    ///    resource: its holder is shut out, and the mark accepts tokens of the new service from the
    ///    floor on.
    ///
    /// The first acquire of a sealed resource is granted a token below the floor and refused as
    /// stale. [`FencedLocks`](crate::FencedLocks) then acquires again, above the mark. A client
    /// that claims without `FencedLocks` has to acquire with
    /// [`at_least`](lock_core::Acquire::at_least) the
    /// [`needed_token`](crate::FenceError::needed_token) of the refusal.
    ///
    /// **The order of claims depends on an assumption**: when the store changes the issuer, no
    /// token that the new service has issued so far is greater than all marks and this machine's
    /// clock plus a minute. The assumption holds if counters start at the clock, clocks differ by
    /// less than a minute, and fewer than 100 000 tokens a second are issued. Otherwise a grant
    /// that the new service made before the handover may be claimed after a later one of the old
    /// service. Nothing of the old service is accepted in either case.
    ///
    /// The call can be interrupted at any point, and repeated with the same order as often as
    /// necessary. To turn back, half way or years later, hand over in the other direction. **Finish
    /// one handover, or turn back, before you go on to a third service.** The marks that an
    /// unfinished handover has left are reported. An order from their service to the latest one
    /// then seals them.
    ///
    /// # Errors
    /// With nothing changed: [`HandoverError::OtherIssuer`], [`HandoverError::Implausible`],
    /// [`HandoverError::CountsPast`], [`HandoverError::New`], or [`HandoverError::Store`], such as
    /// [`FenceError::Busy`](crate::FenceError::Busy) if the claims under way do not end within the
    /// store's lock timeout. The [phase](HandoverPhase) of an error shows whether the store was
    /// changed. [`HandoverError::Unfinished`] if open transactions keep some marks from being
    /// sealed; all the others are in service. [`HandoverError::OthersLeft`] if this handover is
    /// done, but an earlier one is not.
    ///
    /// # Cancel safety
    /// Completed steps stay done, and the mark of the present step is sealed in the background.
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
        // The floor of the first plan may be too low by now: claims of the old service were
        // accepted meanwhile, and the new one has issued tokens.
        let floor = self.plan(order, HandoverPhase::Sealing).await?.floor;
        self.seal_floor(&seal, floor).await?;
        let sealed = self.seal_marks(&seal, floor, &mut progress).await?;
        Ok(HandedOver { floor, sealed })
    }
}
