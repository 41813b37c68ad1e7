use std::{
    pin::Pin,
    task::{Context, Poll},
};

use lock_core::backend::Moment;

use super::{alarms::Place, process::Process};

/// One sleep. It is in the world's list from its first poll until its end or its drop.
pub(super) struct Sleep<'a> {
    process: &'a Process,
    until: Moment,
    place: Option<Place>,
}

impl<'a> Sleep<'a> {
    pub(super) const fn new(process: &'a Process, until: Moment) -> Self {
        let place = None;
        Self {
            process,
            until,
            place,
        }
    }
}

impl Future for Sleep<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let Process { shared, number, .. } = self.process;
        let mut state = shared.state();
        if state.time_of(*number) >= self.until {
            return Poll::Ready(());
        }
        let waker = context.waker();
        let old = match self.place {
            Some(place) => state.sleep_on(place, waker),
            None => {
                self.place = state.sleep(*number, self.until, waker);
                None
            }
        };
        drop(state);
        // The drop of the old waker may run code of others.
        drop(old);
        Poll::Pending
    }
}

impl Drop for Sleep<'_> {
    fn drop(&mut self) {
        if let Some(place) = self.place {
            let alarm = self.process.shared.state().sleep_no_more(place);
            drop(alarm);
        }
    }
}
