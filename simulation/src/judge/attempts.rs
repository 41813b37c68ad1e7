//! `replay` and `held-means-nothing-left`: the answers to late requests of an attempt that is over.

use std::collections::BTreeMap;

use lock_core::{FencingToken, ResourceName, backend::AttemptId};

use super::{
    Finding, Promised,
    act::{Act, How, WorkId},
};
use crate::{
    plan::Task,
    service::{Change, Effect, Event, HowEnded, Sent},
};

/// The attempts that the lock service knows, and the pieces of work that were refused.
#[derive(Debug, Default)]
pub(super) struct Attempts {
    known: BTreeMap<AttemptId, Attempt>,
    /// The attempts that have a lease, by its resource and token.
    of_lease: BTreeMap<(ResourceName, FencingToken), Vec<AttemptId>>,
    /// How many requests each client has sent.
    sent: BTreeMap<u32, u64>,
    /// The pieces of work that may ask once: their resources, and the requests before theirs.
    asking: BTreeMap<WorkId, Asking>,
    /// The pieces of work that got the answer that another holder has the lease.
    refused: Vec<Refused>,
}

#[derive(Clone, Copy, Debug)]
struct Attempt {
    client: u32,
    /// The request by which the lock service knows the attempt.
    number: u64,
    was_granted: bool,
    /// How the attempt ended, if it is over: by a release, or by a cancel.
    over: Option<HowEnded>,
}

#[derive(Clone, Debug)]
struct Asking {
    resource: Option<String>,
    from: u64,
}

#[derive(Clone, Debug)]
struct Refused {
    client: u32,
    resource: String,
    requests: std::ops::Range<u64>,
}

impl Attempts {
    /// How many requests a client has sent.
    pub(super) fn sent_by(&self, client: u32) -> u64 {
        self.sent.get(&client).copied().unwrap_or(0)
    }

    /// The client of an attempt.
    pub(super) fn client_of(&self, attempt: AttemptId) -> Option<u32> {
        self.known.get(&attempt).map(|attempt| attempt.client)
    }

    pub(super) fn act(&mut self, client: u32, act: &Act) {
        let from = self.sent_by(client);
        match act {
            // Other kinds of work ask several times, by several attempts.
            Act::Begins {
                work,
                task: Task::Section | Task::Try | Task::Lease,
                ..
            } => {
                let resource = None;
                self.asking.insert(*work, Asking { resource, from });
            }
            Act::Asks { work, resource } => {
                if let Some(asking) = self.asking.get_mut(work) {
                    asking.resource = Some(resource.clone());
                }
            }
            Act::Ends {
                work,
                how: How::Held,
            } => {
                let asking = self.asking.remove(work);
                let refused = asking.and_then(|asking| {
                    Some(Refused {
                        client,
                        resource: asking.resource?,
                        requests: asking.from..from,
                    })
                });
                self.refused.extend(refused);
            }
            _ => {}
        }
    }

    pub(super) fn served(&mut self, promised: Promised, event: &Event) -> Finding {
        match event {
            Event::Sent(Sent { message, .. }) => {
                let sent = self.sent.entry(message.client).or_default();
                *sent = std::cmp::max(*sent, message.number + 1);
                None
            }
            Event::Changed(effect) => {
                let finding = self.changed(effect);
                finding.filter(|_| promised.leases)
            }
            _ => None,
        }
    }

    fn changed(&mut self, effect: &Effect) -> Finding {
        let lease = |token| (effect.resource.clone(), token);
        match effect.change {
            Change::Queued { attempt } => {
                self.note(attempt, effect);
                None
            }
            Change::Granted { token, attempt, .. } | Change::Joined { token, attempt } => {
                self.note(attempt, effect);
                self.of_lease.entry(lease(token)).or_default().push(attempt);
                self.may_be_granted(attempt, effect)
            }
            Change::HoldEnded { attempt, .. } => {
                self.end(attempt, HowEnded::LastHold);
                None
            }
            Change::Ended { token, how } => {
                let is_over = matches!(
                    how,
                    HowEnded::Released | HowEnded::LastHold | HowEnded::Cancelled
                );
                for attempt in self.of_lease.remove(&lease(token)).unwrap_or_default() {
                    if is_over {
                        self.end(attempt, how);
                    }
                }
                None
            }
            _ => None,
        }
    }

    /// The first message that names an attempt comes from its client, because an attempt exists at
    /// the service only by a request of its own.
    fn note(&mut self, attempt: AttemptId, effect: &Effect) {
        self.known.entry(attempt).or_insert(Attempt {
            client: effect.by.client,
            number: effect.by.number,
            was_granted: false,
            over: None,
        });
    }

    fn end(&mut self, attempt: AttemptId, how: HowEnded) {
        if let Some(attempt) = self.known.get_mut(&attempt) {
            attempt.over = Some(how);
        }
    }

    fn may_be_granted(&mut self, id: AttemptId, effect: &Effect) -> Finding {
        let resource = effect.resource.as_str();
        let attempt = self.known.get_mut(&id)?;
        let was_granted = std::mem::replace(&mut attempt.was_granted, true);
        let attempt = *attempt;
        let who = format!("an attempt of client {}", attempt.client);
        match attempt.over {
            Some(HowEnded::Cancelled) => {
                let what = format!("{who} was cancelled, and is granted {resource}");
                return Some(("compare-then-act", what));
            }
            Some(_) => {
                let what = format!("{who} was released, and is granted {resource} again");
                return Some(("replay", what));
            }
            None => {}
        }
        let is_its = |refused: &&Refused| {
            refused.client == attempt.client
                && refused.resource == resource
                && refused.requests.contains(&attempt.number)
        };
        // A lease that was granted before came too late, and is being given back.
        self.refused.iter().filter(|_| !was_granted).find(is_its)?;
        let what = format!("{who} was answered \"held\", and is granted {resource}");
        Some(("held-means-nothing-left", what))
    }
}
