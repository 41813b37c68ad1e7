//! The tests that every backend has to pass, ours or yours. Each clause of
//! [`LockBackend`](lock_core::backend::LockBackend)'s contract has named cases.
//!
//! Make a [`RealTime`] of your backend, or write a [`Harness`] if its time can be moved. Then
//! [`conformance_tests!`](crate::conformance_tests) makes the tests:
//!
//! ```
//! use std::sync::Arc;
//!
//! use lock_core::backend::LockService;
//! use lock_testing::conformance::RealTime;
//!
//! # async fn connect_mine() -> LockService { std::future::pending().await }
//! lock_testing::conformance_tests!(mine, RealTime::new(connect_mine().await));
//! # fn main() {}
//! ```
//!
//! This module is NOT under semantic versioning: a patch release may add a case that your backend
//! fails.

#![allow(clippy::missing_panics_doc, reason = "a case fails by panicking")]

mod acquiring;
mod cancelling;
mod floors;
mod holding;
mod holds;
mod operating;
mod options;
mod real_time;
mod together;
mod waiting;
mod waking;

use std::time::{Duration, Instant};

pub use self::{
    acquiring::{
        a_holder_may_acquire_other_resources, deadline_counts_from_request,
        ended_acquisition_stays_ended, exclusion, expiry, order, replay,
    },
    cancelling::{cancel_is_per_attempt, cancel_leaves_nothing, cancelled_at_every_await},
    floors::{floor, implausible_floor, refused_input_leaves_nothing},
    holding::{
        a_renewal_shortens_nothing, inspection_shows_no_secret, release_only_own,
        renew_never_creates,
    },
    holds::{
        a_hold_is_compared, a_renewal_shortens_no_hold, holds_are_given_back_one_by_one,
        holds_are_lost_together,
    },
    operating::{
        an_extension_that_is_not_claimed_is_unsupported, force_release_hands_on,
        force_release_revokes, list_shows_what_is_held,
    },
    options::{metadata_is_shown, queue_limit},
    real_time::RealTime,
    together::{
        together_compares_places, together_is_all_or_none, together_is_cancelled_one_by_one,
        together_is_replayed, together_names_each_once,
    },
    waiting::{
        a_lease_that_was_waited_for_is_not_short, fairness_as_claimed, wait_deadline,
        waits_by_the_present_lease, waits_until_expiry, waits_until_release,
    },
    waking::{
        a_doubled_wake_up_serves_once, an_early_wake_up_serves_no_one,
        an_overheard_wake_up_serves_its_own,
    },
};
use lock_core::{
    Attempt, Error, ErrorKind, Extension, Holder, Inspection, Issuer, ResourceName, Sequencer, Ttl,
    backend::{
        AcquireRequest, AttemptRef, Grant, LockService, Moment, Runtime, TokioRuntime, Wait, repeat,
    },
};

/// A fresh lock service for one case.
///
/// If something has to be shut down after the case, such as a server, do it in `Drop`.
pub trait Harness: Sync {
    /// The backend under test.
    fn backend(&self) -> LockService;

    /// Lets time pass, for the backend, its clock and the lock service.
    fn pass(&self, time: Duration) -> impl Future<Output = ()> + Send;

    /// A ttl whose end a case waits for. It is as short as the service can keep. Defaults to 300
    /// ms.
    fn short(&self) -> Ttl {
        Ttl::millis(300)
    }

    /// A time that is longer than [`short`](Harness::short), with all rounding and the time by
    /// which the service ends a lease too late. Defaults to 320 ms.
    fn past_short(&self) -> Duration {
        Duration::from_millis(320)
    }
}

/// Makes one test for each case: `conformance_tests!(module, harness expression)`. Use
/// `conformance_tests!(module, harness expression, only case case)` for a variant of a service that
/// is already tested, if only these cases can differ.
///
/// The expression may await. It is evaluated once per test. The crate needs `tokio` with `macros`
/// and `rt-multi-thread`.
#[macro_export]
macro_rules! conformance_tests {
    ($module:ident, $harness:expr) => {
        $crate::conformance_tests!(@cases $module, $harness,
            order exclusion replay ended_acquisition_stays_ended
            a_holder_may_acquire_other_resources expiry
            deadline_counts_from_request renew_never_creates a_renewal_shortens_nothing
            release_only_own inspection_shows_no_secret waits_until_release waits_until_expiry
            waits_by_the_present_lease wait_deadline a_lease_that_was_waited_for_is_not_short
            fairness_as_claimed a_doubled_wake_up_serves_once
            an_early_wake_up_serves_no_one an_overheard_wake_up_serves_its_own
            cancel_leaves_nothing cancel_is_per_attempt
            cancelled_at_every_await floor implausible_floor refused_input_leaves_nothing
            an_extension_that_is_not_claimed_is_unsupported metadata_is_shown queue_limit
            holds_are_given_back_one_by_one a_hold_is_compared a_renewal_shortens_no_hold
            holds_are_lost_together force_release_revokes force_release_hands_on
            list_shows_what_is_held together_is_all_or_none together_is_replayed
            together_compares_places together_names_each_once
            together_is_cancelled_one_by_one);
    };
    ($module:ident, $harness:expr, only $($case:ident)+) => {
        $crate::conformance_tests!(@cases $module, $harness, $($case)+);
    };
    (@cases $module:ident, $harness:expr, $($case:ident)+) => {
        mod $module {
            #[allow(unused_imports)]
            use super::*;

            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $case() {
                    $crate::conformance::$case(&$harness).await;
                }
            )+
        }
    };
}

