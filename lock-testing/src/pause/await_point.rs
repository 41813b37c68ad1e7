use std::{
    cell::Cell,
    fmt,
    future::Future,
    panic::Location,
    pin::Pin,
    task::{Context, Poll, Waker},
};

/// The place at which a section is paused, if the await there belongs to this crate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    what: What,
    /// The line of the user's code, if it is known.
    caller: Option<&'static Location<'static>>,
}

#[derive(Clone, Copy, Debug)]
enum What {
    Request(&'static str),
    Reply(&'static str),
    Point,
}

thread_local! {
    /// The place whose await returned last. The poller of a section reads it right after the poll,
    /// on the same thread, so sections cannot see each other's places.
    static REACHED: Cell<Option<Place>> = const { Cell::new(None) };
}

/// An await without effect: a place where a pause can land.
///
/// It is for a call that goes over the network in production, but is a plain call in your test. Put
/// one point before and one after the effect of the call. The message of a failing test names the
/// line.
///
/// # Cancel safety
/// Cancel safe: nothing is left behind.
#[track_caller]
pub fn point() -> impl Future<Output = ()> + Send {
    Reached::new(What::Point, Some(Location::caller()))
}

/// Runs an operation that needs a request and a reply, with one await before it and one after it.
///
/// # Cancel safety
/// As in production: if it is dropped at the first await, nothing happens. If it is dropped later,
/// the operation may have happened.
pub(crate) async fn there_and_back<F: Future>(
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
    /// The place at which a poll has stopped on this thread since the last call.
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

/// The await at a place: pending exactly once.
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
        // The clean-up that a dropped guard begins has no place, because the section does not wait
        // for it.
        if !cx.waker().will_wake(Waker::noop()) {
            REACHED.set(Some(self.place));
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}
