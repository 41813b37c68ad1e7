//! Pauses at every await: the faults that they find, and the failure of a test that tests nothing.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::future_not_send, reason = "pause tests run on one thread")]

use std::{cell::Cell, rc::Rc, time::Duration};

use lock_core::{
    LostReason, Ttl,
    backend::{Moment, Runtime},
};
use lock_testing::{
    FencedCell, Process,
    pause::{self, Broken},
};

type Failure = Box<dyn std::error::Error>;

struct World {
    account: FencedCell<i64>,
    cash: Cell<i64>,
}

impl World {
    fn new() -> Self {
        Self {
            account: FencedCell::new(100),
            cash: Cell::new(0),
        }
    }

    fn total(&self) -> i64 {
        self.account.value() + self.cash.get()
    }

    fn pay_out(&self) {
        self.cash.set(self.cash.get() + 10);
    }
}

async fn fenced(world: &World, me: &Process) -> Result<(), Failure> {
    let guard = me.locks().acquire("account").await?;
    let fence = guard.sequencer();
    world.account.claim(fence).await?;
    let balance = world.account.read(fence).await?;
    world.account.write(fence, balance - 10).await?;
    world.pay_out();
    guard.release().await?;
    Ok(())
}

async fn unfenced(world: &World, me: &Process) -> Result<(), Failure> {
    let guard = me.locks().acquire("account").await?;
    let balance = world.account.read_unfenced().await;
    world.account.write_unfenced(balance - 10).await;
    world.pay_out();
    guard.release().await?;
    Ok(())
}

/// A section that looks at its lease right before it writes.
async fn check_then_act(world: &World, me: &Process) -> Result<(), Failure> {
    let guard = me.locks().acquire("account").await?;
    let balance = world.account.read_unfenced().await;
    guard.remaining()?;
    world.account.write_unfenced(balance - 10).await;
    world.pay_out();
    guard.release().await?;
    Ok(())
}

async fn broken_by(
    section: impl AsyncFn(&World, &Process) -> Result<(), Failure> + 'static,
) -> Broken {
    let test = pause::at_every_await(async || World::new(), section);
    test.try_check(async |world| world.total() == 100)
        .await
        .unwrap_err()
}

#[tokio::test]
async fn a_fenced_section_passes_and_is_refused_when_it_is_stale() {
    let passed = pause::at_every_await(async || World::new(), fenced)
        .rival(fenced)
        .check(async |world| world.total() == 100)
        .await;
    // Two awaits each to acquire, claim, read, write and release.
    assert_eq!(passed.awaits, 10);
    // The section is refused after a pause in the reply to claim, the request to read, its reply,
    // and the request to write. It is also refused after a pause in the request to claim, because
    // that request arrives after the rival's claim.
    assert_eq!(passed.refused, 5);
}

#[tokio::test]
async fn an_unfenced_section_fails_and_the_message_names_the_awaits() {
    let broken = broken_by(unfenced).await;
    assert_eq!(broken.awaits(), [4, 5]);
    let message = broken.to_string();
    let expected = "the invariant is broken by a pause at await 4 of 8 \
                    (the reply to read is under way, lock-testing/tests/pause.rs:";
    assert!(message.starts_with(expected), "{message}");
    let expected = "or at await 5 of 8 (the request to write is under way, lock-testing/tests/";
    assert!(message.contains(expected), "{message}");
    assert!(!message.contains('\n'));
}

#[tokio::test]
#[should_panic(expected = "the invariant is broken by a pause at await 4 of 8")]
async fn a_check_that_fails_panics() {
    pause::at_every_await(async || World::new(), unfenced)
        .rival(fenced)
        .check(async |world| world.total() == 100)
        .await;
}

#[tokio::test]
async fn a_look_at_the_lease_before_the_write_does_not_help() {
    assert_eq!(broken_by(check_then_act).await.awaits(), [5]);
}

#[tokio::test]
async fn a_pause_that_is_shorter_than_the_lease_lets_no_rival_in() {
    let impatient = async |world: &World, me: &Process| {
        let attempt = me.locks().try_acquire("account").await?;
        drop(attempt.granted().ok_or("held")?);
        unfenced(world, me).await
    };
    let passed = pause::at_every_await(async || World::new(), unfenced)
        .rival(impatient)
        .pause(Ttl::default().get() / 2)
        .check(async |world| world.total() == 100)
        .await;
    assert_eq!((passed.awaits, passed.refused), (8, 0));
}

#[tokio::test]
async fn a_point_of_ones_own_is_an_await_with_a_line() {
    let section = async |calls: &Cell<u32>, _: &Process| {
        let before = calls.get();
        pause::point().await;
        calls.set(before + 1);
        Ok::<_, Failure>(())
    };
    let test = pause::at_every_await(async || Cell::new(0), section);
    let broken = test
        .try_check(async |calls| calls.get() == 2)
        .await
        .unwrap_err();
    let message = broken.to_string();
    assert!(
        message.contains("await 1 of 1 (pause::point, lock-testing/tests/pause.rs:"),
        "{message}"
    );
}

