use std::time::{Duration, SystemTime};

use lock_core::ResourceName;

use super::{
    Memory, MemorySession, State,
    tables::{Changes, Place, Slot},
};
use crate::{
    FenceError,
    jobs::{JobRows, SlotState, Standing, Undone, is_time},
};

impl JobRows<Self> for Memory {
    async fn look(
        session: &mut MemorySession,
        place: (&str, &str),
    ) -> Result<SlotState, FenceError> {
        let now = session.now();
        session.looking(|changes, state| {
            let place = owned(place);
            let slot = changes.slot(&state.tables, &place);
            let is_forgotten =
                is_time(&place.1) && *changes.below(&state.tables, &place.0) > *place.1;
            state_of(slot, is_forgotten, now)
        })
    }

    async fn run(
        session: &mut MemorySession,
        place: (&str, &str),
    ) -> Result<SlotState, FenceError> {
        let state = Self::look(session, place).await?;
        if state.standing == Standing::Due {
            let now = session.now();
            let token = session.looking(|_, state| {
                let resource = ResourceName::new(format!("job:{}", place.0)).ok()?;
                state.rules.mark(&resource).map(crate::HighWater::token)
            })?;
            session.change(place, |slot| {
                slot.done = token.map(|token| (token, now));
                slot.retry_at = None;
            })?;
        }
        Ok(state)
    }

    async fn save(
        session: &mut MemorySession,
        place: (&str, &str),
        steps: i64,
        progress: &str,
    ) -> Result<(), FenceError> {
        session.change(place, |slot| {
            slot.steps = u64::try_from(steps).unwrap_or(0);
            slot.progress = Some(progress.to_owned());
        })
    }

    async fn fail(
        session: &mut MemorySession,
        place: (&str, &str),
        error: &str,
        retry_in_ms: i64,
    ) -> Result<(), FenceError> {
        let pause = Duration::from_millis(u64::try_from(retry_in_ms).unwrap_or(0));
        let retry_at = session.now() + pause;
        session.change(place, |slot| {
            slot.attempts += 1;
            slot.last_error = Some(error.to_owned());
            slot.retry_at = Some(retry_at);
        })
    }

    async fn newest(session: &mut MemorySession, job: &str) -> Result<String, FenceError> {
        session.looking(|changes, state| {
            let done = times(changes, state, job).filter(|(_, slot)| slot.done.is_some());
            let newest = done.map(|(time, _)| time).max().unwrap_or_default();
            newest.max(changes.below(&state.tables, job).to_owned())
        })
    }

    async fn list(
        session: &mut MemorySession,
        after: (&str, &str),
        count: i64,
    ) -> Result<Vec<(String, String, SlotState)>, FenceError> {
        let (now, count) = (session.now(), usize::try_from(count).unwrap_or(0));
        session.looking(|changes, state| {
            let slots = changes.slots(&state.tables).into_iter();
            let is_next = |place: &Place| after == ("", "") || *place > owned(after);
            let next = slots.filter(|(place, _)| is_next(place)).take(count);
            next.map(|((job, slot), row)| (job, slot, state_of(Some(&row), false, now)))
                .collect()
        })
    }

    async fn retry(session: &mut MemorySession, place: (&str, &str)) -> Result<bool, FenceError> {
        let is_known = session.looking(|changes, state| {
            let slot = changes.slot(&state.tables, &owned(place));
            slot.is_some_and(|slot| slot.done.is_none())
        })?;
        if is_known {
            session.change(place, |slot| {
                slot.attempts = 0;
                slot.retry_at = None;
            })?;
        }
        Ok(is_known)
    }

    async fn forget(session: &mut MemorySession, place: (&str, &str)) -> Result<bool, FenceError> {
        let place = owned(place);
        let is_known =
            session.looking(|changes, state| changes.slot(&state.tables, &place).is_some())?;
        session.writing(|changes, _| drop(changes.slots.insert(place, None)))?;
        Ok(is_known)
    }

    async fn forget_below(
        session: &mut MemorySession,
        (job, slot): (&str, &str),
        undone: Undone,
    ) -> Result<String, FenceError> {
        let (below, forgotten) = session.looking(|changes, state| {
            let times: Vec<_> = times(changes, state, job).collect();
            let below = match undone {
                Undone::Kept => {
                    let first_undone = times.iter().find(|(_, slot)| slot.done.is_none());
                    let newest_done = times.iter().rfind(|(_, slot)| slot.done.is_some());
                    let text = |(time, _): &(String, Slot)| time.clone();
                    let least = first_undone.map_or_else(|| slot.to_owned(), text);
                    let newest_done = newest_done.map_or_else(String::new, text);
                    least.min(newest_done).min(slot.to_owned())
                }
                Undone::GivenUp => slot.to_owned(),
            };
            let below = below.max(changes.below(&state.tables, job).to_owned());
            let forgotten = times.into_iter().map(|(time, _)| time);
            let forgotten: Vec<_> = forgotten.filter(|time| *time < below).collect();
            (below, forgotten)
        })?;
        if !below.is_empty() {
            session.writing(|changes, _| {
                changes.forgotten.insert(job.to_owned(), below.clone());
                for time in forgotten {
                    changes.slots.insert((job.to_owned(), time), None);
                }
            })?;
        }
        Ok(below)
    }
}

impl MemorySession {
    /// Since 1970, by the clock of the store.
    fn now(&self) -> Duration {
        self.memory.shared.runtime.unix_time()
    }

    /// Changes a slot that is not done. Adds the slot if the store does not know it.
    fn change(
        &mut self,
        place: (&str, &str),
        change: impl FnOnce(&mut Slot),
    ) -> Result<(), FenceError> {
        let place = owned(place);
        let slot = self.looking(|changes, state| changes.slot(&state.tables, &place).cloned())?;
        let mut slot = slot.unwrap_or_default();
        if slot.done.is_none() {
            change(&mut slot);
        }
        self.writing(|changes, _| drop(changes.slots.insert(place, Some(slot))))
    }
}

/// The slots of a job that are times, in their order.
fn times(changes: &Changes, state: &State, job: &str) -> impl Iterator<Item = (String, Slot)> {
    let slots = changes.slots(&state.tables).into_iter();
    slots
        .filter(move |((of, time), _)| *of == *job && is_time(time))
        .map(|((_, time), slot)| (time, slot))
}

fn state_of(slot: Option<&Slot>, is_forgotten: bool, now: Duration) -> SlotState {
    let known = slot.cloned().unwrap_or_default();
    let left = known.retry_at.map(|at| at.saturating_sub(now));
    let standing = match (known.done, left) {
        (Some((token, at)), _) => Standing::Done {
            token,
            at: SystemTime::UNIX_EPOCH + at,
        },
        _ if is_forgotten => Standing::Forgotten,
        (None, Some(left)) if !left.is_zero() => Standing::BackingOff(left),
        (None, _) => Standing::Due,
    };
    SlotState {
        standing,
        steps: known.steps,
        progress: known.progress,
        attempts: known.attempts,
        last_error: known.last_error,
    }
}

fn owned((job, slot): (&str, &str)) -> Place {
    (job.to_owned(), slot.to_owned())
}
