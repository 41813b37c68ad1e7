//! Events in words: each is the rest of a sentence that begins with [`Event::who`].

use std::{fmt, sync::Arc};

use lock_core::{ResourceName, backend::AttemptId};

use super::observe::{Change, Effect, Event, Fault, HowEnded, Kind, MessageId, Sent, Way};
use crate::short::{at, ms, token as short};

impl Event {
    /// The subject of the sentence: a client, or the service.
    #[must_use]
    pub fn who(&self) -> Arc<str> {
        match self {
            Self::Sent(Sent { message, .. }) | Self::Answered(message) => {
                format!("client {}", message.client).into()
            }
            Self::Pushed { client, .. } => format!("client {client}").into(),
            _ => "lock service".into(),
        }
    }

    /// The resource whose lease has run out.
    pub(crate) fn ran_out(&self) -> Option<&ResourceName> {
        let Self::Changed(effect) = self else {
            return None;
        };
        let how = HowEnded::Expired;
        matches!(effect.change, Change::Ended { how: ended, .. } if ended == how)
            .then_some(&effect.resource)
    }

    /// The attempt with which the sentence ends.
    pub(crate) const fn attempt(&self) -> Option<AttemptId> {
        match self {
            Self::Changed(effect) => effect.change.attempt(),
            _ => None,
        }
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sent(sent) => write!(f, "{sent}"),
            Self::Arrived { message, copy } => {
                let copy = if *copy { "a copy of " } else { "" };
                write!(f, "reads {copy}{message}")
            }
            Self::Buried { by, .. } => write!(f, "has a tombstone for {by}"),
            Self::Lifted(message) => write!(f, "lifts its counter for {message}"),
            Self::Refused(message) => write!(f, "is down for {message}"),
            Self::Answered(message) => write!(f, "gets the answer to request {}", message.number),
            Self::Pushed { token, .. } => match token {
                Some(token) => write!(f, "gets a push with token {}", short(token.get())),
                None => f.write_str("gets a push, and has to look"),
            },
            Self::Changed(effect) => write!(f, "{effect}"),
            Self::Fault(fault) => write!(f, "{fault}"),
        }
    }
}

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "request {} of client {}", self.number, self.client)
    }
}

impl fmt::Display for Sent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sends request {}: {}", self.message.number, self.kind)?;
        match &self.resource {
            Some(resource) => write!(f, " {resource}"),
            None => f.write_str(" all"),
        }
    }
}

/// In one or two words, which the resource follows.
impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Look { queue: true } => "look and queue at",
            Self::Look { queue: false } => "look at",
            Self::Confirm => "confirm",
            Self::Cancel => "cancel",
            Self::Renew => "renew",
            Self::Release => "release",
            Self::ReleaseHold => "release a hold of",
            Self::ForceRelease => "release by force",
            Self::Inspect => "inspect",
            Self::List => "list",
            Self::Together => "look at several from",
        })
    }
}

impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let resource = &self.resource;
        match self.change {
            Change::Granted {
                token, until, way, ..
            } => {
                let (token, until) = (short(token.get()), at(until));
                write!(
                    f,
                    "grants {resource} under token {token} until {until}, {way}, to"
                )?;
            }
            Change::Joined { token, .. } => {
                write!(f, "adds to {resource} under token {}", short(token.get()))?;
            }
            Change::Confirmed { token, until } => {
                let (token, until) = (short(token.get()), at(until));
                write!(f, "confirms {resource} under token {token} until {until}")?;
            }
            Change::Renewed { token, until } => {
                let (token, until) = (short(token.get()), at(until));
                write!(f, "renews {resource} under token {token} until {until}")?;
            }
            Change::HoldEnded { token, .. } => {
                let token = short(token.get());
                write!(f, "keeps {resource} under token {token}, without")?;
            }
            Change::Ended { token, how } => {
                write!(
                    f,
                    "ends {resource} under token {}: {how}",
                    short(token.get())
                )?;
            }
            Change::Queued { .. } => write!(f, "has a place for {resource} for")?,
            Change::Unqueued { .. } => write!(f, "has no place for {resource} any more for")?,
        }
        match self.change.attempt() {
            Some(attempt) => write!(f, " attempt {:.4}", attempt.to_string()),
            None => Ok(()),
        }
    }
}

impl Change {
    const fn attempt(self) -> Option<AttemptId> {
        match self {
            Self::Granted { attempt, .. }
            | Self::Joined { attempt, .. }
            | Self::HoldEnded { attempt, .. }
            | Self::Queued { attempt }
            | Self::Unqueued { attempt } => Some(attempt),
            Self::Confirmed { .. } | Self::Renewed { .. } | Self::Ended { .. } => None,
        }
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Answer => "by an answer",
            Self::Push => "by a push",
            Self::Offer => "by an offer",
        })
    }
}

impl fmt::Display for HowEnded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Released => f.write_str("released"),
            Self::LastHold => f.write_str("its last hold was given back"),
            Self::Cancelled => f.write_str("cancelled"),
            Self::Expired => f.write_str("it has run out"),
            Self::OfferExpired => f.write_str("the offer has run out"),
            Self::Forced { revocation } => {
                write!(f, "by force, with token {}", short(revocation.get()))
            }
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::QueueLost => f.write_str("has lost its queues"),
            Self::EverythingLost => f.write_str("comes back empty"),
            Self::FailedOver => f.write_str("goes on from an older copy"),
            Self::Paused(until) => write!(f, "answers nothing until {}", at(*until)),
            Self::Down(true) => f.write_str("is down"),
            Self::Down(false) => f.write_str("is up"),
            Self::ClockForward(by) => write!(f, "sets its clock forward by {}", ms(*by)),
            Self::ClockBack(by) => write!(f, "sets its clock back by {}", ms(*by)),
        }
    }
}
