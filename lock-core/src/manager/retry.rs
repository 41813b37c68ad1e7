use std::cmp::min;

use super::Inner;
use crate::{Attempt, Error, ErrorKind, Outcome, RetryPolicy, Wait, support::Patience};

impl Inner {
    /// Looks again and again, as the policy says, until it is granted or the wait is over. A look
    /// without an answer is one that found it held, unless there is none for too long.
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
        let mut patience = Patience::of(Wait::Forever, clock.now());
        let mut was_sent = false;
        loop {
            let attempt = look().await;
            let now = clock.now();
            let goes_on = match &attempt {
                Ok(Attempt::Granted(_)) => false,
                Ok(Attempt::Held { .. }) => {
                    patience = Patience::of(Wait::Forever, now);
                    true
                }
                Err(error) => {
                    was_sent |= error.outcome() == Outcome::Unknown;
                    error.kind() == ErrorKind::Unavailable && !patience.is_over(now)
                }
            };
            let pause = pauses.next().filter(|_| goes_on && now < deadline);
            let Some(pause) = pause else {
                // What an earlier look may have left is still being given back.
                return attempt.map_err(|error| match was_sent {
                    true => error.outcome_unknown(),
                    false => error,
                });
            };
            tokio::select! {
                // The next look reports it.
                () = self.watchdog.closed() => {}
                () = clock.sleep_until(min(now + pause, deadline)) => {}
            }
        }
    }
}
