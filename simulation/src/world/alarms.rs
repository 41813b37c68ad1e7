use std::{collections::BTreeMap, task::Waker};

/// Waiters for a time, in the order of their times, and then of their arrival.
#[derive(Debug, Default)]
pub(super) struct Alarms {
    waiting: BTreeMap<Place, Alarm>,
    arrivals: u64,
}

/// A true time in nanoseconds, and the number of the arrival.
pub(super) type Place = (u64, u64);

#[derive(Debug)]
pub(super) enum Alarm {
    Sleeper {
        process: usize,
        waker: Waker,
    },
    /// The end of a pause.
    Resume {
        process: usize,
    },
}

impl Alarms {
    pub(super) fn add(&mut self, at: u64, alarm: Alarm) -> Place {
        self.arrivals += 1;
        let place = (at, self.arrivals);
        self.waiting.insert(place, alarm);
        place
    }

    /// The alarm at this place, if its time has not come.
    pub(super) fn get_mut(&mut self, place: Place) -> Option<&mut Alarm> {
        self.waiting.get_mut(&place)
    }

    pub(super) fn remove(&mut self, place: Place) -> Option<Alarm> {
        self.waiting.remove(&place)
    }

    /// When the first alarm is due.
    pub(super) fn first(&self) -> Option<u64> {
        let ((at, _), _) = self.waiting.first_key_value()?;
        Some(*at)
    }

    /// Takes out the first alarm that is due by this time.
    pub(super) fn due(&mut self, by: u64) -> Option<Alarm> {
        let first = self.waiting.first_entry()?;
        let (at, _) = *first.key();
        (at <= by).then(|| first.remove())
    }

    /// How many tasks of a process sleep. Without a process: of all processes.
    pub(super) fn sleepers(&self, of: Option<usize>) -> u64 {
        let is_meant = |alarm: &&Alarm| match alarm {
            Alarm::Sleeper { process, .. } => of.is_none_or(|of| of == *process),
            Alarm::Resume { .. } => false,
        };
        self.waiting.values().filter(is_meant).count() as u64
    }
}
