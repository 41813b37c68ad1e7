use lock_core::backend::Runtime;
use tokio::{sync::Notify, task::yield_now};

use super::*;

/// Catches: a paused process that runs, that misses a wake-up, or that stops other processes.
#[test]
fn a_paused_process_keeps_its_wake_ups_while_time_goes_on() {
    let (world, notes) = (world(), Notes::default());
    let [one, other] = ["one", "other"].map(|name| world.process(name));
    for (name, millis) in [("b", 4), ("a", 3), ("c", 12)] {
        let (runtime, notes) = (one.clone(), notes.clone());
        one.start(async move {
            runtime.sleep_until(at(millis)).await;
            notes.add(format!(
                "{name}:{}",
                runtime.now().since_origin().as_millis()
            ));
        });
    }
    let (runtime, noted) = (other.clone(), notes.clone());
    other.start(async move {
        runtime.sleep_until(at(5)).await;
        noted.add("other");
    });
    assert_eq!(world.run_until(at(1), POLLS), Ran::TimeUp);
    one.pause_for(ms(9));
    let polls = one.counts().polls;
    assert_eq!(world.run_until(at(9), POLLS), Ran::TimeUp);
    assert_eq!((notes.all(), one.counts().polls), ("other".into(), polls));
    runs_dry(&world);
    assert_eq!(notes.all(), "other a:10 b:10 c:12");
}

/// Catches: a pause between an answer and its poll that cannot be placed.
#[test]
fn a_process_pauses_before_the_poll_that_was_named() {
    let (world, notes) = (world(), Notes::default());
    let process = world.process("p");
    for name in ["a", "b"] {
        let (runtime, notes) = (process.clone(), notes.clone());
        process.start(async move {
            for _ in 0..2 {
                notes.add(format!(
                    "{name}:{}",
                    runtime.now().since_origin().as_millis()
                ));
                yield_now().await;
            }
        });
    }
    process.pause_at_poll(2, ms(7));
    process.pause_at_poll(4, ms(1));
    runs_dry(&world);
    assert_eq!(notes.all(), "a:0 b:7 a:7 b:8");
}

/// Catches: a pause that ends another pause, or that a later and shorter pause ends.
#[test]
fn of_two_pauses_the_longer_one_counts() {
    for pauses in [[5, 9], [9, 5]] {
        let (world, notes) = (world(), Notes::default());
        let process = world.process("p");
        for pause in pauses {
            process.pause_for(ms(pause));
        }
        let (runtime, noted) = (process.clone(), notes.clone());
        process.start(async move { noted.add(format!("{:?}", runtime.now().since_origin())) });
        runs_dry(&world);
        assert_eq!(notes.all(), "9ms");
    }
}

/// Catches: an endless pause that keeps the world waiting.
#[test]
fn a_process_that_is_paused_for_ever_leaves_the_world_quiet() {
    let world = world();
    let process = world.process("p");
    let (notify, waits) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (wakes, woken) = (Arc::clone(&notify), Arc::clone(&waits));
    process.start(async move { woken.notified().await });
    process.pause_for(Duration::MAX);
    world
        .process("other")
        .start(async move { wakes.notify_one() });
    waits.notify_one();
    runs_dry(&world);
    assert_eq!((process.counts().tasks, process.counts().polls), (1, 0));
}
