//! Tables that take no write without a fence.

use fenced_store::{FenceError, Protection};
use lock_core::ResourceName;
use sqlx::Connection;

use super::{Harness, balance, fenced_add, fresh, grant};

const WRITES: [&str; 4] = [
    "UPDATE accounts SET balance = balance + 1 WHERE id = 42",
    "UPDATE accounts SET balance = balance + 1",
    "INSERT INTO accounts VALUES (44, 1)",
    "DELETE FROM accounts WHERE id = 42",
];

fn rows() -> Protection {
    Protection::rows("accounts", "id", "account:").unwrap()
}

fn whole() -> Protection {
    Protection::whole("accounts", ResourceName::new("accounts").unwrap())
}

/// Account 43 has 0, and the grant for 42 has been claimed.
async fn protected<H: Harness>(protection: &Protection) -> H {
    let world: H = fresh().await;
    unfenced(&world, "INSERT INTO accounts VALUES (43, 0)")
        .await
        .unwrap();
    world.store().protect(protection).await.unwrap();
    world
}

/// Writes through the pool, as a script would that knows nothing of fences.
async fn unfenced<H: Harness>(world: &H, statement: &'static str) -> Result<u64, FenceError> {
    let mut connection = world.store().pool().acquire().await.unwrap();
    Ok(H::execute(&mut connection, statement).await?)
}

pub(crate) async fn protected_table_refuses_unfenced_writes<H: Harness>() {
    for protection in [rows(), whole()] {
        let world: H = protected(&protection).await;
        for statement in WRITES {
            let error = unfenced(&world, statement).await.unwrap_err();
            assert!(
                matches!(error, FenceError::Unfenced { .. }),
                "{statement}: {error:?}"
            );
            assert!(!error.is_retryable() && !error.is_fenced());
        }
        assert_eq!(balance(&world).await, 100);
        // The control: it is the protection that refuses.
        world.store().unprotect(&protection).await.unwrap();
        unfenced(&world, WRITES[0]).await.unwrap();
        assert_eq!(balance(&world).await, 101);
    }
}

pub(crate) async fn protected_rows_take_writes_of_their_resource<H: Harness>() {
    let world: H = protected(&rows()).await;
    let own = grant("account:42", 33);
    world.store().claim(&own).await.unwrap();
    fenced_add(&world, &own).await.unwrap();
    H::add_at_once(world.store(), &own, 42, 1).await.unwrap();
    assert_eq!(balance(&world).await, 102);

    for statement in [
        "UPDATE accounts SET balance = 1 WHERE id = 43",
        "UPDATE accounts SET balance = balance + 1",
        "UPDATE accounts SET id = 44 WHERE id = 42",
        "UPDATE accounts SET id = 44 WHERE id = 43",
        "INSERT INTO accounts VALUES (44, 1)",
        "DELETE FROM accounts WHERE id = 43",
        "DELETE FROM accounts",
    ] {
        let mut tx = world.store().begin(&own).await.unwrap();
        let error: FenceError = H::execute(&mut tx, statement).await.unwrap_err().into();
        assert!(
            matches!(error, FenceError::WrongResource { .. }),
            "{statement}: {error:?}"
        );
        tx.rollback().await.unwrap();
    }
    let refused = H::add_at_once(world.store(), &own, 43, 1).await;
    let error = refused.map(drop).unwrap_err();
    assert!(
        matches!(error, FenceError::WrongResource { .. }),
        "{error:?}"
    );
    assert_eq!(balance(&world).await, 102);
}

pub(crate) async fn a_row_moves_between_resources_that_are_both_entered<H: Harness>() {
    let world: H = protected(&rows()).await;
    let (from, to) = (grant("account:42", 33), grant("account:44", 7));
    world.store().claim(&from).await.unwrap();
    world.store().claim(&to).await.unwrap();
    let mut tx = world.store().begin(&from).and(&to).await.unwrap();
    let statement = "UPDATE accounts SET id = 44 WHERE id = 42";
    assert_eq!(H::execute(&mut tx, statement).await.unwrap(), 1);
    tx.commit().await.unwrap();
}

