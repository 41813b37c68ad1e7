use std::time::Duration;

use lock_core::{FencingToken, InitialToken, Issuer};

use super::{Handover, HandoverError, HandoverPhase};
use crate::{
    Dialect,
    admin::{Admin, AdminError, carry_out::status},
};

/// The state of the store before a handover, and the effect of the handover.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct HandoverPlan {
    /// The issuer whose tokens the store accepts now; `None` before the first claim.
    pub issuer: Option<Issuer>,
    /// The number of marks of the old lock service. The handover seals these.
    pub marks: u64,
    /// The least token of the new service that sealed marks accept. The floor is greater if time
    /// passes before the handover.
    pub floor: FencingToken,
}

/// The greatest difference between clocks. A handover assumes that issued tokens are below the
/// clock plus this difference.
const CLOCKS_DIFFER: Duration = Duration::from_secs(60);

impl<DB: Dialect> Admin<'_, DB> {
    /// Looks at the store, and returns the effect of a handover. Asks no lock service, and changes
    /// nothing.
    ///
    /// # Errors
    /// [`HandoverError::OtherIssuer`], [`HandoverError::Implausible`], or if the database cannot be
    /// queried.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn plan_handover(&self, order: &Handover) -> Result<HandoverPlan, HandoverError> {
        self.plan(order, HandoverPhase::Before).await
    }

    pub(super) async fn plan(
        &self,
        order: &Handover,
        phase: HandoverPhase,
    ) -> Result<HandoverPlan, HandoverError> {
        let store = |source| HandoverError::Store { phase, source };
        let issuer = self.issuer().await.map_err(store)?;
        if let Some(current) = &issuer
            && current != order.from()
            && current != order.to()
        {
            let current = current.clone();
            return Err(HandoverError::OtherIssuer { phase, current });
        }
        let status = status(self.store, order.from()).await;
        let status = status.map_err(|error| store(AdminError::Store(error)))?;
        let now = order.new.runtime().unix_time();
        let clock = clock_token(now.saturating_add(CLOCKS_DIFFER));
        let (resource, above) = match status.greatest {
            Some((resource, token)) if token > clock => (Some(resource), token),
            _ => (None, clock),
        };
        let forgotten = self.floor().await.map_err(store)?;
        let above = std::cmp::max(Some(above), forgotten).unwrap_or(above);
        let next = above.next().filter(|_| self.store.admits(above));
        Ok(HandoverPlan {
            issuer,
            marks: status.marks,
            floor: next.ok_or(HandoverError::Implausible {
                phase,
                resource,
                token: above,
            })?,
        })
    }
}

/// The token that a counter has reached at this time, if it follows the clock.
pub(super) fn clock_token(unix_time: Duration) -> FencingToken {
    let token = FencingToken::new(InitialToken::clock_token(unix_time));
    token.unwrap_or(FencingToken::MAX)
}
