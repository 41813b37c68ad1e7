use super::Inner;
use crate::{Error, Outcome, Wait, support::Patience};

impl Inner {
    /// Sends a request, and again while there is no answer, for a moment: a connection that was
    /// closed while nobody used it shows only when something is sent.
    ///
    /// For requests that may be sent twice. What certainly did not happen may be in any case.
    /// `send` is told whether an earlier copy may have been lost.
    pub(super) async fn answered<T, F>(&self, send: impl Fn(bool) -> F) -> Result<T, Error>
    where
        F: Future<Output = Result<T, Error>>,
    {
        let clock = &*self.clock;
        Patience::of(Wait::Never, clock.now())
            .ask(clock, send)
            .await
    }

    /// The same for a request that must not be sent again once it may have happened.
    pub(super) async fn answered_once<T, F>(&self, send: impl Fn() -> F) -> Result<T, Error>
    where
        F: Future<Output = Result<T, Error>>,
    {
        let once = move |_| {
            let sent = send();
            async {
                match sent.await {
                    Err(error) if error.outcome() == Outcome::Unknown => Ok(Err(error)),
                    answer => answer.map(Ok),
                }
            }
        };
        self.answered(once).await?
    }
}
