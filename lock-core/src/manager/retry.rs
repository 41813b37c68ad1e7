use std::cmp::min;

use super::Inner;
use crate::{Attempt, Error, RetryPolicy, Wait};

impl Inner {
    /// Looks again and again, as the policy says, until it is granted or the wait is over.
    pub(super) async fn polled<T, F>(
        &self,
        policy: RetryPolicy,
        wait: Wait,
        look: impl Fn() -> F,
    ) -> Result<Attempt<T>, Error>
    where
        F: Future<Output = Result<Attempt<T>, Error>>,
    {
        let clock = &*self.clock;
        let deadline = wait.end(clock.now());
        let mut pauses = policy.pauses();
        loop {
            let attempt = look().await?;
            let now = clock.now();
            if matches!(attempt, Attempt::Granted(_)) || now >= deadline {
                return Ok(attempt);
            }
            let Some(pause) = pauses.next() else {
                return Ok(attempt);
            };
            tokio::select! {
                // The next look reports it.
                () = self.watchdog.closed() => {}
                () = clock.sleep_until(min(now + pause, deadline)) => {}
            }
        }
    }
}
