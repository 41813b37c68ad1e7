use std::time::Duration;

use lock_core::{FencingToken, InitialToken, Issuer};

use super::{Handover, HandoverError, HandoverPhase};
use crate::{
    Dialect,
    admin::{Admin, AdminError, carry_out::status},
};

/// The state of the store before a handover, and what the handover is going to do.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct HandoverPlan {
    /// The issuer whose tokens the store accepts now; `None` before the first claim.
    pub issuer: Option<Issuer>,
    /// How many marks belong to the old lock service, and are going to be sealed.
    pub marks: u64,
    /// The least token of the new service that sealed marks accept. If time passes before the
    /// handover, it is going to be greater.
    pub floor: FencingToken,
}

/// By how much clocks may differ: tokens that were issued are below a clock put forward by this.
const CLOCKS_DIFFER: Duration = Duration::from_secs(60);

impl<DB: Dialect> Admin<'_, DB> {
    /// Looks at the store, and says what a handover would do. Asks no lock service, and changes
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
        let now = order.new.clock().unix_time();
        let clock = clock_token(now.saturating_add(CLOCKS_DIFFER));
        let (resource, above) = match status.greatest {
            Some((resource, token)) if token > clock => (Some(resource), token),
            _ => (None, clock),
        };
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

/// The token that a counter which follows the clock has reached then.
pub(super) fn clock_token(unix_time: Duration) -> FencingToken {
    let token = FencingToken::new(InitialToken::clock_token(unix_time));
    token.unwrap_or(FencingToken::MAX)
}
