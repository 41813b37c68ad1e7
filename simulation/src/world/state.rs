//! The knowledge of the executor, and its steps. No step calls code of others, because that would
//! wait for the lock that its caller holds.

use std::{sync::Arc, task::Waker, time::Duration};

use lock_core::backend::{BoxFuture, Moment};

use super::{
    Clock, Counts, Panicked,
    alarms::{Alarm, Alarms, Place},
    order::Ready,
    task::{self, Inbox, Slot, Task},
    trace::{Event, GOES_ON, IS_KILLED, NONE, PAUSES, Trace},
};

#[derive(Debug)]
pub(super) struct State {
    pub(super) now: u64,
    pub(super) ready: Ready,
    pub(super) trace: Trace,
    pub(super) panics: Vec<Panicked>,
    slots: Vec<Slot>,
    processes: Vec<Group>,
    alarms: Alarms,
    /// The task that is polled.
    running: Option<usize>,
    inbox: Inbox,
    /// Kept, so that its memory is used again.
    woken: Vec<usize>,
}

/// The tasks of one process.
#[derive(Debug)]
struct Group {
    name: Arc<str>,
    clock: Clock,
    /// The sum of the steps of the wall clock, in nanoseconds.
    unix_step: i128,
    randoms: u64,
    is_dead: bool,
    /// The end of a pause.
    paused_until: Option<u64>,
    /// Tasks that were woken while it is paused.
    held: Vec<usize>,
    /// Polls before which the process pauses, and for how long.
    pauses: Vec<(u64, Duration)>,
    tasks: u64,
    polls: u64,
}

/// Ten seconds, in nanoseconds.
const FAR: u64 = 10_000_000_000;

/// The executor's next step.
pub(super) enum Next {
    Poll(usize, Task),
    Wake(Vec<Waker>),
    Quiet,
    TimeUp,
}

impl State {
    pub(super) fn new(ready: Ready) -> Self {
        Self {
            now: 0,
            ready,
            trace: Trace::default(),
            panics: Vec::new(),
            slots: Vec::new(),
            processes: Vec::new(),
            alarms: Alarms::default(),
            running: None,
            inbox: Inbox::default(),
            woken: Vec::new(),
        }
    }

    pub(super) fn add_process(&mut self, name: &Arc<str>, clock: Clock) -> usize {
        self.processes.push(Group {
            name: Arc::clone(name),
            clock,
            unix_step: 0,
            randoms: 0,
            is_dead: false,
            paused_until: None,
            held: Vec::new(),
            pauses: Vec::new(),
            tasks: 0,
            polls: 0,
        });
        self.processes.len() - 1
    }

    /// The number of the next draw of a process.
    pub(super) fn next_random(&mut self, process: usize) -> u64 {
        let group = &mut self.processes[process];
        group.randoms += 1;
        group.randoms
    }

    /// The moment of a process's clock.
    pub(super) fn time_of(&self, process: usize) -> Moment {
        self.processes[process].clock.at(self.now)
    }

    /// How far the wall clock of a process has got since the beginning of the world, in
    /// nanoseconds.
    pub(super) fn unix_gone(&self, process: usize) -> i128 {
        let group = &self.processes[process];
        let gone = group.clock.gone(self.now);
        i128::from(gone).saturating_add(group.unix_step)
    }

    pub(super) fn step_unix(&mut self, process: usize, by: i128) {
        let step = &mut self.processes[process].unix_step;
        *step = step.saturating_add(by);
    }

