use tracing::{
    Span, debug, debug_span,
    field::{Empty, debug as debug_value},
};

use super::{Inner, LeaseGuard, granted::Granted};
use crate::{Attempt, Error, ErrorKind, Moment, ResourceName};

/// An acquisition under way, for counting and tracing.
pub(super) struct Observed<'a> {
    locks: &'a Inner,
    since: Moment,
    waits: bool,
    span: Span,
}

impl<'a> Observed<'a> {
    /// `waits` says whether the acquisition may be in the queue for some time.
    pub(super) fn begin(locks: &'a Inner, waits: bool, span: Span) -> Self {
        if waits {
            locks.meter.waiting.up();
        }
        let since = locks.clock.now();
        Self {
            locks,
            since,
            waits,
            span,
        }
    }

    /// Counts the result. An acquisition that is dropped earlier counts as nothing.
    pub(super) fn end(self, answer: &Result<Attempt<Granted>, Error>) {
        let (meter, waited) = (&self.locks.meter, self.locks.clock.now().since(self.since));
        match answer {
            Ok(Attempt::Granted(granted)) => {
                meter.grants.add(1);
                meter.waits.record(waited);
                if granted.grant.waited {
                    meter.handoffs.add(1);
                }
                if !self.span.is_disabled() {
                    let holder = granted.attempt.holder.fingerprint();
                    self.span.record("holder", holder);
                    self.span.record("token", granted.grant.token.get());
                    self.span.record("waited", debug_value(waited));
                }
                debug!("granted");
            }
            Ok(Attempt::Held { retry_after }) => {
                meter.timeouts.add(1);
                debug!(?retry_after, "held by another");
            }
            Err(error) if error.kind() == ErrorKind::QueueFull => {
                meter.timeouts.add(1);
                debug!(%error, "turned away");
            }
            Err(error) => {
                meter.failures.add(1);
                debug!(%error, "not acquired");
            }
        }
    }

    /// The same for several resources: each of them is a grant.
    pub(super) fn end_several(self, answer: &Result<Attempt<Vec<LeaseGuard>>, Error>) {
        let (meter, waited) = (&self.locks.meter, self.locks.clock.now().since(self.since));
        match answer {
            Ok(Attempt::Granted(guards)) => {
                meter.grants.add(guards.len() as u64);
                meter.waits.record(waited);
                debug!("granted");
            }
            Ok(Attempt::Held { retry_after }) => {
                meter.timeouts.add(1);
                debug!(?retry_after, "one of them is held by another");
            }
            Err(error) => {
                meter.failures.add(1);
                debug!(%error, "not acquired");
            }
        }
    }
}

impl Drop for Observed<'_> {
    fn drop(&mut self) {
        if self.waits {
            self.locks.meter.waiting.down();
        }
    }
}

/// The span of an acquisition. Holder and token are filled in when it is granted.
pub(super) fn span(resource: &ResourceName, backend: &'static str) -> Span {
    debug_span!(
        "acquire",
        resource = resource.as_str(),
        backend,
        holder = Empty,
        token = Empty,
        waited = Empty,
    )
}
