//! The requests of the watchdog, their times, and their batches, on a clock that moves only when
//! the test advances it.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
    time::Duration,
};

use futures_util::future::join_all;
use lock_core::{
    Capabilities, Error, ErrorKind, FencingToken, InitialToken, Inspection, LeaseGuard,
    LockManager, LostReason, Owner, Released, ResourceName, Sequencer, Ttl,
    backend::{
        AcquireRequest, AttemptRef, LockBackend, Moment, RenewRequest, Renewed, Requests, Runtime,
        StoreSide,
    },
    memory::MemoryBackend,
};
use lock_testing::ManualClock;
use tokio::sync::Semaphore;

const TTL: Ttl = Ttl::secs(9);

/// A lock service that writes down its requests. Some of its parts do not answer.
///
/// The name of a resource begins with the number of its part.
#[derive(Clone, Debug)]
struct Service {
    memory: MemoryBackend,
    log: Arc<Mutex<Vec<Asked>>>,
    ails: Arc<Mutex<Vec<(u16, Ailment)>>>,
    /// The number of answers that a part may give. A part waits for this permission.
    leave: Arc<Semaphore>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Ailment {
    NeverAnswers,
    Fails,
    AsksForLeave,
}

#[derive(Clone, Debug, PartialEq)]
enum Asked {
    Acquire(String),
    Release(String),
    Renew(Vec<String>),
}

fn part(name: &str) -> u16 {
    name[..1].parse().unwrap()
}

impl Service {
    fn ails(&self, part: u16, with: Ailment) {
        self.ails.lock().unwrap().push((part, with));
    }

    fn heal(&self) {
        self.ails.lock().unwrap().clear();
    }

    fn wrote(&self, asked: Asked) {
        self.log.lock().unwrap().push(asked);
    }

    fn log(&self) -> Vec<Asked> {
        self.log.lock().unwrap().clone()
    }

    /// The batches of renewals so far.
    fn batches(&self) -> Vec<Vec<String>> {
        let renewals = self.log().into_iter().filter_map(|asked| match asked {
            Asked::Renew(batch) => Some(batch),
            _ => None,
        });
        renewals.collect()
    }
}

impl LockBackend for Service {
    fn kind(&self) -> &'static str {
        "memory"
    }

    fn capabilities(&self) -> Capabilities {
        self.memory.capabilities()
    }

    fn runtime(&self) -> Arc<dyn Runtime> {
        self.memory.runtime()
    }

    fn requests<'a>(&'a self, request: &'a AcquireRequest) -> impl Requests + 'a {
        self.wrote(Asked::Acquire(request.attempt.resource.to_string()));
        self.memory.requests(request)
    }

    async fn renew(&self, leases: &[RenewRequest]) -> Vec<Result<Renewed, Error>> {
        let names = leases
            .iter()
            .map(|lease| lease.sequencer.resource().to_string());
        let names: Vec<_> = names.collect();
        let here = part(&names[0]);
        self.wrote(Asked::Renew(names));
        let ails = self
            .ails
            .lock()
            .unwrap()
            .iter()
            .find(|(part, _)| *part == here)
            .copied();
        match ails {
            None => self.memory.renew(leases).await,
            Some((_, Ailment::AsksForLeave)) => {
                self.leave.acquire().await.unwrap().forget();
                self.memory.renew(leases).await
            }
            Some((_, Ailment::NeverAnswers)) => std::future::pending().await,
            Some((_, Ailment::Fails)) => {
                let failed = Error::not_applied(ErrorKind::Unavailable);
                leases.iter().map(|_| Err(failed.clone())).collect()
            }
        }
    }

    async fn release(&self, lease: &Sequencer, tombstone: bool) -> Result<Released, Error> {
        self.wrote(Asked::Release(lease.resource().to_string()));
        self.memory.release(lease, tombstone).await
    }

    async fn cancel(&self, attempt: &AttemptRef) -> Result<(), Error> {
        self.memory.cancel(attempt).await
    }

    async fn inspect(&self, resource: &ResourceName) -> Result<Inspection, Error> {
        self.memory.inspect(resource).await
    }

    fn part_of(&self, resource: &ResourceName) -> u16 {
        part(resource.as_str())
    }
}

struct World {
    clock: ManualClock,
    service: Service,
    locks: LockManager,
}

