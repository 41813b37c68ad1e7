//! Idle marks are forgotten, and a floor replaces them.

use std::time::Duration;

use fenced_store::{
    Dialect, FenceError, FencedStore, Forget,
    admin::{AdminError, LowerFloor},
};
use lock_core::{InitialToken, ResourceName, Sequencer, backend::Runtime, backend::TokioRuntime};
use tokio::sync::Barrier;

use super::{
    SqlHarness, assert_kind, fenced_add, fresh, grant, grant_by, hand_over, high_water, reason,
    service, token, trusting,
};

const HOUR: Duration = Duration::from_secs(60 * 60);

const OLD: Forget = Forget::older_than(HOUR);

/// The token that a service which follows the clock issued this time ago.
fn ago(time: Duration) -> u64 {
    InitialToken::clock_token(TokioRuntime.unix_time() - time)
}

fn table<H: SqlHarness>(name: &str) -> String {
    let schema = H::BOOKS.starts_with("fenced.");
    format!("fenced{}{name}", if schema { '.' } else { '_' })
}

async fn execute<H: SqlHarness>(store: &FencedStore<H::Db>, statement: &str) -> u64
where
    H::Db: Dialect,
{
    let mut connection = store.pool().acquire().await.unwrap();
    H::execute(&mut connection, statement).await.unwrap()
}

/// Makes all marks old.
async fn age<H: SqlHarness>(world: &H) {
    let marks = table::<H>("high_water_mark");
    let age = format!("UPDATE {marks} SET claimed_at = '2020-01-02 03:04:05'");
    execute::<H>(world.store(), &age).await;
}

async fn forget<H: SqlHarness>(world: &H) -> u64 {
    world.store().forget_marks(&OLD).await.unwrap().marks
}

async fn floor<H: SqlHarness>(world: &H) -> Option<u64> {
    let floor = world.store().admin().floor().await.unwrap();
    floor.map(lock_core::FencingToken::get)
}

pub(crate) async fn a_forgotten_mark_leaves_a_floor<H: SqlHarness>() {
    let world: H = fresh().await;
    assert_eq!(floor(&world).await, None);
    let at = ago(3 * HOUR);
    let (older, holder) = (grant("account:42", at - 1), grant("account:42", at));
    world.store().claim(&holder).await.unwrap();
    age(&world).await;
    assert_eq!(forget(&world).await, 1);
    assert_eq!(high_water(&world, "account:42").await, None);
    assert_eq!(floor(&world).await, Some(at));

    let twin = grant("account:42", at);
    let other = grant("account:43", at);
    for late in [&older, &holder, &twin, &other] {
        let refused = world.store().claim(late).await.unwrap_err();
        assert_eq!(refused.needed_token(), Some(token(at + 1)));
        let text = refused.to_string();
        assert!(text.contains(&format!("its floor is {at}")), "{text}");
    }
    assert_kind!(fenced_add(&world, &holder).await.unwrap_err(), Stale);
    assert_kind!(world.store().settle(&holder).await.unwrap_err(), Stale);
    // Above the floor a token that was never claimed is still not claimed.
    let next = grant("account:42", at + 1);
    assert_kind!(fenced_add(&world, &next).await.unwrap_err(), NotClaimed);
    world.store().claim(&next).await.unwrap();
    fenced_add(&world, &next).await.unwrap();
}

/// A resource that has a mark takes tokens above the mark, whatever the floor is.
pub(crate) async fn a_mark_that_stays_is_not_below_the_floor<H: SqlHarness>() {
    let world: H = fresh().await;
    let (low, high) = (ago(4 * HOUR), ago(2 * HOUR));
    world
        .store()
        .claim(&grant("account:43", high))
        .await
        .unwrap();
    age(&world).await;
    world
        .store()
        .claim(&grant("account:42", low))
        .await
        .unwrap();
    assert_eq!(forget(&world).await, 1);
    assert_eq!(floor(&world).await, Some(high));
    let next = grant("account:42", low + 1);
    world.store().claim(&next).await.unwrap();
    fenced_add(&world, &next).await.unwrap();
}

