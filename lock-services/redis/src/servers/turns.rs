//! The limit on requests that are under way at a server at once.

use std::sync::Arc;

use futures_util::{FutureExt, future::Either};
use lock_core::{
    Error, ErrorKind,
    backend::support::{RuntimeEnded, Tasks},
};
use tokio::sync::Semaphore;

/// Turns at a server: only a limited number of requests is under way at once, and the others wait.
///
/// The caller of a request may be kept and not polled. So a request that has to wait for its turn
/// runs on a task, and gives the turn back when it has its answer. Half of the turns are for
/// requests that can begin at once, and need no task. Callers that are not polled can keep only the
/// turns of that half.
#[derive(Debug)]
pub(crate) struct Turns {
    direct: Semaphore,
    on_tasks: Arc<Semaphore>,
}

impl Turns {
    /// Turns for this number of requests. With a single turn, every request runs on a task.
    pub(crate) fn new(number: usize) -> Self {
        Self {
            direct: Semaphore::new(number / 2),
            on_tasks: Arc::new(Semaphore::new(number - number / 2)),
        }
    }

    /// Runs a request when it is its turn.
    ///
    /// This is no `async fn`, like the parts of [`Tasks::run`], so that no future around this one
    /// has room for a copy of the request.
    ///
    /// # Cancel safety
    /// As [`Tasks::run`].
    pub(crate) fn run<T: Send + 'static>(
        &self,
        tasks: &Tasks,
        request: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) -> impl Future<Output = Result<T, Error>> {
        if let Ok(turn) = self.direct.try_acquire() {
            return Either::Left(request.inspect(|_| drop(turn)));
        }
        // The semaphore is never closed.
        let turn = Arc::clone(&self.on_tasks).acquire_owned();
        let in_turn = turn.then(|turn| request.inspect(|_| drop(turn)));
        let answer = tasks.run(in_turn);
        Either::Right(answer.map(|run| run.unwrap_or_else(|ended| Err(broken_off(ended)))))
    }
}

fn broken_off(ended: RuntimeEnded) -> Error {
    Error::unknown(ErrorKind::Unavailable).because(ended.to_string())
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use lock_core::backend::TokioRuntime;

    use super::*;

    /// Catches: requests that are dropped use up all turns.
    #[tokio::test]
    async fn a_request_that_goes_away_gives_its_turn_back() {
        let (turns, tasks) = (Turns::new(1), Tasks::here(Arc::new(TokioRuntime)));
        let request = turns.run(&tasks, pending::<Result<(), Error>>());
        tokio::select! {
            biased;
            _ = request => panic!("there is no answer"),
            () = tokio::task::yield_now() => {}
        }
        turns.run(&tasks, ready(Ok(()))).await.unwrap();
    }
}