fn world() -> World {
    let clock = ManualClock::new();
    let timer: Arc<dyn Runtime> = Arc::new(clock.clone());
    let service = Service {
        memory: MemoryBackend::new(Arc::clone(&timer), InitialToken::At(FencingToken::MIN)),
        log: Arc::default(),
        ails: Arc::default(),
        leave: Arc::new(Semaphore::new(0)),
    };
    let builder = LockManager::builder();
    World {
        locks: builder.build(service.clone()).unwrap(),
        clock,
        service,
    }
}

impl World {
    async fn acquire(&self, name: &str) -> LeaseGuard {
        self.locks.acquire(name).ttl(TTL).await.unwrap()
    }

    async fn acquire_all(&self, names: impl Iterator<Item = String>) -> Vec<LeaseGuard> {
        join_all(names.map(async |name| self.acquire(&name).await)).await
    }

    /// Moves the clock to the end of the watchdog's sleep, and lets it do the work that is due.
    async fn to_next_wake(&self) {
        settled().await;
        let wake = self.clock.next_wake().unwrap();
        self.clock.advance(wake.since(self.clock.now()));
        settled().await;
    }

    /// Moves the clock in steps that are smaller than anything that the watchdog waits for.
    async fn pass(&self, time: Duration) {
        let end = self.clock.now() + time;
        settled().await;
        while self.clock.now() < end {
            let step = std::cmp::min(TTL.get() / 90, end.since(self.clock.now()));
            self.clock.advance(step);
            settled().await;
        }
    }
}