/// A poisoned mark, or a mark that is far ahead of the clock, does not lift the floor.
pub(crate) async fn a_mark_that_is_young_or_ahead_or_in_use_stays<H: SqlHarness>() {
    let world: H = fresh().await;
    let store = trusting(&world);
    let idle = ago(2 * HOUR);
    let in_use = grant("in-use", idle - 1);
    for (resource, number) in [
        ("idle", idle),
        ("recent", ago(HOUR / 2)),
        ("ahead", ago(Duration::ZERO) + 1_000_000),
        ("poisoned", 999_999_999_999_999),
    ] {
        store.claim(&grant(resource, number)).await.unwrap();
    }
    store.claim(&in_use).await.unwrap();
    age(&world).await;
    store.claim(&grant("young", idle - 2)).await.unwrap();
    let mut tx = store.begin(&in_use).await.unwrap();
    H::add(&mut tx, 1).await.unwrap();
    let forgotten = if H::BOOKS == "_fenced_migrations" && H::QUOTE == '"' {
        // In SQLite the transaction is the one writer: nothing else is possible meanwhile.
        tx.commit().await.unwrap();
        execute::<H>(
            world.store(),
            "DELETE FROM fenced_high_water_mark WHERE resource = 'in-use'",
        )
        .await;
        forget(&world).await
    } else {
        let forgotten = forget(&world).await;
        tx.commit().await.unwrap();
        fenced_add(&world, &in_use).await.unwrap();
        forgotten
    };
    assert_eq!(forgotten, 1);
    assert_eq!(floor(&world).await, Some(idle));
    for stays in ["recent", "ahead", "poisoned", "young"] {
        assert!(high_water(&world, stays).await.is_some(), "{stays}");
    }
    // A grant of the present time is above the floor.
    let fresh = grant("account:42", ago(Duration::ZERO));
    world.store().claim(&fresh).await.unwrap();
}

