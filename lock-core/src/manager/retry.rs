use std::cmp::min;

use super::{Acquire, acquire::Granted};
use crate::{Attempt, Error, Moment, ResourceName, RetryPolicy, Wait};

impl Acquire<'_> {
    /// Looks again and again, as the policy says, without ever being in line.
    pub(super) async fn polled(
        &self,
        resource: &ResourceName,
        policy: RetryPolicy,
    ) -> Result<Attempt<Granted>, Error> {
        let clock = &*self.locks.inner.clock;
        let wait = self.settings.wait;
        let deadline = wait.map_or(Moment::NEVER, |wait| clock.now() + wait);
        let mut pauses = policy.pauses();
        loop {
            let attempt = self.asked(resource, Wait::Never).await?;
            let now = clock.now();
            if matches!(attempt, Attempt::Granted(_)) || now >= deadline {
                return Ok(attempt);
            }
            let Some(pause) = pauses.next() else {
                return Ok(attempt);
            };
            tokio::select! {
                // The next look reports it.
                () = self.locks.inner.watchdog.closed() => {}
                () = clock.sleep_until(min(now + pause, deadline)) => {}
            }
        }
    }
}
