//! A store that only observes.

use fenced_store::{FenceError, NotReady, Observed, Protection};
use lock_core::ResourceName;

use super::{SqlHarness, balance, fresh, grant};

const ADD: &str = "UPDATE accounts SET balance = balance + 10 WHERE id = 42";

/// The observer counts these writes, and they are stored. So this is the control of all refusals.
pub(crate) async fn a_write_that_would_be_refused_is_reported_and_stored<H: SqlHarness>() {
    let world: H = fresh().await;
    let observer = world.store().observe().await.unwrap();
    let (old, new) = (grant("account:42", 33), grant("account:42", 34));
    let early = observer.look(&old).await;
    assert!(
        matches!(early, Observed::Refused(FenceError::NotClaimed { .. })),
        "{early:?}"
    );
    for grant in [&old, &new] {
        let claimed = observer.claim(grant).await;
        assert!(matches!(claimed, Observed::Accepted), "{claimed:?}");
    }
    for (grant, is_refused) in [(&new, false), (&old, true)] {
        let mut connection = world.store().pool().acquire().await.unwrap();
        H::execute(&mut connection, ADD).await.unwrap();
        let seen = observer.look(grant).await;
        assert_eq!(seen.is_refused(), is_refused, "{seen:?}");
    }
    assert_eq!(balance(&world).await, 120);
    // The claim of a holder that was overtaken does not take the mark back.
    assert!(observer.claim(&old).await.is_refused());
    assert!(matches!(observer.look(&new).await, Observed::Accepted));
    let enforced = world.store().begin(&old).await;
    assert!(matches!(enforced, Err(FenceError::Stale { .. })));
}

pub(crate) async fn a_store_with_a_protected_table_does_not_observe<H: SqlHarness>() {
    let world: H = fresh().await;
    let whole = Protection::whole("accounts", ResourceName::new("accounts").unwrap());
    world.store().protect(&whole).await.unwrap();
    let refused = world.store().observe().await;
    let is_it = |error: &FenceError| {
        matches!(error, FenceError::NotReady(NotReady::Protected { table, .. })
            if table.contains("accounts"))
    };
    assert!(refused.as_ref().is_err_and(is_it), "{refused:?}");
    world.store().unprotect(&whole).await.unwrap();
    assert!(world.store().observe().await.is_ok());
}
