use std::{pin::pin, sync::Arc};

use super::{Acquire, cleanup::OnDrop, granted::Granted, settings::Identity};
use crate::{
    AcquireRequest, Attempt, AttemptRef, Error, Holder, ResourceName, Upkeep, Wait,
    acquisition::{Acquisition, Answer, Terms},
};

impl Acquire {
    /// Asks the lock service until it grants a lease that has not ended on arrival, or gives
    /// another answer.
    pub(super) async fn asked(
        &self,
        resource: &ResourceName,
        wait: Wait,
    ) -> Result<Attempt<Granted>, Error> {
        let inner = &self.locks.inner;
        let mut decisions = Acquisition::new(self.terms(wait));
        loop {
            let request = self.request(resource, wait);
            let attempt = request.attempt.clone();
            decisions.terms.spread = attempt.id.spread();
            let mut pending = OnDrop::new(Arc::clone(inner), attempt, decisions);
            let shutdown = pin!(inner.watchdog.closed());
            let asking = &mut pending.decisions;
            let ended = inner.backend.drive(asking, &request, shutdown).await;
            if ended.answer != Answer::Late {
                let attempt = ended.attempt()?;
                return Ok(attempt.map(|grant| Granted { pending, grant }));
            }
            // Dropping `pending` gives the late grant back.
            decisions = pending.decisions.afresh();
        }
    }

    fn terms(&self, wait: Wait) -> Terms {
        Terms {
            polls: self.settings.retry.map(|policy| Box::new(policy.pauses())),
            late_grants: Some(0),
            ..Terms::new(self.sharing(), self.settings.ttl).waiting(wait)
        }
    }

    /// A request of a fresh attempt.
    fn request(&self, resource: &ResourceName, wait: Wait) -> AcquireRequest {
        let runtime = &*self.locks.inner.runtime;
        let holder = match self.what.identity {
            Identity::Fresh => Holder::draw(runtime),
            Identity::Known(holder) | Identity::Owner(holder) => holder,
        };
        let attempt = AttemptRef::new(runtime, resource.clone(), holder);
        // An acquisition that polls does not wait at the lock service.
        let wait = match self.settings.retry {
            Some(_) => Wait::Never,
            None => wait,
        };
        let mut request = self.settings.request(attempt, wait);
        request.floor = self.what.floor;
        let claiming = self.what.claiming.then(|| self.locks.inner.issuer.clone());
        request.claim = claiming;
        request.upkeep = match self.what.identity {
            Identity::Fresh if self.settings.is_kept_up() => Upkeep::Watchdog,
            // Another process may get the same lease in an answer.
            Identity::Fresh | Identity::Known(_) | Identity::Owner(_) => Upkeep::None,
        };
        request
    }
}
