//! The time for which a lock service that does not answer is asked, and the pauses between the
//! requests. No other file has such bounds.

use std::{
    cmp::{max, min},
    time::Duration,
};

use super::{Request, Sharing, Terms};
use crate::{AttemptId, Error, ErrorKind, Moment, Outcome, Runtime, Wait};

/// If this many grants in a row arrive after the end of their own leases, the caller gets the error
/// that its ttl is too short. A single late grant may be an accident.
pub(super) const LATE_GRANTS_MAX: u32 = 2;

/// How long a lock service that does not answer is asked.
///
/// Until these moments, copies of a request are sent and the answer to the last copy is awaited.
/// "The last answer" is the last one that the service has given.
///
/// - a look that does not wait: `short` after the last answer;
/// - a look of a bounded wait: the end of the wait, but at most `long` after the last answer. If no
///   request has failed since the last answer, the next answer has at least `grace` to arrive.
///   `grace` is counted from the end of the wait at the latest;
/// - a look of a wait without bound: `long` after the last answer;
/// - a release for a caller: `short` after the first copy, but the answer has `long` to arrive;
/// - a cancel for a caller: `short` after the first copy;
/// - the rest of an attempt whose caller has gone: the ttl after the caller has gone, and at least
///   `shared` after it if others know the holder;
/// - inspect, list, force and a renewal by hand: `short` after the first copy. The answer has no
///   bound but the response timeout.
///
/// If [one request takes](super::Requests::longest_request) longer than `short`, that time is used
/// instead of `short`, but at most `long`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Bounds {
    /// The time in which a new connection is made, or in which a server starts again.
    pub short: Duration,
    /// The time that a failover takes.
    pub long: Duration,
    /// Longer than a message takes around the world and back.
    pub grace: Duration,
    /// The time for which an attempt does without a place in the queue because no wake-up would
    /// arrive.
    pub channel: Duration,
    /// The first pause. Each pause is twice as long as the one before.
    pub pause: Duration,
    /// The longest pause while a caller waits.
    pub pause_max: Duration,
    /// The last copy is sent this time before the end.
    pub last: Duration,
    /// The bounds of the longest pause after the caller has gone. A service that is in trouble must
    /// not be asked every second by ever more attempts.
    pub background_pause: (Duration, Duration),
    /// The least time for which requests to give back the rest of an attempt are repeated, if
    /// others know the holder. The ttl of the others may be longer.
    pub shared: Duration,
}

impl Bounds {
    /// The bounds of every lock service.
    pub const USUAL: Self = Self {
        short: Duration::from_secs(2),
        long: Duration::from_secs(10),
        grace: Duration::from_millis(500),
        channel: Duration::from_secs(1),
        pause: Duration::from_millis(20),
        pause_max: Duration::from_millis(500),
        last: Duration::from_millis(20),
        background_pause: (Duration::from_secs(1), Duration::from_secs(5)),
        shared: Duration::from_secs(60),
    };
}

/// After the caller has gone, the longest pause is this part of the whole time.
const BACKGROUND_PART: u32 = 12;

/// The time since which no request was answered, and the number of requests that have failed since.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Silence {
    pub(super) since: Moment,
    pub(super) failed: u32,
}

impl Silence {
    pub(super) const fn since(since: Moment) -> Self {
        Self { since, failed: 0 }
    }
}

/// The step after a request that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Again {
    /// The request is sent again.
    At(Moment),
    /// The request is not sent again, and the caller gets the error.
    Not(Moment),
}

impl Terms {
    /// The moment until which copies of a request are sent.
    fn asks_until(&self, request: Request, silence: Silence) -> Moment {
        let Bounds { short, long, .. } = *self.bounds;
        let short = max(short, min(self.longest_request, long));
        match (request, self.wait) {
            (Request::Release { .. } | Request::Cancel, _) | (_, Wait::Never) => {
                silence.since + short
            }
            (_, Wait::Until(end)) => min(end, silence.since + long),
            (_, Wait::Forever) => silence.since + long,
        }
    }

    /// The moment until which an attempt waits although the task that looks for it has no answer.
    pub(super) fn silent_until(&self, silence: Silence) -> Moment {
        self.asks_until(Request::Look { queue: true }, silence)
    }

    /// The moment until which the answer to a request that is sent now is waited for.
    pub(super) fn answer_by(&self, request: Request, silence: Silence, now: Moment) -> Moment {
        let Bounds { long, grace, .. } = *self.bounds;
        match (request, self.wait) {
            // A service of several nodes may need longer for its answer than copies are sent.
            (Request::Release { .. }, _) => now + long,
            // Once a request has failed, nothing shows that the service answers at all.
            (_, Wait::Until(end)) if silence.failed == 0 => {
                let most = match request {
                    Request::Cancel => self.asks_until(request, silence),
                    _ => silence.since + long,
                };
                // A request that follows another at the end of the wait gets no time of its own.
                min(max(end, min(now, end) + grace), most)
            }
            _ => self.asks_until(request, silence),
        }
    }

