use std::time::Duration;

use tokio::{sync::watch, time::sleep};

/// A count of the work under way, such as requests. Cloning is cheap and shares the count.
#[derive(Clone, Debug, Default)]
pub(crate) struct UnderWay(watch::Sender<()>);

/// See [`UnderWay::one_more`].
pub(crate) type OneMore = watch::Receiver<()>;

impl UnderWay {
    /// Counts one more piece of work until the result is dropped.
    pub(crate) fn one_more(&self) -> OneMore {
        self.0.subscribe()
    }

    /// Whether nothing is under way at the moment.
    pub(crate) fn is_none(&self) -> bool {
        self.0.is_closed()
    }

    /// Resolves when there is nothing under way.
    ///
    /// # Cancel safety
    /// Safe.
    pub(crate) async fn over(&self) {
        self.0.closed().await;
    }

    /// Resolves when nothing is under way, and still nothing is after this time.
    ///
    /// # Cancel safety
    /// Safe.
    pub(crate) async fn quiet(&self, time: Duration) {
        loop {
            self.over().await;
            sleep(time).await;
            if self.is_none() {
                return;
            }
        }
    }
}
