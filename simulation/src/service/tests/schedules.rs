//! Managers over a bad network: the service keeps its promises, and managers give all leases back.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicBool, Ordering},
};

use lock_core::{FencingToken, LockManager, backend::AttemptId};
use tokio::task::JoinSet;

use super::*;

/// How many schedules, for each variant.
const SCHEDULES: u64 = 25;
const SECTIONS: u64 = 4;
/// Longer than a schedule, so that no leaked lease ends by itself.
const LONG: Ttl = Ttl::secs(3600);

/// A number that looks random.
fn mixed(numbers: [u64; 4]) -> u64 {
    numbers.into_iter().fold(0x9E37_79B9, |mixed: u64, number| {
        let mixed = (mixed ^ number).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed ^ (mixed >> 29)
    })
}

fn fate(seed: u64, client: u32, leg: Leg, number: u64) -> Fate {
    let dice = |stream| mixed([seed, u64::from(client) * 8 + stream, leg as u64, number]) % 100;
    Fate {
        delay: match dice(0) {
            0..30 => millis(dice(1) * 4),
            _ => Duration::ZERO,
        },
        lost: dice(2) < 12,
        copy_after: (dice(3) < 12).then(|| millis(dice(4) * 20)),
    }
}

/// Sections of one client: each waits for the lease, holds it, and gives it back or drops it.
async fn sections(locks: LockManager, clock: ManualClock, (seed, client): (u64, u64)) {
    let runtime: Arc<dyn lock_core::backend::Runtime> = Arc::new(clock);
    for section in 0..SECTIONS {
        let dice = |stream| mixed([seed, client + 100, stream, section]) % 100;
        let acquire = locks.acquire("r").ttl(LONG).wait(millis(8000));
        let patience = millis(if dice(0) < 30 { dice(1) * 10 } else { 20_000 });
        let Some(Ok(guard)) = runtime.timeout(patience, acquire.into_future()).await else {
            continue;
        };
        runtime.sleep(millis(dice(2) * 2)).await;
        if dice(3) < 70 {
            // Without an answer the manager goes on with it.
            drop(guard.release().await);
        }
    }
}

/// Plays one schedule until the network is calm, and returns its events.
async fn played(variant: Variant, seed: u64) -> (Vec<Event>, (usize, usize)) {
    let (clock, events) = (
        ManualClock::seeded(seed),
        Arc::<Mutex<Vec<Event>>>::default(),
    );
    let is_calm = Arc::new(AtomicBool::new(false));
    let (calm, seen) = (Arc::clone(&is_calm), Arc::clone(&events));
    let fates = move |client, leg, number| match calm.load(Ordering::Relaxed) {
        true => Fate::default(),
        false => fate(seed, client, leg, number),
    };
    let observe = move |_, event| lock(&seen).push(event);
    let settings = Settings::new(variant);
    let service = Service::new(settings, Arc::new(clock.clone()), fates, observe);
    let rig = Rig {
        clock: clock.clone(),
        service,
        fates: Arc::default(),
        events,
    };
    let (mut managers, mut tasks) = (Vec::new(), JoinSet::new());
    for client in 0..3_u32 {
        let locks = LockManager::builder().build(rig.client(client)).unwrap();
        managers.push(locks.clone());
        tasks.spawn(sections(locks, clock.clone(), (seed, client.into())));
    }
    rig.run(tasks.join_all()).await;
    is_calm.store(true, Ordering::Relaxed);
    rig.pass(Duration::from_secs(120)).await;
    drop(managers);
    let left = rig.left();
    let events = std::mem::take(&mut *lock(&rig.events));
    (events, left)
}

/// The state of the one resource, as its changes say it.
#[derive(Default)]
struct Followed {
    last: Option<FencingToken>,
    held: Option<FencingToken>,
    queue: Vec<AttemptId>,
    seen: BTreeMap<&'static str, usize>,
}

impl Followed {
    /// Tokens rise, one lease lives at a time, and only waiters are pushed to.
    fn follow(&mut self, change: Change) {
        let name = match change {
            Change::Granted {
                token,
                attempt,
                way,
                ..
            } => {
                assert!(self.last < Some(token) && self.held.is_none());
                (self.last, self.held) = (Some(token), Some(token));
                assert!(way == Way::Answer || self.queue.contains(&attempt));
                if way != Way::Offer {
                    self.queue.retain(|waiter| *waiter != attempt);
                }
                match way {
                    Way::Answer => "answered",
                    Way::Push => "pushed",
                    Way::Offer => "offered",
                }
            }
            Change::Ended { token, how } => {
                assert_eq!(self.held.take(), Some(token));
                match how {
                    HowEnded::OfferExpired => "offer expired",
                    HowEnded::Cancelled => "cancelled",
                    _ => "ended",
                }
            }
            Change::Confirmed { token, .. } => {
                assert_eq!(self.held, Some(token));
                "confirmed"
            }
            Change::Queued { attempt } => {
                assert!(!self.queue.contains(&attempt));
                self.queue.push(attempt);
                "queued"
            }
            Change::Unqueued { attempt } => {
                self.queue.retain(|waiter| *waiter != attempt);
                "unqueued"
            }
            Change::Joined { token, .. }
            | Change::Renewed { token, .. }
            | Change::HoldEnded { token, .. } => {
                assert_eq!(self.held, Some(token));
                "kept"
            }
        };
        *self.seen.entry(name).or_default() += 1;
    }
}

async fn plays_well(variant: Variant, happens: &[&str]) {
    let mut seen = BTreeMap::<_, usize>::new();
    for seed in 0..SCHEDULES {
        let (events, left) = played(variant, seed).await;
        assert_eq!(left, (0, 0), "{variant:?}, seed {seed}: something is left");
        let mut followed = Followed::default();
        for event in &events {
            if let Event::Changed(effect) = event {
                followed.follow(effect.change);
            }
        }
        for (name, times) in followed.seen {
            *seen.entry(name).or_default() += times;
        }
        if seed == 0 {
            let (again, _) = played(variant, seed).await;
            assert_eq!(events, again, "another run of the same seed");
        }
    }
    println!("{variant:?}: {seen:?}");
    for name in happens {
        assert!(seen.contains_key(name), "{name} never happened: {seen:?}");
    }
}

/// Catches: two leases at once, tokens that fall, and a lease or a place that stays.
#[tokio::test]
async fn leases_that_are_pushed_are_given_back() {
    plays_well(
        Variant::Pushes,
        &["answered", "pushed", "cancelled", "unqueued"],
    )
    .await;
}

/// Catches: the same faults, where leases are offered.
#[tokio::test]
async fn leases_that_are_offered_are_given_back() {
    let happens = ["answered", "offered", "confirmed", "offer expired"];
    plays_well(Variant::Offers, &happens).await;
}

/// Catches: the same faults, where waiters look.
#[tokio::test]
async fn leases_of_waiters_that_look_are_given_back() {
    plays_well(Variant::Polls, &["answered", "queued", "unqueued"]).await;
}

/// Catches: the same faults, without a queue.
#[tokio::test]
async fn leases_without_a_queue_are_given_back() {
    plays_well(Variant::Unqueued, &["answered", "cancelled"]).await;
}
