use super::Inner;
use crate::{Error, Outcome, acquisition::repeat};

impl Inner {
    /// Sends a request that may be sent twice. Repeats it for a moment while there is no answer.
    pub(super) async fn answered<T, F>(
        &self,
        send: impl Fn() -> F + Send + Sync,
    ) -> Result<T, Error>
    where
        F: Future<Output = Result<T, Error>>,
    {
        repeat(&*self.runtime, send).await
    }

    /// As `answered`, for a request that must not be sent again once it may have happened.
    pub(super) async fn answered_once<T, F>(
        &self,
        send: impl Fn() -> F + Send + Sync,
    ) -> Result<T, Error>
    where
        F: Future<Output = Result<T, Error>>,
    {
        let once = || {
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
