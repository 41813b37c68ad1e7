//! Requests that are sent again because there was no answer.

use std::time::Duration;

use lock_core::{Clock, Error, ErrorKind, Moment, Pauses, RetryPolicy};

/// With jitter, so that all who lost the server do not come back to it at once.
const PAUSES: RetryPolicy =
    RetryPolicy::exponential(Duration::from_millis(20)).longest(Duration::from_millis(500));

/// The repetitions of a request that names its acquisition, with growing pauses.
pub(super) struct Repetitions {
    pauses: Pauses,
    until: Moment,
}

impl Repetitions {
    pub(super) const fn until(until: Moment) -> Self {
        Self {
            pauses: PAUSES.pauses(),
            until,
        }
    }

    /// Waits before the next one. False if there is none: the error is the answer.
    pub(super) async fn another(&mut self, clock: &dyn Clock, error: &Error) -> bool {
        if error.kind() != ErrorKind::Unavailable {
            return false;
        }
        let again = self.pauses.next().map(|pause| clock.now() + pause);
        let Some(again) = again.filter(|again| *again < self.until) else {
            return false;
        };
        clock.sleep_until(again).await;
        true
    }
}
