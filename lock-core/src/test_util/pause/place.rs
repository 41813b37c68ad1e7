use std::{
    cell::Cell,
    fmt,
    future::Future,
    panic::Location,
    pin::Pin,
    task::{Context, Poll, Waker},
};

/// Where a section stands when it is paused, as far as this crate has awaits of its own there.
#[derive(Clone, Copy, Debug)]
pub(in crate::test_util) struct Place {
    what: What,
    /// The line of the user's code, where it is known.
    caller: Option<&'static Location<'static>>,
}

#[derive(Clone, Copy, Debug)]
enum What {
    Request(&'static str),
    Reply(&'static str),
    Point,
}

thread_local! {
    /// The place whose await returned last. Whoever polls a section reads it right after the poll,
    /// on the same thread, so sections cannot take each other's place.
    static REACHED: Cell<Option<Place>> = const { Cell::new(None) };
}

/// An await without effect: a place where a pause can land.
///
/// For what goes over the network in production and is a plain call in your test: put one before
/// and one after its effect. The message of a test that fails names the line.
///
/// # Cancel safety
/// Cancel safe: nothing is left behind.
#[track_caller]
pub fn point() -> impl Future<Output = ()> + Send {
    Reached::new(What::Point, Some(Location::caller()))
}

/// Does something that takes a request there and a reply back: one await before, one after it.
///
/// # Cancel safety
/// As in production: dropped at the first await nothing happens, afterwards it may have happened.
pub(in crate::test_util) async fn there_and_back<F: Future>(
    operation: &'static str,
    caller: Option<&'static Location<'static>>,
    effect: impl FnOnce() -> F,
) -> F::Output {
    Reached::new(What::Request(operation), caller).await;
    let reply = effect().await;
    Reached::new(What::Reply(operation), caller).await;
    reply
}

impl Place {
    /// The place that a poll has stopped at since this was last asked, on this thread.
    pub(super) fn take() -> Option<Self> {
        REACHED.take()
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.what {
            What::Request(operation) => write!(f, "the request to {operation} is under way")?,
            What::Reply(operation) => write!(f, "the reply to {operation} is under way")?,
            What::Point => f.write_str("pause::point")?,
        }
        match self.caller {
            Some(caller) => write!(f, ", {caller}"),
            None => Ok(()),
        }
    }
}

/// The await at a place: pending once.
struct Reached {
    place: Place,
    passed: bool,
}

impl Reached {
    const fn new(what: What, caller: Option<&'static Location<'static>>) -> Self {
        Self {
            place: Place { what, caller },
            passed: false,
        }
    }
}

impl Future for Reached {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.passed {
            return Poll::Ready(());
        }
        self.passed = true;
        // A clean-up that a dropped guard begins is nobody's place: nobody waits for it.
        if !cx.waker().will_wake(Waker::noop()) {
            REACHED.set(Some(self.place));
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}
