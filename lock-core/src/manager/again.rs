use super::Inner;
use crate::{Error, ErrorKind, Outcome, Wait, support::Patience};

impl Inner {
    /// Sends a request, and again while there is no answer, for a moment: a connection that was
    /// closed while nobody used it shows only when something is sent.
    ///
    /// For requests that may be sent twice. What certainly did not happen may be in any case.
    pub(super) async fn answered<T, F>(&self, send: impl Fn() -> F) -> Result<T, Error>
    where
        F: Future<Output = Result<T, Error>>,
    {
        self.sent_again(send, |_| true).await
    }

    /// The same for a request that must not be sent again once it may have happened.
    pub(super) async fn answered_once<T, F>(&self, send: impl Fn() -> F) -> Result<T, Error>
    where
        F: Future<Output = Result<T, Error>>,
    {
        let did_not_happen = |error: &Error| error.outcome() == Outcome::NotApplied;
        self.sent_again(send, did_not_happen).await
    }

    async fn sent_again<T, F>(
        &self,
        send: impl Fn() -> F,
        may_be: impl Fn(&Error) -> bool,
    ) -> Result<T, Error>
    where
        F: Future<Output = Result<T, Error>>,
    {
        let mut patience = Patience::of(Wait::Never, self.clock.now());
        let (mut is_first, mut was_sent) = (true, false);
        loop {
            let error = match send().await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            was_sent |= error.outcome() == Outcome::Unknown;
            let again = error.kind() == ErrorKind::Unavailable && may_be(&error);
            // At once: usually only the connection is gone.
            let at_once = again && std::mem::take(&mut is_first);
            if at_once || (again && patience.another(&*self.clock, &error).await) {
                continue;
            }
            // One of them may have happened, whatever became of the last.
            return Err(if was_sent {
                error.outcome_unknown()
            } else {
                error
            });
        }
    }
}