pub(crate) async fn a_whole_table_is_one_resource<H: Harness>() {
    let world: H = protected(&whole()).await;
    let (table, row) = (grant("accounts", 33), grant("account:42", 33));
    world.store().claim(&table).await.unwrap();
    world.store().claim(&row).await.unwrap();
    for statement in WRITES {
        let mut tx = world.store().begin(&table).await.unwrap();
        assert!(H::execute(&mut tx, statement).await.unwrap() > 0);
        tx.rollback().await.unwrap();
        let mut tx = world.store().begin(&row).await.unwrap();
        let error: FenceError = H::execute(&mut tx, statement).await.unwrap_err().into();
        assert!(
            matches!(error, FenceError::WrongResource { .. }),
            "{statement}: {error:?}"
        );
    }
    fenced_add(&world, &table).await.unwrap();
    assert_eq!(balance(&world).await, 101);
}

/// Whatever the end of a fenced transaction was, its connection has no fence afterwards. The pool
/// has more than one connection, so each is looked at.
pub(crate) async fn a_fence_ends_with_its_transaction<H: Harness>() {
    let world: H = protected(&rows()).await;
    let own = grant("account:42", 33);
    world.store().claim(&own).await.unwrap();
    for end in 0..4 {
        let mut tx = world.store().begin(&own).await.unwrap();
        H::add(&mut tx, 0).await.unwrap();
        match end {
            0 => tx.commit().await.map(drop).unwrap(),
            1 => tx.rollback().await.unwrap(),
            2 => drop(tx),
            _ => {
                let mut savepoint = tx.begin().await.unwrap();
                H::add(&mut savepoint, 1).await.unwrap();
                drop(savepoint);
                tx.commit().await.unwrap_err();
            }
        }
        let mut connections = Vec::new();
        for _ in 0..world.store().pool().size() {
            connections.push(world.store().pool().acquire().await.unwrap());
        }
        for connection in &mut connections {
            // In a transaction, so that a pooler does not take the connection away meanwhile.
            let mut unfenced = Connection::begin(&mut **connection).await.unwrap();
            let error: FenceError = H::add(&mut unfenced, 1).await.unwrap_err().into();
            assert!(matches!(error, FenceError::Unfenced { .. }), "{error:?}");
            unfenced.rollback().await.unwrap();
        }
    }
    assert_eq!(balance(&world).await, 100);
}

/// The next holder has no token that the old one's triggers would take.
pub(crate) async fn protected_rows_go_to_the_next_holder<H: Harness>() {
    let world: H = protected(&rows()).await;
    let (old, new) = (grant("account:42", 33), grant("account:42", 34));
    world.store().claim(&old).await.unwrap();
    fenced_add(&world, &old).await.unwrap();
    world.store().claim(&new).await.unwrap();
    assert!(fenced_add(&world, &old).await.unwrap_err().is_fenced());
    fenced_add(&world, &new).await.unwrap();
    assert_eq!(balance(&world).await, 102);
}

pub(crate) async fn protecting_again_changes_nothing_or_replaces<H: Harness>() {
    let world: H = protected(&rows()).await;
    let before = world.triggers().await;
    assert!(!before.is_empty());
    world.store().protect(&rows()).await.unwrap();
    assert_eq!(world.triggers().await, before);

    world.store().protect(&whole()).await.unwrap();
    assert_ne!(world.triggers().await, before);
    let row = grant("account:42", 33);
    world.store().claim(&row).await.unwrap();
    let error = fenced_add(&world, &row).await.unwrap_err();
    assert!(
        matches!(error, FenceError::WrongResource { .. }),
        "{error:?}"
    );

    for _ in 0..2 {
        world.store().unprotect(&rows()).await.unwrap();
        assert_eq!(world.triggers().await, Vec::<String>::new());
    }
    unfenced(&world, WRITES[0]).await.unwrap();
}

pub(crate) async fn what_cannot_be_protected_is_named<H: Harness>() {
    let world: H = fresh().await;
    for (protection, missing) in [
        (
            Protection::rows("nowhere", "id", "account:").unwrap(),
            "nowhere",
        ),
        (
            Protection::rows("accounts", "number", "account:").unwrap(),
            "number",
        ),
        (rows().in_schema("elsewhere"), "elsewhere"),
    ] {
        let error = world.store().protect(&protection).await.unwrap_err();
        match &error {
            FenceError::CannotProtect { reason } => {
                assert!(
                    reason.contains(missing) || missing == "elsewhere",
                    "{reason}"
                );
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(world.triggers().await, Vec::<String>::new());
}
