//! Values relative to the origin, and the names of states. The model checker needs both besides the
//! decisions.
//!
//! Two states of a model that differ only in the time since the origin, or in the tokens that were
//! drawn before, are one state. So the model stops its clock and its counter, and moves everything
//! else towards the origin.

use std::{cmp::max, time::Duration};

use super::{
    Acquisition, Request, Wake,
    state::{Phase, Then},
};
use crate::{FencingToken, Grant, Lease, Moment, Wait};

/// How far the origin moves.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "the models build it")]
pub struct Rebase {
    /// The time by which moments move.
    pub time: Duration,
    /// The number by which tokens move. The state has no token of this number or below.
    pub tokens: u64,
    /// The present moment. A lease that ended earlier counts as one that ends now.
    pub now: Moment,
}

impl Rebase {
    /// The same moment after the move. A moment before the origin becomes the origin.
    #[must_use]
    pub fn moment(self, moment: Moment) -> Moment {
        match moment {
            Moment::NEVER => moment,
            moment => Moment::from_origin(moment.since_origin().saturating_sub(self.time)),
        }
    }

    /// The same grant.
    #[must_use]
    pub fn grant(self, mut grant: Grant) -> Grant {
        let deadline = max(self.moment(grant.lease.deadline()), self.now);
        let token = grant.token.get().saturating_sub(self.tokens);
        grant.token = FencingToken::new(token).unwrap_or(FencingToken::MIN);
        grant.lease = Lease::counted_from(deadline, Duration::ZERO);
        grant
    }

    /// The same wake-up.
    #[must_use]
    pub fn wake(self, wake: Wake) -> Wake {
        match wake {
            Wake::Offered(grant) => Wake::Offered(self.grant(grant)),
            Wake::Granted(grant) => Wake::Granted(self.grant(grant)),
            Wake::Silent(since) => Wake::Silent(self.moment(since)),
            Wake::Look | Wake::Heard => wake,
        }
    }

    fn request(self, request: Request) -> Request {
        match request {
            Request::Confirm(offer) => Request::Confirm(self.grant(offer)),
            request => request,
        }
    }
}

impl Acquisition {
    /// Moves the origin.
    #[doc(hidden)]
    pub fn rebase(&mut self, by: Rebase) {
        if let Wait::Until(end) = &mut self.terms.wait {
            *end = max(by.moment(*end), by.now);
        }
        self.until = by.moment(self.until);
        match &mut self.phase {
            Phase::Asking { request, .. } | Phase::Pausing { request, .. } => {
                *request = by.request(*request)
            }
            _ => {}
        }
        if let Some(silence) = &mut self.silence {
            silence.since = by.moment(silence.since);
        }
        self.notice = self.notice.map(|wake| by.wake(wake));
        if let Some(background) = &mut self.background {
            background.until = by.moment(background.until);
        }
    }

    /// The token of the offer that is being confirmed, or that was noted.
    #[doc(hidden)]
    #[must_use]
    pub const fn tokens(&self) -> [Option<FencingToken>; 2] {
        let confirmed = match self.phase {
            Phase::Asking {
                request: Request::Confirm(offer),
                ..
            } => Some(offer.token),
            _ => None,
        };
        let noted = match self.notice {
            Some(Wake::Offered(grant) | Wake::Granted(grant)) => Some(grant.token),
            _ => None,
        };
        [confirmed, noted]
    }

    /// The name of the state, for the table in `tests/models/acquisition.md`.
    #[doc(hidden)]
    #[must_use]
    pub const fn state(&self) -> &'static str {
        match self.phase {
            Phase::New => "New",
            Phase::Asking { request, then } => match (request, then) {
                (Request::Look { .. }, _) => "Asking: look",
                (Request::Confirm(_), _) => "Asking: confirm",
                (Request::Release { .. }, _) => "Asking: release",
                (Request::Cancel, Then::Clean) => "Asking: cancel",
                (Request::Cancel, _) => "Asking: cancel, then answer",
            },
            Phase::Resting => "Resting",
            Phase::Pausing { last: true, .. } => "Pausing: last",
            Phase::Pausing { .. } => "Pausing",
            Phase::Holding => "Holding",
            Phase::Releasing => "Releasing",
            Phase::Ended => "Ended",
        }
    }
}
