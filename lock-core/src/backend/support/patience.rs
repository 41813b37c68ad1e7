use std::time::Duration;

use crate::{Clock, Error, ErrorKind, Moment, Outcome, Pauses, RetryPolicy, Wait};

/// With jitter, so that all who lost the server do not come back to it at once.
const PAUSES: RetryPolicy =
    RetryPolicy::exponential(Duration::from_millis(20)).longest(Duration::from_millis(500));

/// So long before the end the last request is sent.
const LAST: Duration = Duration::from_millis(20);

/// How long a lock service that does not answer is asked, and when it is asked again.
///
/// For requests that may be sent again.
#[derive(Debug)]
pub struct Patience {
    pauses: Pauses,
    until: Moment,
    /// The next request is sent without a pause: usually only the connection is gone.
    at_once: bool,
}

impl Patience {
    /// The patience of an acquire that waits, unless its wait ends sooner: as long as a failover
    /// takes.
    pub const LONG: Duration = Duration::from_secs(10);

    /// The patience of everything else: as long as it takes to make a new connection, or a server
    /// to start again.
    pub const SHORT: Duration = Duration::from_secs(2);

    /// That of an acquire which is silent since `now`. What is no acquire does not wait.
    #[must_use]
    pub fn of(wait: Wait, now: Moment) -> Self {
        let until = match wait {
            Wait::Never => now + Self::SHORT,
            Wait::Until(end) => std::cmp::min(now + Self::LONG, end),
            Wait::Forever => now + Self::LONG,
        };
        Self {
            pauses: PAUSES.pauses(),
            until,
            at_once: wait == Wait::Never,
        }
    }

    /// Sends a request until there is an answer, or it has been asked for long enough. `send` is
    /// told whether an earlier copy of the request may have been lost. After an error, so may any
    /// of the copies.
    ///
    /// # Errors
    /// The last one.
    ///
    /// # Cancel safety
    /// That of the request.
    pub async fn ask<T, F>(
        mut self,
        clock: &dyn Clock,
        send: impl Fn(bool) -> F,
    ) -> Result<T, Error>
    where
        F: Future<Output = Result<T, Error>>,
    {
        let mut lost = false;
        loop {
            let error = match send(lost).await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            lost |= error.outcome() == Outcome::Unknown;
            if !self.another(clock, &error).await {
                return Err(if lost { error.outcome_unknown() } else { error });
            }
        }
    }

    /// Whether the service has been silent for long enough.
    #[must_use]
    pub fn is_over(&self, now: Moment) -> bool {
        now >= self.until
    }

    /// Waits before the next request. False if there is none: the error is the answer, at the very
    /// end of the time, and not before a last request right before that.
    pub async fn another(&mut self, clock: &dyn Clock, error: &Error) -> bool {
        if error.kind() != ErrorKind::Unavailable {
            return false;
        }
        if std::mem::take(&mut self.at_once) {
            return true;
        }
        let now = clock.now();
        let left = self.until.since(now);
        let (last, pause) = (now + left.saturating_sub(LAST), self.pauses.next());
        match pause.map(|pause| std::cmp::min(now + pause, last)) {
            Some(again) if now < last => {
                clock.sleep_until(again).await;
                true
            }
            _ => {
                clock.sleep_until(self.until).await;
                false
            }
        }
    }
}
