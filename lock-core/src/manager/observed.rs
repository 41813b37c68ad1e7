use tracing::{
    Span, debug, debug_span,
    field::{Empty, debug as debug_value},
};

use super::{Inner, granted::Granted, meter::Meter};
use crate::{Attempt, Error, ErrorKind, Moment, ResourceName, Wait};

/// An acquisition under way, for counting and tracing.
pub(super) struct Observed<'a> {
    locks: &'a Inner,
    since: Moment,
    waits: bool,
    span: Span,
}

impl<'a> Observed<'a> {
    pub(super) fn begin(locks: &'a Inner, wait: Wait, span: Span) -> Self {
        let since = locks.runtime.now();
        let waits = !wait.is_over(since);
        if waits {
            locks.meter.waiting.up();
        }
        Self {
            locks,
            since,
            waits,
            span,
        }
    }

    /// Counts the result. `granted` counts the grants. An acquisition that is dropped earlier is
    /// not counted.
    pub(super) fn end<T>(
        self,
        answer: &Result<Attempt<T>, Error>,
        granted: impl FnOnce(&Meter, &Span, &T),
    ) {
        let meter = &self.locks.meter;
        let waited = || self.locks.runtime.now().since(self.since);
        match answer {
            Ok(Attempt::Granted(grant)) => {
                meter.waits.record(waited);
                granted(meter, &self.span, grant);
                if !self.span.is_disabled() {
                    self.span.record("waited", debug_value(waited()));
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
}

/// Counts and traces the grant of one resource.
pub(super) fn granted(meter: &Meter, span: &Span, granted: &Granted) {
    meter.grants.add(1);
    if granted.grant.waited {
        meter.handoffs.add(1);
    }
    if !span.is_disabled() {
        span.record("holder", granted.pending.attempt.holder.fingerprint());
        span.record("token", granted.grant.token.get());
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
