use std::{
    convert::Infallible,
    future::poll_fn,
    panic::{AssertUnwindSafe, resume_unwind},
    sync::Arc,
    task::{Context, Poll},
};

use futures_util::FutureExt;
use tokio::{runtime::Handle, sync::oneshot};

use crate::{BoxFuture, Error, ErrorKind, Runtime};

/// The tasks on which a lock service or a store runs its requests. [`Runtime::spawn`] starts them
/// on the Tokio runtime on which this was made.
///
/// A request that runs on a task goes on although its caller is not polled, for example while
/// another branch of a `select!` runs. So it keeps a place at the server, or a permit, only until
/// its answer arrives.
#[derive(Clone, Debug)]
pub struct Tasks {
    on: Handle,
    runtime: Arc<dyn Runtime>,
}

/// The runtime on which the lock service was made has ended: make a new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the runtime on which the lock service was made has ended")]
#[expect(clippy::exhaustive_structs, reason = "there is nothing to it")]
pub struct RuntimeEnded;

/// The request may have been sent.
impl From<RuntimeEnded> for Error {
    fn from(ended: RuntimeEnded) -> Self {
        Self::unknown(ErrorKind::ShutDown).caused_by(ended)
    }
}

/// A task that ends soon after this value is dropped: at its present await, or the next.
#[derive(Debug)]
#[must_use = "the task ends when this is dropped"]
pub struct OwnedTask(oneshot::Sender<Infallible>);

impl Tasks {
    /// Tasks on the present Tokio runtime.
    ///
    /// # Panics
    /// Outside a Tokio runtime.
    #[must_use]
    pub fn here(runtime: Arc<dyn Runtime>) -> Self {
        let on = Handle::current();
        Self { on, runtime }
    }

    /// The runtime that runs the tasks and has the clock.
    #[must_use]
    pub const fn runtime(&self) -> &Arc<dyn Runtime> {
        &self.runtime
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
    /// The request is dropped soon after this future is dropped: at its present await, or the next.
    pub fn run<T>(
        &self,
        request: impl Future<Output = T> + Send + 'static,
    ) -> impl Future<Output = Result<T, RuntimeEnded>> + Send
    where
        T: Send + 'static,
    {
        self.answer(request.boxed(), true)
    }

    /// As [`run`](Self::run), but the request goes on although the caller goes away.
    ///
    /// # Errors
    /// [`RuntimeEnded`]; the request may have been sent.
    ///
    /// # Panics
    /// If the request does.
    ///
    /// # Cancel safety
    /// A request that has begun comes to its end.
    pub fn run_to_end<T>(
        &self,
        request: impl Future<Output = T> + Send + 'static,
    ) -> impl Future<Output = Result<T, RuntimeEnded>> + Send
    where
        T: Send + 'static,
    {
        self.answer(request.boxed(), false)
    }

    /// Runs a request where its caller runs, and the rest of it on a task if the caller goes away.
    ///
    /// This saves the cost of a task. But while the caller is kept without being polled, the
    /// request waits.
    ///
    /// # Cancel safety
    /// A request that has begun comes to its end, unless its runtime ends.
    pub async fn finish<T: Send + 'static>(
        &self,
        request: impl Future<Output = T> + Send + 'static,
    ) -> T {
        let mut rest = Rest {
            request: Some(Box::pin(request)),
            tasks: self,
        };
        poll_fn(|context| rest.poll(context)).await
    }

