use std::time::Duration;

use lock_core::backend::{Moment, Runtime};

use super::{
    asker::Push,
    observe::{Event, Fault, MessageId, Observe},
    settings::Settings,
    table::{LeftBehind, Step, Table},
};

/// The server: its state, its clock, and its faults.
#[derive(Debug)]
pub(super) struct Server {
    settings: Settings,
    table: Table,
    /// How far its clock is ahead of the network's: a day, unless it was stepped, so that it can
    /// also be set back.
    ahead: Duration,
    steps: u64,
    paused_until: Moment,
    is_down: bool,
}

/// How far the clock of a new server is ahead.
const AHEAD: Duration = Duration::from_secs(24 * 60 * 60);

/// The state of a service at some moment, from which it can go on later.
#[derive(Clone, Debug)]
pub struct ServerCopy(Table);

/// The result of an arrival.
pub(super) enum Arrival<T> {
    Done(T),
    /// The request is read at this moment, at the earliest.
    Paused(Moment),
    /// The connection is refused.
    Down,
}

impl Server {
    pub(super) fn new(settings: Settings) -> Self {
        Self {
            settings,
            table: Table::new(settings),
            ahead: AHEAD,
            steps: 0,
            paused_until: Moment::default(),
            is_down: false,
        }
    }

    /// Does the work of a request, unless something is in the way.
    pub(super) fn arrive<T>(
        &mut self,
        (by, copy): (MessageId, bool),
        runtime: &dyn Runtime,
        observer: &dyn Observe,
        pushes: &mut Vec<Push>,
        work: impl FnOnce(&mut Table, &mut Step<'_>) -> T,
    ) -> Arrival<T> {
        let at = runtime.now();
        if self.is_down {
            observer.observe(at, Event::Refused(by));
            return Arrival::Down;
        }
        if at < self.paused_until {
            return Arrival::Paused(self.paused_until);
        }
        observer.observe(at, Event::Arrived { message: by, copy });
        self.steps += 1;
        let unix_time = (runtime.unix_time() + self.ahead).saturating_sub(AHEAD);
        let mut step = Step {
            by,
            at,
            now: at + self.ahead,
            unix_time,
            number: self.steps,
            observer,
            pushes,
        };
        Arrival::Done(work(&mut self.table, &mut step))
    }

    pub(super) fn suffer(&mut self, fault: Fault) {
        match fault {
            Fault::QueueLost => self.table.lose_queue(),
            Fault::EverythingLost => self.table = Table::new(self.settings),
            Fault::FailedOver => {}
            Fault::Paused(until) => self.paused_until = until,
            Fault::Down(is_down) => self.is_down = is_down,
            Fault::ClockForward(by) => self.ahead = self.ahead.saturating_add(by),
            Fault::ClockBack(by) => self.ahead = self.ahead.saturating_sub(by),
        }
    }

    pub(super) fn copy(&self) -> ServerCopy {
        ServerCopy(self.table.clone())
    }

    pub(super) fn fail_over_to(&mut self, copy: ServerCopy) {
        self.table = copy.0;
    }

    pub(super) fn left_behind(&self, now: Moment) -> LeftBehind {
        self.table.left_behind(now + self.ahead)
    }
}
