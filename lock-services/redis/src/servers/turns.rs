//! How much is under way at a server at once.

use std::sync::Arc;

use lock_core::{
    Error, ErrorKind,
    backend::support::{RuntimeEnded, Tasks},
};
use tokio::sync::Semaphore;

/// Turns at a server: only so many requests are under way at once, and the others wait.
///
/// The caller of a request may be kept and not polled. So a request that has to wait for its turn
/// runs on a task, and gives the turn back when it has its answer. Half of the turns are for
/// requests that begin at once, which saves them the task: callers that are not polled can keep
/// those, and no others.
#[derive(Debug)]
pub(crate) struct Turns {
    direct: Semaphore,
    on_tasks: Arc<Semaphore>,
}

impl Turns {
    /// With a single turn, every request runs on a task.
    pub(crate) fn new(number: usize) -> Self {
        Self {
            direct: Semaphore::new(number / 2),
            on_tasks: Arc::new(Semaphore::new(number - number / 2)),
        }
    }

    /// Runs a request when it is its turn, unless that takes too long: then it is not sent.
    ///
    /// # Cancel safety
    /// As that of [`Tasks::run`].
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        tasks: &Tasks,
        too_long: impl Future<Output = Error> + Send + 'static,
        request: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) -> Result<T, Error> {
        if let Ok(_turn) = self.direct.try_acquire() {
            return request.await;
        }
        let turns = Arc::clone(&self.on_tasks);
        let in_turn = async move {
            let _turn = tokio::select! {
                biased;
                // Nobody closes the semaphore.
                turn = turns.acquire() => turn,
                error = too_long => return Err(error),
            };
            request.await
        };
        tasks
            .run(in_turn)
            .await
            .unwrap_or_else(|ended| Err(broken_off(ended)))
    }
}

fn broken_off(ended: RuntimeEnded) -> Error {
    Error::unknown(ErrorKind::Unavailable).because(ended.to_string())
}

#[cfg(test)]
mod tests {
    use std::{
        future::{pending, ready},
        pin::pin,
    };

    use futures_util::FutureExt;

    use super::*;

    /// Catches: requests that are dropped use up all turns.
    #[tokio::test]
    async fn a_request_that_goes_away_gives_its_turn_back() {
        let (turns, tasks) = (Turns::new(1), Tasks::here());
        let request = turns.run(&tasks, pending(), pending::<Result<(), Error>>());
        tokio::select! {
            biased;
            _ = request => panic!("there is no answer"),
            () = tokio::task::yield_now() => {}
        }
        turns.run(&tasks, pending(), ready(Ok(()))).await.unwrap();
    }

    /// Catches: a request goes out although its caller was told that it did not.
    #[tokio::test]
    async fn who_waits_too_long_sends_nothing() {
        let (turns, tasks) = (Turns::new(1), Tasks::here());
        let mut first = pin!(turns.run(&tasks, pending(), pending::<Result<(), Error>>()));
        assert!(first.as_mut().now_or_never().is_none());
        // It has its turn before the next one asks.
        while turns.on_tasks.available_permits() > 0 {
            tokio::task::yield_now().await;
        }
        let error = || Error::not_applied(ErrorKind::Unavailable);
        let too_long = async move { error() };
        let request = async { panic!("it was sent") };
        let answer: Result<(), Error> = turns.run(&tasks, too_long, request).await;
        assert_eq!(answer.unwrap_err().kind(), ErrorKind::Unavailable);
    }
}