    /// Begins a task. Gives it back if its process is dead.
    pub(super) fn spawn(
        &mut self,
        process: usize,
        future: BoxFuture<'static, ()>,
    ) -> Result<(), BoxFuture<'static, ()>> {
        let number = self.slots.len();
        let group = &mut self.processes[process];
        if group.is_dead {
            return Err(future);
        }
        group.tasks += 1;
        let task = Some(Task::new(number, future, &self.inbox));
        self.slots.push(Slot { process, task });
        self.fold(Event::Began, process, number as u64);
        Ok(())
    }

    /// The next step, at this time at the latest.
    pub(super) fn next(&mut self, until: u64) -> Next {
        loop {
            self.take_woken();
            while let Some(number) = self.ready.next() {
                if let Some(next) = self.begin_poll(number) {
                    return next;
                }
            }
            match self.alarms.first() {
                None => return Next::Quiet,
                Some(at) if at > until => {
                    self.now = std::cmp::max(self.now, until);
                    return Next::TimeUp;
                }
                Some(at) => self.now = std::cmp::max(self.now, at),
            }
            let wakers = self.ring();
            if !wakers.is_empty() {
                return Next::Wake(wakers);
            }
        }
    }

    /// Whether a task can be polled now.
    pub(super) fn has_ready(&mut self) -> bool {
        self.take_woken();
        self.ready.has_any()
    }

    /// Whether no task sleeps until a moment that comes soon.
    pub(super) fn is_far(&self) -> bool {
        let next = self.alarms.first();
        next.is_some_and(|next| next.saturating_sub(self.now) > FAR)
    }

    /// Sorts the tasks that were woken. Tasks of a paused process wait for the end of the pause.
    fn take_woken(&mut self) {
        let mut woken = std::mem::take(&mut self.woken);
        task::woken(&self.inbox, &mut woken);
        for number in &woken {
            let slot = &self.slots[*number];
            let group = &mut self.processes[slot.process];
            match group.paused_until {
                _ if slot.task.is_none() => {}
                Some(_) => group.held.push(*number),
                None => self.ready.add(*number),
            }
        }
        self.woken = woken;
    }

    /// Takes a task out of its slot. `None` if its process pauses at this poll.
    fn begin_poll(&mut self, number: usize) -> Option<Next> {
        let slot = &mut self.slots[number];
        let process = slot.process;
        let group = &mut self.processes[process];
        let nth = group.polls + 1;
        if let Some(found) = group.pauses.iter().position(|(poll, _)| *poll == nth) {
            let (_, pause) = group.pauses.swap_remove(found);
            self.ready.put_back(number);
            self.pause(process, pause);
            return None;
        }
        let task = slot.task.take()?;
        group.polls = nth;
        task.begin_poll();
        self.running = Some(number);
        self.fold(Event::Polled, process, number as u64);
        Some(Next::Poll(number, task))
    }

    /// Puts a task back after a poll that was not the last one. Gives it back if its process was
    /// killed meanwhile.
    pub(super) fn end_poll(&mut self, number: usize, task: Task) -> Option<Task> {
        self.running = None;
        let slot = &mut self.slots[number];
        if self.processes[slot.process].is_dead {
            self.fold(Event::Dropped, self.slots[number].process, number as u64);
            return Some(task);
        }
        slot.task = Some(task);
        None
    }

    /// Notes the end of a task that is polled.
    pub(super) fn end(&mut self, number: usize, event: Event) {
        self.running = None;
        let process = self.slots[number].process;
        let group = &mut self.processes[process];
        group.tasks = group.tasks.saturating_sub(1);
        self.fold(event, process, number as u64);
    }

    /// Notes a panic of a process.
    pub(super) fn panicked(&mut self, process: usize, message: String) {
        self.fold(Event::Panicked, process, NONE);
        let process = Arc::clone(&self.processes[process].name);
        self.trace
            .keep(self.now, &process, format!("panics: {message}"));
        self.panics.push(Panicked { process, message });
    }

    /// The wakers of the sleepers that are due. Processes whose pause is over go on.
    fn ring(&mut self) -> Vec<Waker> {
        let mut wakers = Vec::new();
        while let Some(alarm) = self.alarms.due(self.now) {
            match alarm {
                Alarm::Sleeper { waker, .. } => wakers.push(waker),
                Alarm::Resume { process } => self.resume(process),
            }
        }
        wakers
    }

    pub(super) fn pause(&mut self, process: usize, pause: Duration) {
        let pause = u64::try_from(pause.as_nanos()).unwrap_or(u64::MAX);
        let end = self.now.saturating_add(pause);
        let group = &mut self.processes[process];
        if group.is_dead || group.paused_until.is_some_and(|until| end <= until) {
            return;
        }
        group.paused_until = Some(end);
        let slots = &self.slots;
        let held = self.ready.take(|task| slots[task].process == process);
        group.held.extend(held);
        if end < u64::MAX {
            self.alarms.add(end, Alarm::Resume { process });
        }
        self.happened(Event::Paused, process, PAUSES);
    }

    pub(super) fn pause_at_poll(&mut self, process: usize, nth: u64, pause: Duration) {
        self.processes[process].pauses.push((nth, pause));
    }

    fn resume(&mut self, process: usize) {
        let group = &mut self.processes[process];
        // A longer pause may have begun meanwhile.
        if group.paused_until.is_none_or(|until| until > self.now) {
            return;
        }
        group.paused_until = None;
        for task in std::mem::take(&mut group.held) {
            self.ready.add(task);
        }
        self.happened(Event::WentOn, process, GOES_ON);
    }

    /// Takes out all tasks of a process, except a task that is polled. No tasks are added any more.
    pub(super) fn kill(&mut self, process: usize) -> Vec<Task> {
        let group = &mut self.processes[process];
        if group.is_dead {
            return Vec::new();
        }
        group.is_dead = true;
        group.tasks = 0;
        group.held.clear();
        let slots = &self.slots;
        drop(self.ready.take(|task| slots[task].process == process));
        let of_process = self.slots.iter_mut().filter(|slot| slot.process == process);
        let tasks = of_process.filter_map(|slot| slot.task.take()).collect();
        self.happened(Event::Killed, process, IS_KILLED);
        tasks
    }

    pub(super) fn process_of(&self, task: usize) -> usize {
        self.slots[task].process
    }

    pub(super) fn is_dead(&self, process: usize) -> bool {
        self.processes[process].is_dead
    }

    pub(super) const fn processes(&self) -> usize {
        self.processes.len()
    }

    /// Has a sleeper woken at a moment of its process. `None` if it has come, or never comes.
    pub(super) fn sleep(&mut self, process: usize, until: Moment, waker: &Waker) -> Option<Place> {
        let group = &self.processes[process];
        let at = group.clock.when(until)?;
        if group.is_dead || at <= self.now {
            return None;
        }
        let waker = waker.clone();
        Some(self.alarms.add(at, Alarm::Sleeper { process, waker }))
    }

    /// Replaces the waker of a sleeper. The old one is for the caller to drop.
    pub(super) fn sleep_on(&mut self, place: Place, new: &Waker) -> Option<Waker> {
        match self.alarms.get_mut(place) {
            Some(Alarm::Sleeper { waker, .. }) if !waker.will_wake(new) => {
                Some(std::mem::replace(waker, new.clone()))
            }
            _ => None,
        }
    }

    /// Takes a sleeper out. The alarm is for the caller to drop.
    pub(super) fn sleep_no_more(&mut self, place: Place) -> Option<Alarm> {
        self.alarms.remove(place)
    }

    pub(super) fn counts(&self, process: usize) -> Counts {
        let group = &self.processes[process];
        Counts {
            tasks: group.tasks,
            sleepers: self.alarms.sleepers(Some(process)),
            polls: group.polls,
        }
    }

    pub(super) fn all_counts(&self) -> Counts {
        Counts {
            tasks: self.processes.iter().map(|group| group.tasks).sum(),
            sleepers: self.alarms.sleepers(None),
            polls: self.processes.iter().map(|group| group.polls).sum(),
        }
    }

    /// Counts a delivery by the task that is polled.
    pub(super) fn delivered(&mut self) {
        self.ready.delivered(self.running);
    }

    /// Notes that the task that is polled has told something.
    pub(super) fn told(&mut self, line: Option<(Option<Arc<str>>, String)>) {
        let slot = self.running.map(|number| self.slots[number].process);
        let process = slot.map_or(NONE, |process| process as u64);
        let task = self.running.map_or(NONE, |number| number as u64);
        self.trace.fold(Event::Told, process, task, self.now);
        if let Some((who, what)) = line {
            let process = || slot.map(|process| Arc::clone(&self.processes[process].name));
            let who = who.or_else(process).unwrap_or_else(|| Arc::from("world"));
            self.trace.keep(self.now, &who, what);
        }
    }

    fn happened(&mut self, event: Event, process: usize, line: &'static str) {
        self.fold(event, process, NONE);
        let name = &self.processes[process].name;
        self.trace.keep(self.now, name, line);
    }

    fn fold(&mut self, event: Event, process: usize, task: u64) {
        self.trace.fold(event, process as u64, task, self.now);
    }
}