#[tokio::test]
async fn the_watchdog_is_stopped_with_its_process_and_told_afterwards() {
    let seen = Rc::new(Cell::new(None));
    let section = {
        let seen = Rc::clone(&seen);
        async move |_: &(), me: &Process| {
            let guard = me.locks().acquire("account").await?;
            let before = me.clock().now();
            pause::point().await;
            if me.clock().now() > before {
                seen.set(Some(guard.lost().await.reason()));
            }
            guard.release().await?;
            Ok::<_, Failure>(())
        }
    };
    let rival = async |_: &(), me: &Process| {
        let guard = me.locks().acquire("account").await?;
        // The rival's own watchdog runs, because this time is longer than its lease.
        me.clock()
            .sleep_until(me.clock().now() + Duration::from_secs(60))
            .await;
        guard.remaining()?;
        Ok::<_, Failure>(())
    };
    pause::at_every_await(async || (), section)
        .rival(rival)
        .check(async |()| true)
        .await;
    assert_eq!(seen.get(), Some(LostReason::Expired));
}

#[tokio::test]
async fn of_many_awaits_the_message_names_some() {
    let section = async |calls: &Cell<u32>, _: &Process| {
        let before = calls.get();
        for _ in 0..7 {
            pause::point().await;
        }
        calls.set(before + 1);
        Ok::<_, Failure>(())
    };
    let test = pause::at_every_await(async || Cell::new(0), section);
    let broken = test
        .try_check(async |calls| calls.get() == 2)
        .await
        .unwrap_err();
    assert_eq!(broken.awaits(), [1, 2, 3, 4, 5, 6, 7]);
    let message = broken.to_string();
    assert!(message.contains("or at await 5 of 7"), "{message}");
    assert!(message.ends_with(", or at 2 more"), "{message}");
}

/// Otherwise the watchdog of the stopped process would renew for ever, and the rival would wait for
/// ever.
#[tokio::test]
async fn a_stopped_process_renews_nothing_however_short_the_pause() {
    let test = pause::at_every_await(async || World::new(), unfenced).pause(Duration::ZERO);
    let broken = test.try_check(async |world| world.total() == 100).await;
    assert_eq!(broken.unwrap_err().awaits(), [4, 5]);
}

#[tokio::test]
async fn a_rival_waits_as_long_as_it_has_to() {
    let section = async |_: &(), me: &Process| {
        let lease = me.locks().acquire("account").detached().await?.granted();
        lease.ok_or("held").map(drop).map_err(Failure::from)
    };
    let passed = pause::at_every_await(async || (), section)
        .pause(Duration::from_secs(1))
        .check(async |()| true)
        .await;
    assert_eq!((passed.awaits, passed.refused), (2, 0));
}

#[tokio::test]
#[should_panic(expected = "the section never awaits, so nothing was tested")]
async fn a_section_without_awaits_tests_nothing() {
    pause::at_every_await(
        async || (),
        async |_: &(), _: &Process| Ok::<_, Failure>(()),
    )
    .check(async |()| true)
    .await;
}

#[tokio::test]
#[should_panic(expected = "the section fails without any pause: NotClaimed")]
async fn a_section_that_always_fails_tests_nothing() {
    let unclaimed = async |world: &World, me: &Process| {
        let guard = me.locks().acquire("account").await?;
        world.account.write(guard.sequencer(), 0).await?;
        Ok::<_, Failure>(())
    };
    pause::at_every_await(async || World::new(), unclaimed)
        .check(async |_| true)
        .await;
}

#[tokio::test]
#[should_panic(
    expected = "the rival fails whenever the section is paused, so nothing was tested: \
                \"it is late\""
)]
async fn a_rival_that_never_gets_through_tests_nothing() {
    let late = async |_: &World, me: &Process| {
        let late = me.clock().now() > Moment::default();
        if late { Err("it is late") } else { Ok(()) }
    };
    pause::at_every_await(async || World::new(), fenced)
        .rival(late)
        .check(async |_| true)
        .await;
}

#[tokio::test]
#[should_panic(expected = "the invariant does not hold even without a pause")]
async fn an_invariant_that_never_holds_tests_nothing() {
    pause::at_every_await(async || World::new(), fenced)
        .check(async |world| world.total() == 0)
        .await;
}

#[tokio::test]
#[should_panic(expected = "the rival waits for something that does not happen, such as a mutex")]
async fn a_rival_that_can_never_go_on_is_reported() {
    struct Shared {
        mutex: tokio::sync::Mutex<()>,
    }
    let section = async |shared: &Shared, _: &Process| {
        let _locked = shared.mutex.lock().await;
        pause::point().await;
        Ok::<_, Failure>(())
    };
    let world = async || Shared {
        mutex: tokio::sync::Mutex::new(()),
    };
    pause::at_every_await(world, section)
        .check(async |_| true)
        .await;
}

#[tokio::test]
#[should_panic(expected = "the section has not ended after 10000 awaits")]
async fn a_section_that_never_ends_is_reported() {
    let section = async |_: &(), _: &Process| -> Result<(), Failure> {
        loop {
            pause::point().await;
        }
    };
    pause::at_every_await(async || (), section)
        .check(async |()| true)
        .await;
}

#[tokio::test(flavor = "multi_thread")]
#[should_panic(expected = "a pause test needs a runtime of one thread")]
async fn a_runtime_of_many_threads_is_refused() {
    pause::at_every_await(async || World::new(), fenced)
        .check(async |_| true)
        .await;
}

#[tokio::test]
async fn nothing_of_a_test_is_left_running() {
    let metrics = tokio::runtime::Handle::current().metrics();
    pause::at_every_await(async || World::new(), fenced)
        .check(async |world| world.total() == 100)
        .await;
    while metrics.num_alive_tasks() > 0 {
        tokio::task::yield_now().await;
    }
}