    /// Runs work that belongs to no caller. The owner of the work has to make it end. If the
    /// runtime has ended, the work is dropped.
    pub fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        // A drop outside of the runtime may call this, and dropping the work may need the runtime.
        let _inside = self.on.enter();
        self.runtime.spawn(&self.on, Box::pin(work));
    }

    /// Runs work until it ends or the result is dropped.
    pub fn own(&self, work: impl Future<Output = ()> + Send + 'static) -> OwnedTask {
        let (owner, dropped) = oneshot::channel();
        self.spawn(async move {
            tokio::select! {
                biased;
                _ = dropped => {}
                () = work => {}
            }
        });
        OwnedTask(owner)
    }

    /// The request is boxed before anything waits. The future of an `async fn` has room for its
    /// arguments and for each copy of them, and a request is large. All futures around this one
    /// would be large, too.
    async fn answer<T>(
        &self,
        request: BoxFuture<'static, T>,
        ends_with_caller: bool,
    ) -> Result<T, RuntimeEnded>
    where
        T: Send + 'static,
    {
        let (mut answer, answered) = oneshot::channel();
        self.spawn(async move {
            let request = AssertUnwindSafe(request).catch_unwind();
            tokio::select! {
                biased;
                () = answer.closed(), if ends_with_caller => {}
                output = request => drop(answer.send(output)),
            }
        });
        match answered.await {
            Ok(Ok(output)) => Ok(output),
            Ok(Err(panic)) => resume_unwind(panic),
            // While its caller is there, a task without an answer has ended with its runtime.
            Err(_) => Err(RuntimeEnded),
        }
    }
}

/// A request that its caller runs. When the caller goes away, a task runs the rest.
struct Rest<'a, T: Send + 'static> {
    request: Option<BoxFuture<'static, T>>,
    tasks: &'a Tasks,
}

impl<T: Send + 'static> Rest<'_, T> {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<T> {
        // The request is taken out first, so that it is not polled again if it panics.
        let Some(mut request) = self.request.take() else {
            return Poll::Pending;
        };
        let polled = request.as_mut().poll(context);
        if polled.is_pending() {
            self.request = Some(request);
        }
        polled
    }
}

impl<T: Send + 'static> Drop for Rest<'_, T> {
    fn drop(&mut self) {
        if let Some(request) = self.request.take() {
            self.tasks.spawn(request.map(drop));
        }
    }
}

impl OwnedTask {
    /// Whether the task has ended.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.0.is_closed()
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use tokio::{runtime::Builder, sync::Notify};

    use super::*;
    use crate::TokioRuntime;

    fn tasks() -> Tasks {
        Tasks::here(Arc::new(TokioRuntime))
    }

    /// Catches: a request goes on although its caller is gone.
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
        let tasks = tasks();
        tokio::select! {
            biased;
            _ = tasks.run(request) => {}
            () = gone.notified() => {}
        }
        while weak.upgrade().is_some() {
            tokio::task::yield_now().await;
        }
    }

    /// Catches: a request that ends with its caller although others depend on it.
    #[tokio::test]
    async fn a_request_is_finished_without_its_caller() {
        let (ended, goes_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let tells = Arc::clone(&ended);
        let waits = Arc::clone(&goes_on);
        let request = async move {
            waits.notified().await;
            tells.notify_one();
        };
        assert!(tasks().finish(request).now_or_never().is_none());
        goes_on.notify_one();
        ended.notified().await;
    }

    /// Catches: a call from another runtime hangs, or panics.
    #[test]
    fn a_runtime_that_has_ended_says_so() {
        let runtime = Builder::new_current_thread().build().unwrap();
        let tasks = runtime.block_on(async { tasks() });
        drop(runtime);
        let other = Builder::new_current_thread().build().unwrap();
        assert_eq!(other.block_on(tasks.run(async {})), Err(RuntimeEnded));
    }

    /// Catches: a task that is spawned on the runtime where the drop happens, or a task that
    /// outlives its owner.
    #[test]
    fn a_task_runs_where_it_was_made_until_its_owner_is_gone() {
        let runtime = Builder::new_current_thread().build().unwrap();
        let tasks = runtime.block_on(async { tasks() });
        let (there, (began, begun)) = (Arc::new(()), oneshot::channel());
        let weak = Arc::downgrade(&there);
        let task = tasks.own(async move {
            let _there = there;
            began.send(Handle::current().id()).unwrap();
            pending::<()>().await;
        });
        assert_eq!(runtime.block_on(begun), Ok(runtime.handle().id()));
        assert!(!task.is_finished());
        drop(task);
        runtime.block_on(async {
            while weak.upgrade().is_some() {
                tokio::task::yield_now().await;
            }
        });
    }

    /// Catches: a panic that looks like the end of the runtime.
    #[tokio::test]
    #[should_panic(expected = "in the request")]
    async fn a_panic_of_the_request_is_one_of_the_caller() {
        tasks()
            .run(async { panic!("in the request") })
            .await
            .unwrap()
    }
}