/// Two scales in one store: the floor of one would shut out the other.
pub(crate) async fn a_store_whose_tokens_are_no_times_is_refused<H: SqlHarness>() {
    let world: H = fresh().await;
    for (resource, number) in [("account:42", 33), ("account:43", ago(2 * HOUR)), ("a", 77)] {
        world.store().claim(&grant(resource, number)).await.unwrap();
    }
    age(&world).await;
    match world.store().forget_marks(&OLD).await.unwrap_err() {
        AdminError::NotForgettable { reason, .. } => {
            assert!(reason.contains("do not follow the clock"), "{reason}");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(floor(&world).await, None);
    // If tokens are revisions, the present revision is the bound.
    let below = OLD.below(token(50));
    assert_eq!(world.store().forget_marks(&below).await.unwrap().marks, 1);
    assert_eq!(floor(&world).await, Some(33));
    assert_eq!(high_water(&world, "a").await, Some(77));
}

pub(crate) async fn no_mark_is_forgotten_within_the_longest_hold<H: SqlHarness>() {
    let world: H = fresh().await;
    world
        .store()
        .claim(&grant("account:42", ago(99 * HOUR)))
        .await
        .unwrap();
    age(&world).await;
    let refused = async |age: Duration| {
        let order = Forget::older_than(age);
        match world.store().forget_marks(&order).await {
            Err(AdminError::NotForgettable { .. }) => true,
            forgotten => forgotten.unwrap().marks > 10,
        }
    };
    assert!(refused(HOUR - Duration::from_millis(1)).await);
    world.store().state_longest_hold(3 * HOUR).await.unwrap();
    world.store().state_longest_hold(2 * HOUR).await.unwrap();
    assert!(refused(3 * HOUR - Duration::from_millis(1)).await);
    let endless = world.store().state_longest_hold(9000 * HOUR).await;
    assert!(matches!(endless, Err(AdminError::NotForgettable { .. })));
    assert!(!refused(3 * HOUR).await);
    assert_eq!(high_water(&world, "account:42").await, None);
}

pub(crate) async fn a_mark_that_was_refreshed_is_young<H: SqlHarness>() {
    let world: H = fresh().await;
    let at = ago(2 * HOUR);
    let (first, second) = (grant("account:42", at - 1), grant("account:42", at));
    world.store().claim(&first).await.unwrap();
    world.store().claim(&second).await.unwrap();
    age(&world).await;
    assert!(!world.store().refresh(&first).await.unwrap());
    assert!(
        !world
            .store()
            .refresh(&grant("account:42", at))
            .await
            .unwrap()
    );
    assert!(world.store().refresh(&second).await.unwrap());
    assert_eq!(forget(&world).await, 0);
    fenced_add(&world, &second).await.unwrap();
}

/// Early grants of the new service cannot be claimed for a resource whose mark is forgotten.
pub(crate) async fn a_handover_chooses_above_the_floor<H: SqlHarness>() {
    let world: H = fresh().await;
    let at = ago(2 * HOUR);
    world.store().claim(&grant("account:42", at)).await.unwrap();
    age(&world).await;
    assert_eq!(forget(&world).await, 1);
    let done = hand_over(world.store(), "redis", &service("etcd")).await;
    let first = done.floor.get();
    assert!(first > at);
    assert_eq!(floor(&world).await, Some(first - 1));
    let early = grant_by("etcd", "account:42", at + 1);
    assert_kind!(world.store().claim(&early).await.unwrap_err(), Stale);
    let next = grant_by("etcd", "account:42", first);
    world.store().claim(&next).await.unwrap();
    let deeds = world.administration().await;
    assert!(deeds[1].starts_with("seal mark None"), "{deeds:?}");
}

/// A floor above all that the lock service will issue locks out each new resource.
pub(crate) async fn an_operator_lowers_the_floor<H: SqlHarness>() {
    let world: H = fresh().await;
    let admin = world.store().admin();
    let at = ago(2 * HOUR);
    world.store().claim(&grant("account:42", at)).await.unwrap();
    age(&world).await;
    assert_eq!(forget(&world).await, 1);
    let lower = |expected, to| LowerFloor::new(token(expected), to, reason());
    assert!(matches!(
        lower(7, Some(token(7))),
        Err(AdminError::NotALowering { .. })
    ));
    let wrong = admin.lower_floor(&lower(at - 1, None).unwrap()).await;
    match wrong.unwrap_err() {
        AdminError::FloorNotAsExpected { current, .. } => assert_eq!(current, at),
        other => panic!("{other:?}"),
    }
    assert_eq!(floor(&world).await, Some(at));
    admin
        .lower_floor(&lower(at, Some(token(20))).unwrap())
        .await
        .unwrap();
    assert_eq!(floor(&world).await, Some(20));
    world.store().claim(&grant("account:42", 21)).await.unwrap();
    let deeds = world.administration().await;
    let expected = format!("reset mark None Some({at}) Some(20)");
    assert!(deeds[0].starts_with(&expected), "{deeds:?}");
}

/// How often a token was claimed that is not above the greatest claimed one of its resource.
async fn went_back<H: SqlHarness>(has_floor: bool) -> usize {
    const RESOURCES: u64 = 4;
    const ROUNDS: u64 = 12;
    let world: H = fresh().await;
    let both = Barrier::new(2);
    let first = ago(24 * HOUR);
    let forgets = async {
        for _ in 0..ROUNDS {
            both.wait().await;
            age(&world).await;
            if has_floor {
                forget(&world).await;
            } else {
                for resource in 0..RESOURCES {
                    let name = ResourceName::new(format!("order:{resource}")).unwrap();
                    world.delete_mark(&name).await;
                }
            }
            both.wait().await;
        }
    };
    let claims = async {
        let mut greatest: Vec<u64> = (0..RESOURCES).map(|_| 0).collect();
        let mut back = 0;
        for round in 0..ROUNDS {
            both.wait().await;
            for resource in 0..RESOURCES {
                let name = format!("order:{resource}");
                let seen = &mut greatest[usize::try_from(resource).unwrap()];
                // A zombie of an earlier round claims at the same time as the other half and after
                // it. Every second time a new holder claims, too.
                let (zombie, new) = (first + 3 * round, first + 10 * round + resource);
                let is_new = (round + resource).is_multiple_of(2);
                for number in [zombie, if is_new { new } else { zombie }] {
                    if claimed(&world, &grant(&name, number)).await {
                        back += usize::from(number < *seen);
                        *seen = std::cmp::max(*seen, number);
                    }
                }
            }
            both.wait().await;
            for (resource, seen) in (0..RESOURCES).zip(&greatest) {
                let late = grant(&format!("order:{resource}"), first + 3 * round);
                let is_back = late.token().get() < *seen;
                back += usize::from(claimed(&world, &late).await && is_back);
            }
        }
        back
    };
    let ((), back) = tokio::join!(forgets, claims);
    back
}

async fn claimed<H: SqlHarness>(world: &H, grant: &Sequencer) -> bool {
    match world.store().claim(grant).await {
        Ok(()) => true,
        Err(error @ (FenceError::Stale { .. } | FenceError::DuplicateToken { .. })) => {
            assert!(error.needed_token() > Some(grant.token()));
            false
        }
        // A mark that is deleted by hand, without its lock, may be gone in the middle of a claim.
        Err(FenceError::NotClaimed { .. }) => false,
        Err(error) if error.is_retryable() => false,
        Err(error) => panic!("{error:?}"),
    }
}

pub(crate) async fn no_token_goes_back_while_marks_are_forgotten<H: SqlHarness>() {
    assert_eq!(went_back::<H>(true).await, 0);
    assert!(
        went_back::<H>(false).await > 0,
        "the control lets no zombie in"
    );
}
