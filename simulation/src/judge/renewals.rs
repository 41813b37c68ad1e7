//! `guard-renewal` and `guard-partial-outage`: a lease is renewed in time, and while the
//! service does not answer, the client asks it again and again.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use lock_core::backend::Moment;

use super::{
    Finding, Promised,
    act::{Act, WorkId},
};
use crate::service::{Event, Kind, MessageId, Sent};

/// The renewals that clients send.
#[derive(Debug, Default)]
pub(super) struct Renewals {
    /// The latest renewal of each client.
    latest: BTreeMap<u32, Renewal>,
    /// The pieces of work whose lease is renewed.
    renewing: BTreeSet<WorkId>,
    /// When their leases were returned, by client, resource and token.
    held: BTreeMap<(u32, String, u64), Moment>,
    /// The requests that found the service down.
    refused: BTreeSet<MessageId>,
}

#[derive(Clone, Copy, Debug)]
struct Renewal {
    message: MessageId,
    at: Moment,
    is_answered: bool,
}

impl Renewals {
    pub(super) fn act(
        &mut self,
        promised: Promised,
        at: Moment,
        client: u32,
        act: &Act,
    ) -> Finding {
        match act {
            Act::Begins {
                work, renews: true, ..
            } => {
                self.renewing.insert(*work);
                None
            }
            Act::Holds {
                work,
                resource,
                token,
                ..
            } => {
                // A lock service that has lost its state grants a token again.
                let lease = (client, resource.clone(), *token);
                match self.renewing.contains(work) {
                    true => self.held.insert(lease, at),
                    false => self.held.remove(&lease),
                };
                None
            }
            Act::StillHolds {
                resource, token, ..
            } if promised.watchdog => {
                let held = self.held.get(&(client, resource.clone(), *token))?;
                self.is_renewed(*held, at, client, promised.ttl)
            }
            _ => None,
        }
    }

    fn is_renewed(&self, held: Moment, at: Moment, client: u32, ttl: Duration) -> Finding {
        let latest = self.latest.get(&client);
        let latest = latest.filter(|renewal| renewal.at >= held);
        let pause = at.since(latest.map_or(held, |renewal| renewal.at));
        // More than a third, because a renewal without an answer is repeated half way to the
        // deadline.
        if pause <= ttl / 2 {
            return None;
        }
        let (promise, what) = match latest {
            Some(Renewal {
                message,
                is_answered: false,
                ..
            }) => (
                "guard-partial-outage",
                format!("{message} is the last for {pause:?}, and has no answer"),
            ),
            _ => (
                "guard-renewal",
                format!("nothing is renewed for {pause:?}, with leases of {ttl:?}"),
            ),
        };
        Some((promise, what))
    }

    pub(super) fn served(&mut self, at: Moment, event: &Event) {
        match event {
            Event::Sent(Sent {
                message,
                kind: Kind::Renew,
                ..
            }) => {
                let renewal = Renewal {
                    message: *message,
                    at,
                    is_answered: false,
                };
                self.latest.insert(message.client, renewal);
            }
            // A service that is down answers nothing: its machine refuses the connection.
            Event::Refused(message) => drop(self.refused.insert(*message)),
            Event::Answered(message) if !self.refused.contains(message) => self.answered(*message),
            _ => {}
        }
    }

    fn answered(&mut self, message: MessageId) {
        let latest = self.latest.get_mut(&message.client);
        if let Some(renewal) = latest.filter(|renewal| renewal.message == message) {
            renewal.is_answered = true;
        }
    }
}
