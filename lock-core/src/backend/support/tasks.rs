use std::panic::resume_unwind;

use thiserror::Error;
use tokio::{
    runtime::Handle,
    task::{JoinError, JoinHandle},
};

/// Where a lock service runs its requests: the Tokio runtime on which it was made.
///
/// A request that runs on a task goes on although its caller is not polled, as while another branch
/// of a `select!` runs. So it never keeps a place at the server, or a permit, for longer than its
/// answer takes.
#[derive(Clone, Debug)]
pub struct Tasks(Handle);

/// The runtime on which the lock service was made has ended: make a new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the runtime on which the lock service was made has ended")]
#[expect(clippy::exhaustive_structs, reason = "there is nothing to it")]
pub struct RuntimeEnded;

impl Tasks {
    /// On the present runtime.
    ///
    /// # Panics
    /// Outside a Tokio runtime.
    #[must_use]
    pub fn here() -> Self {
        Self(Handle::current())
    }

    /// Runs a request to its end, on a task that ends with the caller.
    ///
    /// # Errors
    /// [`RuntimeEnded`]; the request may have been sent.
    ///
    /// # Panics
    /// If the request does.
    ///
    /// # Cancel safety
    /// The request is dropped soon after this is: at its present await, or the next.
    pub async fn run<T>(
        &self,
        request: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, RuntimeEnded>
    where
        T: Send + 'static,
    {
        let mut task = Caller(self.spawn(request));
        answered((&mut task.0).await)
    }

    /// Runs work that belongs to no caller. Its owner sees to it that it ends.
    pub fn spawn<T>(&self, work: impl Future<Output = T> + Send + 'static) -> JoinHandle<T>
    where
        T: Send + 'static,
    {
        self.0.spawn(work)
    }
}

/// Ends its task when it is dropped.
struct Caller<T>(JoinHandle<T>);

impl<T> Drop for Caller<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn answered<T>(end: Result<T, JoinError>) -> Result<T, RuntimeEnded> {
    end.map_err(|error| match error.try_into_panic() {
        Ok(panic) => resume_unwind(panic),
        // Nobody but the runtime ends a task whose caller is there.
        Err(_) => RuntimeEnded,
    })
}

#[cfg(test)]
mod tests {
    use std::{future::pending, sync::Arc};

    use tokio::{runtime::Builder, sync::Notify};

    use super::*;

    /// Catches: a request goes on although nobody waits for it.
    #[tokio::test]
    async fn a_request_ends_with_its_caller() {
        let (there, gone) = (Arc::new(()), Arc::new(Notify::new()));
        let weak = Arc::downgrade(&there);
        let begun = Arc::clone(&gone);
        let request = async move {
            let _there = there;
            begun.notify_one();
            pending::<()>().await;
        };
        let tasks = Tasks::here();
        tokio::select! {
            _ = tasks.run(request) => {}
            () = gone.notified() => {}
        }
        while weak.upgrade().is_some() {
            tokio::task::yield_now().await;
        }
    }

    /// Catches: a call from another runtime hangs, or panics.
    #[test]
    fn a_runtime_that_has_ended_says_so() {
        let runtime = Builder::new_current_thread().build().unwrap();
        let tasks = runtime.block_on(async { Tasks::here() });
        drop(runtime);
        let other = Builder::new_current_thread().build().unwrap();
        assert_eq!(other.block_on(tasks.run(async {})), Err(RuntimeEnded));
    }
}