    /// The step after a request that failed just now.
    pub(super) fn again(&mut self, request: Request, silence: Silence, now: Moment) -> Again {
        let until = self.asks_until(request, silence);
        let waits = matches!(request, Request::Look { .. }) && self.wait != Wait::Never;
        let polls = matches!(request, Request::Look { .. }) && self.polls.is_some();
        match polls.then(|| self.next_poll()) {
            Some(Some(pause)) if waits && now < until => Again::At(min(now + pause, until)),
            Some(_) => Again::Not(now),
            None => {
                let dice = self.dice(silence.failed);
                self.bounds.again(until, waits, silence.failed, dice, now)
            }
        }
    }

    /// The next pause of the policy, if there is one.
    pub(super) fn next_poll(&mut self) -> Option<Duration> {
        let taken = self.polls.as_ref()?.taken();
        let dice = f64::from(self.dice(taken)) / 256.0;
        self.polls.as_mut()?.draw(dice)
    }

    /// From 0 to 256.
    fn dice(&self, number: u32) -> u32 {
        let mixed = (self.spread ^ u64::from(number)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        u32::from(mixed.to_be_bytes()[0]) + u32::from(mixed != 0)
    }
}

impl Bounds {
    /// The step after a request that failed just now, as the `failed`th in a row. A request that
    /// does not wait for others is sent again at once: usually only the connection is gone.
    fn again(&self, until: Moment, waits: bool, failed: u32, dice: u32, now: Moment) -> Again {
        let first_pause = if waits { 1 } else { 2 };
        if failed < first_pause && now < until {
            return Again::At(now);
        }
        let last = now + until.since(now).saturating_sub(self.last);
        if now >= last {
            return Again::Not(until);
        }
        let doubled = 1_u32.checked_shl(failed.saturating_sub(first_pause));
        let whole = self.pause.saturating_mul(doubled.unwrap_or(u32::MAX));
        let whole = min(whole, self.pause_max);
        // Anything from half of the pause to the whole pause.
        let pause = whole / 2 + (whole / 2 / 256) * dice;
        Again::At(min(now + pause, last))
    }
}

/// The time for which requests to give back the rest of an attempt are repeated after its caller
/// has gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Background {
    pub(super) until: Moment,
    longest: Duration,
    failed: u32,
}

impl Background {
    pub(super) fn begin(terms: &Terms, now: Moment) -> Self {
        let time = match terms.sharing {
            Sharing::Alone => terms.ttl,
            Sharing::Repeated | Sharing::Holds => max(terms.ttl, terms.bounds.shared),
        };
        let (least, most) = terms.bounds.background_pause;
        Self {
            until: now + time,
            longest: (time / BACKGROUND_PART).clamp(least, most),
            failed: 0,
        }
    }

    /// The moment at which a request that failed just now is sent again. These moments need not be
    /// spread, because each attempt begins when its own caller has gone.
    pub(super) fn again(&mut self, terms: &Terms, now: Moment) -> Option<Moment> {
        let doubled = 1_u32.checked_shl(self.failed).unwrap_or(u32::MAX);
        self.failed = self.failed.saturating_add(1);
        let pause = terms.bounds.pause.saturating_mul(doubled);
        let again = now + min(pause, self.longest);
        (again < self.until).then_some(again)
    }
}

/// Sends a request that belongs to no acquisition. Repeats it for a moment while there is no
/// answer, because a client notices only when it sends something that an idle connection was
/// closed.
///
/// For requests that may be sent twice.
///
/// # Errors
/// The error of the last copy. Its outcome is unknown if the outcome of any copy is unknown.
///
/// # Cancel safety
/// That of the request.
pub async fn repeat<T, F>(runtime: &dyn Runtime, send: impl Fn() -> F) -> Result<T, Error>
where
    F: Future<Output = Result<T, Error>>,
{
    let until = runtime.now() + Bounds::USUAL.short;
    let dice = u32::from(AttemptId::draw(runtime).spread().to_be_bytes()[0]);
    let (mut failed, mut is_unknown) = (0_u32, false);
    loop {
        let error = match send().await {
            Ok(answer) => return Ok(answer),
            Err(error) => error,
        };
        is_unknown |= error.outcome() == Outcome::Unknown;
        failed = failed.saturating_add(1);
        let now = runtime.now();
        let again = match error.kind() {
            ErrorKind::Unavailable => Bounds::USUAL.again(until, false, failed, dice, now),
            _ => Again::Not(now),
        };
        let (Again::At(moment) | Again::Not(moment)) = again;
        if moment > now {
            runtime.sleep_until(moment).await;
        }
        if let Again::Not(_) = again {
            return Err(match is_unknown {
                true => error.outcome_unknown(),
                false => error,
            });
        }
    }
}