/// Waits until the other tasks have done all that they can without the clock.
async fn settled() {
    for _ in 0..200 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn batches_are_bounded_and_complete() {
    let world = world();
    let names = || (0..250).map(|number| format!("0:{number}"));
    let guards = world.acquire_all(names()).await;
    world.to_next_wake().await;
    let batches = world.service.batches();
    assert!(batches.iter().all(|batch| batch.len() <= 100));
    let renewed: BTreeSet<_> = batches.iter().flatten().cloned().collect();
    assert_eq!((batches.len(), renewed), (3, names().collect()));
    assert!(guards.iter().all(|guard| guard.remaining().is_ok()));
    assert_eq!(world.locks.stats().renewals, 250);
}

/// Catches: a slow part that gets all requests at once, or renewals of leases that were released.
#[tokio::test]
async fn a_part_has_three_batches_at_once_and_what_is_released_meanwhile_leaves_the_fourth() {
    let world = world();
    let mut guards = world
        .acquire_all((0..350).map(|number| format!("1:{number}")))
        .await;
    world.service.ails(1, Ailment::AsksForLeave);
    world.to_next_wake().await;
    assert_eq!(world.service.batches().len(), 3);
    guards.truncate(349);
    world.service.leave.add_permits(1);
    settled().await;
    let sizes = world.service.batches().into_iter().map(|batch| batch.len());
    assert_eq!(sizes.collect::<Vec<_>>(), [100, 100, 100, 49]);
}

/// Catches: batches that become smaller with each renewal.
#[tokio::test]
async fn batches_that_were_answered_one_by_one_are_sent_together_the_next_time() {
    let world = world();
    let names = (0..400).map(|number| format!("1:{number}"));
    let guards = world.acquire_all(names).await;
    world.service.ails(1, Ailment::AsksForLeave);
    world.to_next_wake().await;
    for _ in 0..4 {
        world.clock.advance(Duration::from_millis(10));
        world.service.leave.add_permits(1);
        settled().await;
    }
    world.service.heal();
    world.to_next_wake().await;
    assert_eq!(world.service.batches().len(), 8);
    drop(guards);
}

#[tokio::test]
async fn leases_that_were_acquired_one_by_one_are_renewed_together() {
    let world = world();
    let mut guards = Vec::new();
    for number in 0..50 {
        guards.push(world.acquire(&format!("0:{number}")).await);
        world.clock.advance(Duration::from_millis(2));
    }
    while world.clock.now() < Moment::default() + TTL.get() / 3 {
        world.to_next_wake().await;
    }
    let batches = world.service.batches();
    assert!(batches.len() <= 3, "{batches:?}");
    assert_eq!(batches.iter().flatten().count(), 50);
}

/// Catches: one batch for two slots of a cluster, which the cluster refuses.
#[tokio::test]
async fn a_batch_is_of_one_part() {
    let world = world();
    let names = (0..90).map(|number| format!("{}:{number}", number % 3));
    let guards = world.acquire_all(names).await;
    world.to_next_wake().await;
    let batches = world.service.batches();
    assert_eq!(batches.len(), 3);
    for batch in batches {
        assert!(
            batch.iter().all(|name| part(name) == part(&batch[0])),
            "{batch:?}"
        );
    }
    drop(guards);
}

#[tokio::test]
async fn a_part_that_never_answers_starves_no_other_and_is_asked_until_the_deadline() {
    let world = world();
    let (dead, alive) = (
        world.acquire("1:dead").await,
        world.acquire("2:alive").await,
    );
    world.service.ails(1, Ailment::NeverAnswers);
    world.pass(TTL.get() * 3).await;
    assert_eq!(dead.remaining().unwrap_err().reason(), LostReason::Expired);
    assert!(alive.remaining().is_ok());
    let asked = |name: &str| {
        let batches = world.service.batches();
        batches
            .iter()
            .flatten()
            .filter(|renewed| *renewed == name)
            .count()
    };
    assert!((4..20).contains(&asked("1:dead")), "{}", asked("1:dead"));
    assert!((8..12).contains(&asked("2:alive")), "{}", asked("2:alive"));
}

#[tokio::test]
async fn a_renewal_without_answer_is_sent_again_and_saves_the_lease() {
    let world = world();
    let guard = world.acquire("1").await;
    world.service.ails(1, Ailment::NeverAnswers);
    world.to_next_wake().await;
    assert_eq!(world.service.batches().len(), 1);
    world.service.heal();
    world.to_next_wake().await;
    assert_eq!(world.service.batches().len(), 2);
    assert_eq!(guard.remaining().unwrap(), TTL.get());
}

/// Catches: a failed batch is repeated too late, at once, or lease by lease.
#[tokio::test]
async fn a_renewal_that_fails_is_repeated_soon_and_saves_the_lease() {
    let world = world();
    let guards = world
        .acquire_all((0..20).map(|number| format!("1:{number}")))
        .await;
    world.service.ails(1, Ailment::Fails);
    world.to_next_wake().await;
    let failed_at = world.clock.now();
    world.to_next_wake().await;
    let pause = world.clock.now().since(failed_at);
    assert!(
        pause >= TTL.get() / 20 && pause <= TTL.get() * 3 / 20,
        "{pause:?}"
    );
    let sizes = world.service.batches().into_iter().map(|batch| batch.len());
    assert_eq!(sizes.collect::<Vec<_>>(), [20, 20]);
    assert_eq!(world.locks.stats().renewal_failures, 40);
    world.service.heal();
    world.to_next_wake().await;
    let all_left = |guard: &LeaseGuard| guard.remaining().unwrap() == TTL.get();
    assert!(guards.iter().all(all_left));
    let stats = world.locks.stats();
    assert_eq!((stats.renewals, stats.losses), (20, 0));
}

#[tokio::test]
async fn a_released_lease_leaves_the_next_batch() {
    let world = world();
    let [kept, released, dropped] = ["0:kept", "0:released", "0:dropped"];
    let kept = world.acquire(kept).await;
    world.acquire(released).await.release().await.unwrap();
    drop(world.acquire(dropped).await);
    world.to_next_wake().await;
    assert_eq!(world.service.batches(), [["0:kept"]]);
    drop(kept);
}

/// Catches: a watchdog that ticks for nothing, or does not wake up again.
#[tokio::test]
async fn a_manager_that_holds_nothing_sleeps() {
    let world = world();
    let guard = world.acquire("0").await;
    settled().await;
    drop(guard);
    // The watchdog may look once at the work that was due then.
    world.to_next_wake().await;
    assert_eq!(world.clock.next_wake(), None);
    let guard = world.acquire("0").await;
    world.to_next_wake().await;
    assert_eq!(
        guard.remaining().unwrap(),
        TTL.get(),
        "it did not wake up again"
    );
}

/// Catches: a watchdog that sleeps past the renewal of the shorter lease.
#[tokio::test]
async fn a_shorter_lease_wakes_a_watchdog_that_sleeps_for_a_longer_one() {
    let world = world();
    let _long = world.acquire("0:long").await;
    settled().await;
    let short = world
        .locks
        .acquire("0:short")
        .ttl(Ttl::secs(1))
        .await
        .unwrap();
    world.to_next_wake().await;
    assert!(world.clock.now() <= Moment::default() + Duration::from_secs(1) / 3);
    assert_eq!(short.remaining().unwrap(), Duration::from_secs(1));
}

#[tokio::test]
async fn a_dropped_guard_is_released_before_what_its_task_sends_next() {
    let world = world();
    let guard = world.acquire("0").await;
    drop(guard);
    // There is no await in between, so no other task has run.
    let next = world.locks.try_acquire("0").await.unwrap();
    assert!(next.granted().is_some());
    let asked = ["0"; 3].map(str::to_owned);
    let [first, then, last] = asked;
    let order = [
        Asked::Acquire(first),
        Asked::Release(then),
        Asked::Acquire(last),
    ];
    assert_eq!(world.service.log()[..3], order);
}

#[tokio::test]
async fn a_loss_is_counted_once_even_if_no_call_uses_the_guard() {
    let world = world();
    let guard = world.acquire("1").await;
    world.service.ails(1, Ailment::Fails);
    world.pass(TTL.get()).await;
    assert_eq!(world.locks.stats().losses, 1);
    assert!(guard.remaining().is_err());
    drop(guard);
    let stats = world.locks.stats();
    assert_eq!((stats.losses, stats.held), (1, 0));
}

/// Catches: a lease that is not renewed, and counts as held until a call uses its guard.
#[tokio::test]
async fn the_loss_of_a_lease_that_is_not_renewed_is_counted_at_its_deadline() {
    let world = world();
    let guard = world.locks.acquire("0").ttl(TTL).renew(false);
    let guard = guard.await.unwrap();
    world.pass(TTL.get()).await;
    assert_eq!(world.locks.stats().losses, 1);
    assert!(!guard.is_held());
}

#[tokio::test]
async fn a_guard_that_is_dropped_after_its_deadline_was_lost() {
    let world = world();
    let guard = world.locks.acquire("0").ttl(TTL).renew(false);
    let guard = guard.await.unwrap();
    world.clock.advance(TTL.get());
    drop(guard);
    assert_eq!(world.locks.stats().losses, 1);
}

#[tokio::test]
async fn a_lease_is_renewed_no_more_after_max_hold_and_lost_at_its_end() {
    let world = world();
    let max_hold = TTL.get() * 2;
    let acquire = world.locks.acquire("0").ttl(TTL).max_hold(max_hold);
    let guard = acquire.await.unwrap();
    world.pass(max_hold).await;
    let renewals = world.service.batches().len();
    assert!((5..8).contains(&renewals), "{renewals}");
    assert!(
        guard.remaining().is_ok(),
        "lost before the lease has run out"
    );
    world.pass(TTL.get()).await;
    assert_eq!(world.service.batches().len(), renewals);
    assert_eq!(guard.remaining().unwrap_err().reason(), LostReason::MaxHold);
    assert_eq!(world.locks.stats().losses, 1);
    let next = world.locks.try_acquire("0").await.unwrap();
    assert!(next.granted().is_some());
}

/// Catches: a guard that reports an end which is later than the end of its lease.
#[tokio::test]
async fn the_end_of_a_lease_is_known_if_it_is_not_renewed_for_ever() {
    let world = world();
    let max_hold = TTL.get() * 2;
    let (bounded, renewed, once) = (
        world.locks.acquire("0").ttl(TTL).max_hold(max_hold),
        world.locks.acquire("1").ttl(TTL),
        world.locks.acquire("2").ttl(TTL).renew(false),
    );
    let bounded = bounded.await.unwrap();
    let (renewed, once) = (renewed.await.unwrap(), once.await.unwrap());
    assert_eq!(bounded.ends_within().unwrap(), Some(3 * TTL.get()));
    assert_eq!(renewed.ends_within().unwrap(), None);
    assert_eq!(once.ends_within().unwrap(), Some(TTL.get()));
    world.pass(max_hold).await;
    assert_eq!(bounded.ends_within().unwrap(), Some(TTL.get()));
    assert_eq!(renewed.ends_within().unwrap(), None);
    once.ends_within().unwrap_err();
    world.pass(TTL.get()).await;
    bounded.ends_within().unwrap_err();
}

/// Catches: the loss by an outage that is reported as the end of `max_hold`.
#[tokio::test]
async fn max_hold_is_no_excuse_for_a_lease_that_was_cut_off_before() {
    let world = world();
    let acquire = world.locks.acquire("1").ttl(TTL).max_hold(TTL.get() * 2);
    let guard = acquire.await.unwrap();
    world.service.ails(1, Ailment::Fails);
    world.pass(TTL.get()).await;
    assert_eq!(guard.remaining().unwrap_err().reason(), LostReason::Expired);
}

/// Catches: a lease that is renewed for ever, because its guard is kept and never looked at.
#[tokio::test]
async fn a_lease_whose_renewal_is_paused_leaves_the_batches_and_is_lost_at_its_end() {
    let world = world();
    let (kept, paused) = (
        world.acquire("0:kept").await,
        world.acquire("0:paused").await,
    );
    paused.pause_renewal();
    world.pass(TTL.get()).await;
    let batches = world.service.batches();
    assert!(!batches.is_empty() && batches.iter().all(|batch| batch == &["0:kept"]));
    assert!(kept.remaining().is_ok());
    assert_eq!(paused.lost().await.reason(), LostReason::Expired);
    let next = world.locks.try_acquire("0:paused").await.unwrap();
    assert!(next.granted().is_some());

    paused.resume_renewal();
    settled().await;
    paused.remaining().unwrap_err();
    assert_eq!(world.locks.stats().losses, 1);
}

/// Catches: a watchdog that sleeps until the next renewal that it had planned.
#[tokio::test]
async fn a_lease_is_renewed_as_soon_as_its_renewal_is_resumed_and_from_then_on() {
    let world = world();
    let guard = world.acquire("0").await;
    guard.pause_renewal();
    world.pass(TTL.get() * 8 / 9).await;
    assert_eq!(world.service.batches().len(), 0);
    guard.resume_renewal();
    settled().await;
    assert_eq!(guard.remaining().unwrap(), TTL.get());
    world.pass(TTL.get() * 2).await;
    assert!(guard.remaining().is_ok());
}

/// Catches: the answer to a renewal makes the watchdog renew the lease again.
#[tokio::test]
async fn a_renewal_that_was_under_way_when_it_was_paused_is_the_last() {
    let world = world();
    let guard = world.acquire("1").await;
    world.service.ails(1, Ailment::AsksForLeave);
    world.to_next_wake().await;
    guard.pause_renewal();
    world.service.leave.add_permits(1);
    settled().await;
    world.service.heal();
    world.pass(TTL.get()).await;
    assert_eq!(world.service.batches().len(), 1);
    assert_eq!(guard.remaining().unwrap_err().reason(), LostReason::Expired);
}

/// Catches: a resumed renewal that forgets how the lease was acquired.
#[tokio::test]
async fn a_resumed_renewal_keeps_to_max_hold_and_to_no_renewal_at_all() {
    let world = world();
    let bounded = world.locks.acquire("0").ttl(TTL).max_hold(TTL.get() / 2);
    let once = world.locks.acquire("1").ttl(TTL).renew(false);
    let guards = [bounded.await.unwrap(), once.await.unwrap()];
    guards.iter().for_each(StoreSide::pause_renewal);
    world.pass(TTL.get() * 2 / 3).await;
    guards.iter().for_each(StoreSide::resume_renewal);
    world.pass(TTL.get() / 3).await;
    assert_eq!(world.service.batches().len(), 0);
    let reasons = guards.map(|guard| guard.remaining().unwrap_err().reason());
    assert_eq!(reasons, [LostReason::MaxHold, LostReason::Expired]);
}

/// Catches: one handle of an owner stops the renewal of the others, or takes the lease with it.
#[tokio::test]
async fn a_hold_whose_renewal_is_paused_is_lost_alone() {
    let world = world();
    let owner = Owner::new();
    let hold = async || {
        world
            .locks
            .acquire("0")
            .ttl(TTL)
            .owner(&owner)
            .await
            .unwrap()
    };
    let (paused, kept) = (hold().await, hold().await);
    paused.pause_renewal();
    world.pass(TTL.get() * 2).await;
    paused.remaining().unwrap_err();
    drop(paused);
    settled().await;
    assert!(kept.remaining().is_ok());
    kept.renew(TTL).await.unwrap();
}
