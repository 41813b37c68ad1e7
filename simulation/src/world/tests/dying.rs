use std::future::pending;

use lock_core::backend::Runtime;
use scopeguard::guard;
use tokio::{runtime::Handle, sync::Notify};

use super::*;
use crate::world::Process;

/// A task that notes how it was dropped, and tries to go on.
fn start_tenacious(process: &Process, notes: &Notes, wakes: &Arc<Notify>) {
    let (own, notes, wakes) = (process.clone(), notes.clone(), Arc::clone(wakes));
    process.start(async move {
        let _last = guard((), |()| {
            notes.add("dropped");
            wakes.notify_one();
            let late = notes.clone();
            let noted = guard((), move |()| late.add("refused"));
            let again = async move {
                let () = *noted;
                unreachable!("a dead process runs nothing")
            };
            own.spawn(&Handle::current(), Box::pin(again));
        });
        pending::<()>().await;
    });
}

/// Catches: a killed process that goes on in tasks that its drops begin, or a drop under a lock.
#[test]
fn the_drops_of_a_killed_process_begin_nothing() {
    let (world, notes) = (world(), Notes::default());
    let [victim, other] = ["victim", "other"].map(|name| world.process(name));
    let wakes = Arc::new(Notify::new());
    start_tenacious(&victim, &notes, &wakes);
    let (noted, waits) = (notes.clone(), Arc::clone(&wakes));
    other.start(async move {
        waits.notified().await;
        noted.add("woken");
    });
    runs_dry(&world);
    assert!(!victim.is_dead());
    let kills = victim.clone();
    other.start(async move { kills.kill() });
    runs_dry(&world);
    assert!(victim.is_dead());
    victim.kill();
    assert_eq!(notes.all(), "dropped refused woken");
    assert_eq!(world.counts().tasks, 0);
    victim.start(async { unreachable!("a dead process runs nothing") });
    runs_dry(&world);
    assert_eq!(world.panics(), []);
}

/// Catches: a process that survives its own kill, or whose sleep keeps the world waiting.
#[test]
fn a_process_can_kill_itself() {
    let (world, notes) = (world(), Notes::default());
    let process = world.process("p");
    let sleeps = process.clone();
    process.start(async move { sleeps.sleep_until(at(50)).await });
    let (own, noted) = (process.clone(), notes.clone());
    process.start(async move {
        own.kill();
        noted.add("killed");
        own.sleep_until(at(70)).await;
        noted.add("never");
    });
    runs_dry(&world);
    assert_eq!((world.now(), notes.all()), (at(0), "killed".into()));
    assert_eq!((world.counts().tasks, world.counts().sleepers), (0, 0));
}

/// Catches: a panic in a drop that ends the run.
#[test]
fn a_panic_in_a_drop_is_reported() {
    let world = world();
    let process = world.process("p");
    process.start(async {
        let _last = guard((), |()| panic!("in a drop"));
        pending::<()>().await;
    });
    runs_dry(&world);
    process.kill();
    assert_eq!(world.panics()[0].message, "in a drop");
}

/// Catches: a task that owns its process, and so is never freed.
#[test]
fn the_end_of_a_world_drops_its_tasks() {
    let (notes, there) = (Notes::default(), Arc::new(()));
    let world = world();
    let process = world.process("p");
    start_tenacious(&process, &notes, &Arc::default());
    let (own, mine) = (process.clone(), Arc::clone(&there));
    process.start(async move {
        let _there = mine;
        own.sleep_until(at(1)).await;
        pending::<()>().await;
    });
    runs_dry(&world);
    drop(world);
    assert_eq!(
        (Arc::strong_count(&there), notes.all()),
        (1, "dropped refused".into())
    );
    drop(process);
}