/// Whether a case applies to this backend. Check the list of claims in a test of your own, so that
/// no case is left out unnoticed.
fn claims(backend: &LockService, extension: Extension) -> bool {
    let claimed = backend.capabilities().has(extension);
    if !claimed {
        let kind = backend.kind();
        println!("{kind} does not claim {extension:?}: nothing to check");
    }
    claimed
}

/// The number of tries of a case that looks at a lease of [`Harness::short`] while it lives. Each
/// try has another resource. A try may fail because the machine stalls for that time, and not
/// because of the backend.
const TRIES: usize = 5;
const TOO_SLOW: &str = "each lease ran out before it was looked at: use a longer `Harness::short`";

/// A ttl that outlasts a case.
const LONG: Ttl = Ttl::secs(60);

fn resource(name: &str) -> ResourceName {
    let name = format!("{name}:{:016x}", rand::random::<u64>());
    ResourceName::new(name).expect("a fine name")
}

fn request(resource: &ResourceName, ttl: Ttl) -> AcquireRequest {
    AcquireRequest::new(
        AttemptRef::new(&TokioRuntime, resource.clone(), Holder::random()),
        ttl,
    )
}

fn waiting(resource: &ResourceName, wait: Wait) -> AcquireRequest {
    let mut request = request(resource, LONG);
    request.wait = wait;
    request
}

fn sequencer(request: &AcquireRequest, grant: Grant) -> Sequencer {
    let AttemptRef {
        resource, holder, ..
    } = &request.attempt;
    let issuer = Issuer::new("conformance").expect("a fine name");
    Sequencer::new(issuer, resource.clone(), grant.token, *holder)
}

/// Acquires a resource that is free.
async fn grant(backend: &LockService, request: &AcquireRequest) -> Grant {
    match backend.acquire(request).await {
        Ok(Attempt::Granted(grant)) => grant,
        answer => panic!("it is free, and yet: {answer:?}"),
    }
}

async fn is_held(backend: &LockService, resource: &ResourceName) -> bool {
    inspection(backend, resource).await.holder.is_some()
}

/// Looks at a resource. Repeats the look while there is no answer, as a manager does.
async fn inspection(backend: &LockService, resource: &ResourceName) -> Inspection {
    let inspected = repeat(&*backend.runtime(), || backend.inspect(resource)).await;
    inspected.expect("the service answers")
}

async fn release(backend: &LockService, request: &AcquireRequest, grant: Grant) {
    let lease = sequencer(request, grant);
    let released = repeat(&*backend.runtime(), || backend.release(&lease, true)).await;
    assert_eq!(
        released.expect("the service answers"),
        lock_core::Released::Released
    );
}

/// A time after which a waiter is in the queue and listens.
const SETTLE: Duration = Duration::from_millis(300);

async fn settle(harness: &impl Harness) {
    harness.pass(SETTLE).await;
}

/// Waits until a waiter is in the queue and listens. The number of waiters shows that even on a
/// machine that stalls. Returns whether the backend shows this number.
async fn settle_in_line(
    harness: &impl Harness,
    backend: &LockService,
    resource: &ResourceName,
) -> bool {
    let waiters = async || inspection(backend, resource).await.waiters;
    let started = Instant::now();
    while waiters().await == Some(0) && started.elapsed() < PATIENCE {
        harness.pass(Duration::from_millis(10)).await;
    }
    settle(harness).await;
    waiters().await.is_some()
}

/// The time for which a case waits for something that should happen at once.
const PATIENCE: Duration = Duration::from_secs(10);

/// The grant of a waiter. This has a time limit, because a waiter that is never served would hang.
async fn served(backend: &LockService, request: &AcquireRequest) -> Grant {
    let answer = tokio::time::timeout(PATIENCE, backend.acquire(request)).await;
    let answer = answer
        .expect("a waiter that is never served")
        .expect("the service answers");
    answer.granted().expect("it waits for ever")
}

/// Checks that a wait has ended without a grant. `None` if it has ended without an answer.
fn was_held(answer: &Result<Attempt<Grant>, Error>) -> Option<()> {
    match answer {
        Ok(Attempt::Held { .. }) => Some(()),
        Err(error) if error.kind() == ErrorKind::Unavailable => None,
        _ => panic!("{answer:?}"),
    }
}

fn soon(runtime: &dyn Runtime) -> Moment {
    runtime.now() + Duration::from_millis(200)
}
