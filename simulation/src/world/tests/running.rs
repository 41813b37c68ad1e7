use std::{future::pending, task::Poll};

use lock_core::backend::Runtime;
use tokio::{sync::Notify, task::yield_now};

use super::*;
use crate::world::Clock;

/// Five tasks that are ready at once, twice.
fn names_in(seed: u64, order: Order) -> (String, u64) {
    let (world, notes) = (World::new(seed, order).unwrap(), Notes::default());
    let process = world.process("p");
    for name in ["a", "b", "c", "d", "e"] {
        let (runtime, notes) = (process.clone(), notes.clone());
        process.start(async move {
            notes.add(name);
            runtime.sleep_until(at(5)).await;
            notes.add(name);
        });
    }
    runs_dry(&world);
    (notes.all(), world.digest())
}

/// Catches: an order that depends on more than the seed.
#[test]
fn a_seed_repeats_the_order_and_another_one_changes_it() {
    for order in [Order::Uniform, Order::Pct { depth: 2 }] {
        let of = |seed| names_in(seed, order);
        assert_eq!(of(3), of(3));
        assert!((4..12).any(|seed| of(seed).0 != of(3).0), "{order:?}");
        assert!((4..12).any(|seed| of(seed).1 != of(3).1), "{order:?}");
    }
}

/// Catches: an order of production that production does not have.
#[test]
fn first_woken_is_first_polled() {
    assert_eq!(names_in(3, Order::Fifo).0, "a b c d e a b c d e");
}

/// Catches: a task that is polled twice for two wake-ups, or never for a wake-up during its poll.
#[test]
fn a_wake_up_counts_once_and_is_not_lost() {
    let world = world();
    let process = world.process("p");
    let mut polls = 0;
    process.start(std::future::poll_fn(move |context| {
        polls += 1;
        context.waker().wake_by_ref();
        context.waker().wake_by_ref();
        if polls == 3 {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }));
    runs_dry(&world);
    assert_eq!(process.counts().polls, 3);
    assert_eq!(process.counts().tasks, 0);
}

/// Catches: a clock that moves although a task is ready, or past a sleeper.
#[test]
fn the_clock_moves_to_the_next_sleeper_when_nothing_is_ready() {
    let (world, notes) = (world(), Notes::default());
    let process = world.process("p");
    for (name, millis) in [("late", 9), ("early", 4), ("twin", 4)] {
        let (runtime, notes) = (process.clone(), notes.clone());
        process.start(async move {
            runtime.sleep_until(at(millis)).await;
            assert_eq!(runtime.now(), at(millis));
            notes.add(name);
            yield_now().await;
            assert_eq!(runtime.now(), at(millis));
        });
    }
    assert_eq!(world.run_until(at(3), POLLS), Ran::TimeUp);
    assert_eq!((world.now(), notes.all()), (at(3), String::new()));
    assert_eq!(world.run_until(at(4), POLLS), Ran::TimeUp);
    assert_eq!(notes.all(), "early twin");
    assert_eq!(process.counts().sleepers, 1);
    runs_dry(&world);
    assert_eq!(
        (world.now(), notes.all()),
        (at(9), "early twin late".into())
    );
    assert_eq!(world.counts().sleepers, 0);
    assert_eq!(world.panics(), []);
}

/// Catches: a sleep that moves the clock although it was dropped, or has no end.
#[test]
fn a_sleep_that_is_gone_or_endless_wakes_no_one() {
    let world = world();
    let process = world.process("p");
    let runtime = process.clone();
    process.start(async move {
        let slow = runtime.sleep_until(at(100));
        let () = (&runtime as &dyn Runtime)
            .timeout(ms(1), slow)
            .await
            .unwrap_or_default();
        runtime.sleep_until(Moment::NEVER).await;
    });
    runs_dry(&world);
    assert_eq!(world.now(), at(1));
    assert_eq!((world.counts().tasks, world.counts().sleepers), (1, 0));
}

/// Catches: a run that a task without an end keeps for ever.
#[test]
fn a_task_that_never_waits_is_stopped() {
    let world = world();
    world.process("p").start(async {
        loop {
            yield_now().await
        }
    });
    assert_eq!(world.run_until(at(1), 50), Ran::TooManyPolls);
    assert_eq!(world.counts().polls, 50);
}

/// Catches: a clock that drifts only where it is read, and not where it wakes.
#[test]
fn each_process_has_a_clock_of_its_own() {
    let (world, notes) = (world(), Notes::default());
    for (name, ppm) in [("slow", -100_000), ("true", 0), ("fast", 100_000)] {
        let process = world.process_with(name, Clock::ahead(ms(50)).drifting(ppm));
        let (runtime, notes) = (process.clone(), notes.clone());
        process.start(async move {
            assert_eq!(runtime.now(), at(50));
            runtime.sleep_until(at(150)).await;
            let true_time = runtime.true_time().since_origin().as_millis();
            notes.add(format!("{}:{true_time}", runtime.name()));
        });
    }
    runs_dry(&world);
    assert_eq!(notes.all(), "fast:90 true:100 slow:111");
}

/// Catches: a wall clock that moves the deadlines, or the clocks of other processes.
#[test]
fn a_step_of_the_wall_clock_moves_nothing_else() {
    let world = world();
    let [one, other] = ["one", "other"].map(|name| world.process(name));
    let before = one.unix_time();
    one.step_unix(-5_000);
    assert_eq!(before - one.unix_time(), ms(5_000));
    assert_eq!((other.unix_time(), one.now()), (before, at(0)));
}

/// Catches: two processes, or two seeds, that draw the same holders.
#[test]
fn random_numbers_belong_to_a_seed_and_a_process() {
    let draws = |seed| {
        let world = World::new(seed, Order::Fifo).unwrap();
        let [one, other] = ["one", "other"].map(|name| world.process(name));
        [one.random(), other.random(), one.random()]
    };
    assert_eq!(draws(7), draws(7));
    let mut all = [draws(7), draws(8)].concat();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 6);
}

