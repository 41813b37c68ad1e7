use std::time::Duration;

use crate::{Clock, Error, ErrorKind, Moment, Pauses, RetryPolicy};

/// With jitter, so that all who lost the server do not come back to it at once.
const PAUSES: RetryPolicy =
    RetryPolicy::exponential(Duration::from_millis(20)).longest(Duration::from_millis(500));

/// So long before the end the last one is sent.
const LAST: Duration = Duration::from_millis(20);

/// The repetitions of a request that has got no answer, with growing pauses.
///
/// For requests that may be sent again.
#[derive(Debug)]
pub struct Repetitions {
    pauses: Pauses,
    until: Moment,
}

impl Repetitions {
    /// Until that moment.
    #[must_use]
    pub const fn until(until: Moment) -> Self {
        Self {
            pauses: PAUSES.pauses(),
            until,
        }
    }

    /// Waits before the next one. False if there is none: the error is the answer, at the very end
    /// of the time, and not before a last one right before that.
    pub async fn another(&mut self, clock: &dyn Clock, error: &Error) -> bool {
        if error.kind() != ErrorKind::Unavailable {
            return false;
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
