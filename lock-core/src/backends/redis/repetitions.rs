//! Requests that are sent again because there was no answer.

use std::time::Duration;

use crate::{Clock, Error, ErrorKind, Moment};

const PAUSE_FIRST: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_millis(500);

/// The repetitions of a request that names its acquisition, with growing pauses.
pub(super) struct Repetitions {
    pause: Duration,
    until: Moment,
}

impl Repetitions {
    pub(super) const fn until(until: Moment) -> Self {
        Self {
            pause: PAUSE_FIRST,
            until,
        }
    }

    /// Waits before the next one. False if there is none: the error is the answer.
    pub(super) async fn another(&mut self, clock: &dyn Clock, error: &Error) -> bool {
        let again = clock.now() + self.pause;
        if error.kind() != ErrorKind::Unavailable || again >= self.until {
            return false;
        }
        clock.sleep_until(again).await;
        self.pause = std::cmp::min(self.pause * 2, PAUSE_MAX);
        true
    }
}
