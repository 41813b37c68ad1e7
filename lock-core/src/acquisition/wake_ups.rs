use std::{fmt, sync::Mutex};

use tokio::sync::Notify;

use super::Wake;
use crate::support::lock;

/// The wake-ups of one attempt, for a lock service that makes them in this process. Wake-ups that
/// the attempt has not heard yet become one.
#[derive(Default)]
pub struct WakeUps {
    /// Never held across an await.
    unheard: Mutex<Option<Wake>>,
    changed: Notify,
}

impl WakeUps {
    /// Wakes the attempt.
    pub fn wake(&self, wake: Wake) {
        {
            let mut unheard = lock(&self.unheard);
            if unheard.is_none_or(|unheard| weight(unheard) <= weight(wake)) {
                *unheard = Some(wake);
            }
        }
        self.changed.notify_one();
    }

    /// The next wake-up.
    ///
    /// # Cancel safety
    /// Cancel safe: no wake-up is lost.
    pub async fn next(&self) -> Wake {
        loop {
            if let Some(wake) = lock(&self.unheard).take() {
                return wake;
            }
            self.changed.notified().await;
        }
    }
}

/// The order in which one wake-up replaces another. A grant says more than [`Wake::Look`], and
/// [`Wake::Look`] says more than news about the silence of a task.
const fn weight(wake: Wake) -> u8 {
    match wake {
        Wake::Offered(_) | Wake::Granted(_) => 2,
        Wake::Look => 1,
        Wake::Silent(_) | Wake::Heard => 0,
    }
}

impl fmt::Debug for WakeUps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WakeUps").finish_non_exhaustive()
    }
}
