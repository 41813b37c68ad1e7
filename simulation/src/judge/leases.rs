//! G5 and G6: what a client believes of its lease, beside what the lock service knows.

use std::{collections::BTreeMap, time::Duration};

use lock_core::backend::{AttemptId, Moment};

use super::{Finding, Promised, act::Act};
use crate::service::{Change, Effect, Event, HowEnded};

/// The leases that the lock service has granted, by resource and token.
#[derive(Debug, Default)]
pub(crate) struct Leases {
    known: BTreeMap<(String, u64), Known>,
    /// The client of each attempt.
    clients: BTreeMap<AttemptId, u32>,
    /// Works that have waited for their lease.
    pub(crate) takeovers: u64,
}

#[derive(Clone, Copy, Debug)]
struct Known {
    until: Moment,
    ended: Option<HowEnded>,
}

impl Leases {
    pub(super) fn act(&mut self, promised: Promised, at: Moment, act: &Act) -> Finding {
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
            _ => None,
        }
    }

    /// A client never believes in a lease for longer than the lock service does.
    fn is_within(&self, at: Moment, resource: &str, token: u64, left: Duration) -> Finding {
        let key = (resource.to_owned(), token);
        let Some(known) = self.known.get(&key) else {
            let what = format!("{resource} is held with {token}, which was never granted");
            return Some(("compare-then-act", what));
        };
        if let Some(HowEnded::Released | HowEnded::LastHold | HowEnded::Cancelled) = known.ended {
            let what = format!("{resource} is held with {token}, and was {:?}", known.ended);
            return Some(("compare-then-act", what));
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

    pub(super) fn served(&mut self, event: &Event) {
        let Event::Changed(effect) = event else {
            return;
        };
        let key =
            |token: lock_core::FencingToken| (effect.resource.as_str().to_owned(), token.get());
        match effect.change {
            Change::Granted { token, until, .. } => {
                let ended = None;
                self.known.insert(key(token), Known { until, ended });
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
        self.note_client(effect);
    }

    /// The first message that names an attempt comes from its client, because an attempt exists at
    /// the service only by a request of its own.
    fn note_client(&mut self, effect: &Effect) {
        let (Change::Queued { attempt } | Change::Granted { attempt, .. }) = effect.change else {
            return;
        };
        let client = effect.by.client;
        self.clients.entry(attempt).or_insert(client);
    }

    /// The client of an attempt.
    pub(crate) fn client_of(&self, attempt: AttemptId) -> Option<u32> {
        self.clients.get(&attempt).copied()
    }

    /// Whether this lease was ended by an operator.
    pub(super) fn was_forced(&self, resource: &str, token: u64) -> bool {
        let known = self.known.get(&(resource.to_owned(), token));
        known.is_some_and(|known| matches!(known.ended, Some(HowEnded::Forced { .. })))
    }
}
