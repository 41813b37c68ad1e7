use std::{
    pin::Pin,
    task::{Context, Poll},
};

use pin_project_lite::pin_project;
use tracing::dispatcher::{self, Dispatch};

/// Runs work that sends a statement with values in its text. The events of the database driver are
/// suppressed.
///
/// A driver may log the text of each statement, and a holder may be in that text. No setting of a
/// connection can be changed from outside, so the subscriber is taken away while the work is polled
/// or dropped. Events of the work itself are lost, too.
///
/// NOT covered: a program without a subscriber of `tracing`, in which events go to the crate `log`.
/// In such a program only the driver's own setting helps.
///
/// # Cancel safety
/// That of the work.
pub fn unlogged<F: Future>(work: F) -> impl Future<Output = F::Output> {
    Unlogged { work: Some(work) }
}

pin_project! {
    struct Unlogged<F> {
        #[pin]
        work: Option<F>,
    }

    impl<F> PinnedDrop for Unlogged<F> {
        fn drop(this: Pin<&mut Self>) {
            // Drivers log a statement whose future is dropped, too.
            silently(|| this.project().work.set(None));
        }
    }
}

impl<F: Future> Future for Unlogged<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        match self.project().work.as_pin_mut() {
            Some(work) => silently(|| work.poll(context)),
            None => Poll::Pending,
        }
    }
}

/// Without a subscriber there is nothing to take away. A subscriber that is set here would stop the
/// events that go to `log`.
fn silently<T>(work: impl FnOnce() -> T) -> T {
    if dispatcher::has_been_set() {
        dispatcher::with_default(&Dispatch::none(), work)
    } else {
        work()
    }
}
