//! G5 and G6: a client's belief about its lease is compared with the state of the lock service.

use std::{collections::BTreeMap, time::Duration};

use lock_core::backend::Moment;

use super::{
    Finding, Promised,
    act::{Act, WorkId},
};
use crate::{
    plan::Task,
    service::{Change, Event, HowEnded},
};

/// The leases that the lock service has granted, by resource and token.
#[derive(Debug, Default)]
pub(crate) struct Leases {
    known: BTreeMap<(String, u64), Known>,
    /// The pieces of work whose leases may be shared.
    sharing: BTreeMap<WorkId, Task>,
    /// Works that have waited for their lease.
    pub(crate) takeovers: u64,
}

#[derive(Clone, Copy, Debug)]
struct Known {
    until: Moment,
    ended: Option<HowEnded>,
    /// The piece of work that shares the lease.
    sharing: Option<Task>,
}

impl Leases {
    pub(super) fn act(&mut self, promised: Promised, at: Moment, act: &Act) -> Finding {
        match act {
            Act::Begins { work, task, .. } if matches!(task, Task::Owner | Task::Given) => {
                self.sharing.insert(*work, *task);
            }
            Act::Holds {
                resource,
                token,
                left: Duration::ZERO,
                ..
            } => {
                let what = format!("{resource} is returned with {token}, and has ended");
                return Some(("whole-lease", what));
            }
            Act::Holds {
                work,
                resource,
                token,
                ..
            } => {
                if let Some(known) = self.known.get_mut(&(resource.clone(), *token)) {
                    known.sharing = self.sharing.get(work).copied();
                }
            }
            _ => {}
        }
        if !promised.leases {
            return None;
        }
        match act {
            Act::Holds {
                resource,
                token,
                left,
                ..
            }
            | Act::StillHolds {
                resource,
                token,
                left,
            } => self.is_within(at, resource, *token, *left),
            Act::Released {
                resource,
                token,
                was_held: Some(true),
                saw_loss,
                is_shared,
            } => self.is_released(resource, *token, *saw_loss, *is_shared),
            Act::Released {
                resource,
                token,
                was_held: Some(false),
                saw_loss: false,
                is_shared: false,
            } => self.was_gone(resource, *token),
            _ => None,
        }
    }

    /// A client never counts a lease as held for longer than the lock service does.
    fn is_within(&self, at: Moment, resource: &str, token: u64, left: Duration) -> Finding {
        let key = (resource.to_owned(), token);
        let Some(known) = self.known.get(&key) else {
            let what = format!("{resource} is held with {token}, which was never granted");
            return Some(("compare-then-act", what));
        };
        if let Some(HowEnded::Released | HowEnded::LastHold | HowEnded::Cancelled) = known.ended {
            let what = format!("{resource} is held with {token}, and was {:?}", known.ended);
            let promise = match known.sharing {
                Some(Task::Owner) => "owner-holds",
                Some(_) => "guard-drop",
                None => "compare-then-act",
            };
            return Some((promise, what));
        }
        (at + left > known.until).then(|| {
            let what = format!(
                "{resource} is held with {token} until {:?}, but it ends at {:?}",
                (at + left).since_origin(),
                known.until.since_origin()
            );
            ("deadline", what)
        })
    }

    /// After a release the lease has ended. If the client knew of its loss, it has ended by that
    /// release.
    fn is_released(&self, resource: &str, token: u64, saw_loss: bool, is_shared: bool) -> Finding {
        let known = self.known.get(&(resource.to_owned(), token))?;
        let is_released = matches!(
            known.ended,
            Some(HowEnded::Released | HowEnded::LastHold | HowEnded::Cancelled)
        );
        if saw_loss && !is_released && !is_shared {
            let what = format!("{resource} was lost with {token}, and its release says otherwise");
            return Some(("no-false-release", what));
        }
        (known.ended.is_none() && !is_shared).then(|| {
            let what = format!("{resource} was released with {token}, and is still held");
            ("compare-then-act", what)
        })
    }

    /// A release that finds nothing has ended nothing, not even by a copy whose answer was lost.
    fn was_gone(&self, resource: &str, token: u64) -> Finding {
        let known = self.known.get(&(resource.to_owned(), token))?;
        (known.ended == Some(HowEnded::Released)).then(|| {
            let what =
                format!("the release of {resource} with {token} has ended it, and denies it");
            ("no-false-release", what)
        })
    }

    pub(super) fn served(&mut self, event: &Event) {
        let Event::Changed(effect) = event else {
            return;
        };
        let key =
            |token: lock_core::FencingToken| (effect.resource.as_str().to_owned(), token.get());
        match effect.change {
            Change::Granted { token, until, .. } => {
                let granted = Known {
                    until,
                    ended: None,
                    sharing: None,
                };
                self.known.insert(key(token), granted);
            }
            Change::Confirmed { token, until } | Change::Renewed { token, until } => {
                if let Some(known) = self.known.get_mut(&key(token)) {
                    known.until = until;
                }
            }
            Change::Ended { token, how } => {
                self.takeovers += u64::from(how == HowEnded::Expired);
                if let Some(known) = self.known.get_mut(&key(token)) {
                    known.ended = Some(how);
                }
            }
            _ => {}
        }
    }

    /// Whether this lease was ended by an operator.
    pub(super) fn was_forced(&self, resource: &str, token: u64) -> bool {
        let known = self.known.get(&(resource.to_owned(), token));
        known.is_some_and(|known| matches!(known.ended, Some(HowEnded::Forced { .. })))
    }
}