/// Catches: a trace that changes the run, or text that is made for nothing.
#[test]
fn lines_are_kept_on_demand_and_change_no_digest() {
    let of = |is_traced| {
        let world = world();
        if is_traced {
            world.trace();
        }
        let process = world.process("p");
        let told = process.clone();
        process.start(async move {
            told.tell(|| {
                if is_traced {
                    "hello".into()
                } else {
                    unreachable!()
                }
            });
            told.pause_for(ms(2));
        });
        runs_dry(&world);
        (world.digest(), world.take_lines())
    };
    let ((digest, lines), (same, none)) = (of(true), of(false));
    assert_eq!((digest, none.len()), (same, 0));
    let texts: Vec<_> = lines.iter().map(ToString::to_string).collect();
    assert_eq!(
        texts,
        [
            "      0.0 ms  p             hello",
            "      0.0 ms  p             pauses",
            "      2.0 ms  p             goes on"
        ]
    );
}

/// Catches: a panic that ends the whole run, or is not seen.
#[test]
fn a_panic_ends_its_task_and_is_reported() {
    let (world, notes) = (world(), Notes::default());
    let process = world.process("p");
    let noted = notes.clone();
    process.start(async { panic!("as the {} wants", "test") });
    process.start(async move { noted.add("other") });
    runs_dry(&world);
    let panics = world.panics();
    assert_eq!((panics.len(), &*panics[0].process), (1, "p"));
    assert_eq!(panics[0].message, "as the test wants");
    assert_eq!((notes.all(), world.counts().tasks), ("other".into(), 0));
}

/// Catches: the waker of an ended task that wakes another task.
#[test]
fn a_late_wake_up_does_nothing() {
    let world = world();
    let process = world.process("p");
    let notify = Arc::new(Notify::new());
    let (kept, mine) = (Arc::new(Mutex::new(None)), Arc::clone(&notify));
    let keeps = Arc::clone(&kept);
    process.start(async move {
        let keep = std::future::poll_fn(|context| {
            *lock(&keeps) = Some(context.waker().clone());
            Poll::Ready(())
        });
        keep.await;
        mine.notified().await;
    });
    process.start(pending());
    notify.notify_one();
    runs_dry(&world);
    let polls = world.counts().polls;
    lock(&kept).take().unwrap().wake();
    runs_dry(&world);
    assert_eq!(world.counts().polls, polls);
}
