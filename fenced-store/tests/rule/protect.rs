//! Tables that take no write without a fence.

use fenced_store::{FenceError, Protection};
use lock_core::{ResourceName, Sequencer};
use sqlx::Connection;

use super::{ENDS, SqlHarness, assert_kind, balance, claimed, fenced_add, fresh, grant};

const WRITES: [&str; 4] = [
    "UPDATE accounts SET balance = balance + 1 WHERE id = 42",
    "UPDATE accounts SET balance = balance + 1",
    "INSERT INTO accounts VALUES (44, 1)",
    "DELETE FROM accounts WHERE id = 42",
];

/// Each account is a resource.
pub(crate) fn by_row() -> Protection {
    Protection::rows("accounts", "id", "account:").unwrap()
}

/// Accounts are protected by row, and the grant for 42 has been claimed.
pub(crate) async fn protected_and_claimed<H: SqlHarness>() -> (H, Sequencer) {
    let (world, grant) = claimed::<H>().await;
    world.store().protect(&by_row()).await.unwrap();
    (world, grant)
}

pub(crate) const fn is_unfenced(error: &FenceError) -> bool {
    matches!(error, FenceError::Unfenced { .. })
}

pub(crate) const fn is_of_another(error: &FenceError) -> bool {
    matches!(error, FenceError::WrongResource { .. })
}

fn whole() -> Protection {
    Protection::whole("accounts", ResourceName::new("accounts").unwrap())
}

/// Account 43 has 0, and the grant for 42 has been claimed.
async fn protected<H: SqlHarness>(protection: &Protection) -> H {
    let world: H = fresh().await;
    unfenced(&world, "INSERT INTO accounts VALUES (43, 0)")
        .await
        .unwrap();
    world.store().protect(protection).await.unwrap();
    world
}

/// Writes through the pool, as a script does that knows nothing about fences.
async fn unfenced<H: SqlHarness>(world: &H, statement: &'static str) -> Result<u64, FenceError> {
    let mut connection = world.store().pool().acquire().await.unwrap();
    Ok(H::execute(&mut connection, statement).await?)
}

pub(crate) async fn protected_table_refuses_unfenced_writes<H: SqlHarness>() {
    for protection in [by_row(), whole()] {
        let world: H = protected(&protection).await;
        for statement in WRITES {
            let error = unfenced(&world, statement).await.unwrap_err();
            assert_kind!(error, Unfenced, "{statement}");
            assert!(!error.is_retryable() && !error.is_fenced());
        }
        assert_eq!(balance(&world).await, 100);
        // The control: without the protection the write is accepted.
        world.store().unprotect(&protection).await.unwrap();
        unfenced(&world, WRITES[0]).await.unwrap();
        assert_eq!(balance(&world).await, 101);
    }
}

pub(crate) async fn protected_rows_take_writes_of_their_resource<H: SqlHarness>() {
    let world: H = protected(&by_row()).await;
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
        assert_kind!(error, WrongResource, "{statement}");
        tx.rollback().await.unwrap();
    }
    let refused = H::add_at_once(world.store(), &own, 43, 1).await;
    let error = refused.map(drop).unwrap_err();
    assert_kind!(error, WrongResource);
    assert_eq!(balance(&world).await, 102);
}

pub(crate) async fn a_row_moves_between_resources_that_are_both_entered<H: SqlHarness>() {
    let world: H = protected(&by_row()).await;
    let (from, to) = (grant("account:42", 33), grant("account:44", 7));
    world.store().claim(&from).await.unwrap();
    world.store().claim(&to).await.unwrap();
    let mut tx = world.store().begin(&from).and(&to).await.unwrap();
    let statement = "UPDATE accounts SET id = 44 WHERE id = 42";
    assert_eq!(H::execute(&mut tx, statement).await.unwrap(), 1);
    tx.commit().await.unwrap();
}

pub(crate) async fn a_whole_table_is_one_resource<H: SqlHarness>() {
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
        assert_kind!(error, WrongResource, "{statement}");
    }
    fenced_add(&world, &table).await.unwrap();
    assert_eq!(balance(&world).await, 101);
}

/// Whatever the end of a fenced transaction was, its connection has no fence afterwards. The pool
/// has more than one connection, so each connection is checked.
pub(crate) async fn a_fence_ends_with_its_transaction<H: SqlHarness>() {
    let world: H = protected(&by_row()).await;
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
                // The savepoint was neither released nor rolled back, so the fate of its writes is
                // open.
                let error = tx.commit().await.unwrap_err();
                assert_kind!(error, Aborted);
            }
        }
        let mut connections = Vec::new();
        for _ in 0..world.store().pool().size() {
            connections.push(world.store().pool().acquire().await.unwrap());
        }
        for connection in &mut connections {
            // This is in a transaction, so that a pooler does not change the connection meanwhile.
            let mut unfenced = Connection::begin(&mut **connection).await.unwrap();
            let error: FenceError = H::add(&mut unfenced, 1).await.unwrap_err();
            assert_kind!(error, Unfenced);
            unfenced.rollback().await.unwrap();
        }
    }
    assert_eq!(balance(&world).await, 100);
}

/// The triggers accept the token of the next holder, and refuse that of the old holder.
pub(crate) async fn protected_rows_go_to_the_next_holder<H: SqlHarness>() {
    let world: H = protected(&by_row()).await;
    let (old, new) = (grant("account:42", 33), grant("account:42", 34));
    world.store().claim(&old).await.unwrap();
    fenced_add(&world, &old).await.unwrap();
    world.store().claim(&new).await.unwrap();
    assert!(fenced_add(&world, &old).await.unwrap_err().is_fenced());
    fenced_add(&world, &new).await.unwrap();
    assert_eq!(balance(&world).await, 102);
}

pub(crate) async fn protecting_again_changes_nothing_or_replaces<H: SqlHarness>() {
    let world: H = protected(&by_row()).await;
    let before = world.triggers().await;
    assert!(!before.is_empty());
    world.store().protect(&by_row()).await.unwrap();
    assert_eq!(world.triggers().await, before);

    world.store().protect(&whole()).await.unwrap();
    assert_ne!(world.triggers().await, before);
    let row = grant("account:42", 33);
    world.store().claim(&row).await.unwrap();
    let error = fenced_add(&world, &row).await.unwrap_err();
    assert_kind!(error, WrongResource);

    for _ in 0..2 {
        world.store().unprotect(&by_row()).await.unwrap();
        assert_eq!(world.triggers().await, Vec::<String>::new());
    }
    unfenced(&world, WRITES[0]).await.unwrap();
}

pub(crate) async fn a_table_that_cannot_be_protected_is_named<H: SqlHarness>() {
    let world: H = fresh().await;
    unfenced(&world, "CREATE VIEW rich AS SELECT * FROM accounts")
        .await
        .unwrap();
    for (protection, missing) in [
        (
            Protection::rows("nowhere", "id", "account:").unwrap(),
            "nowhere",
        ),
        (
            Protection::rows("accounts", "number", "account:").unwrap(),
            "number",
        ),
        (Protection::rows("rich", "id", "account:").unwrap(), "rich"),
        (by_row().in_schema("elsewhere"), "elsewhere"),
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

/// A transaction that a statement has ended, which sqlx does not notice, leaves no fence on its
/// connection.
pub(crate) async fn the_commit_of_a_transaction_that_was_ended_clears_its_note_away<
    H: SqlHarness,
>() {
    let world: H = protected(&by_row()).await;
    let own = grant("account:42", 33);
    world.store().claim(&own).await.unwrap();
    let store = world.store_of_one().await;
    for statement in ENDS {
        let mut tx = store.begin(&own).await.unwrap();
        H::execute(&mut tx, statement).await.unwrap();
        let error = tx.commit().await.unwrap_err();
        assert_kind!(error, Aborted, "{statement}");
        let mut connection = store.pool().acquire().await.unwrap();
        let error = H::add_by_itself(&mut connection, 1).await.unwrap_err();
        assert_kind!(error, Unfenced, "{statement}");
    }
    fenced_add(&world, &own).await.unwrap();
}

/// A name of a table, a column or a prefix may contain characters that mean something in SQL or in
/// a format string.
pub(crate) async fn hostile_names_of_tables_and_columns_are_names<H: SqlHarness>() {
    let world: H = fresh().await;
    let names = [
        "a b",
        "Upper",
        "quote\"s",
        "it's",
        "back`tick",
        "%I%L$body$",
        "a.b",
        "select",
        "--",
        "{}",
        " FOR EACH ROW BEGIN",
    ];
    for (token, name) in (1..).zip(names) {
        let doubled = name.replace(H::QUOTE, &format!("{0}{0}", H::QUOTE));
        let quoted = format!("{0}{doubled}{0}", H::QUOTE);
        let create = format!("CREATE TABLE {quoted} ({quoted} VARCHAR(10))");
        let mut connection = world.store().pool().acquire().await.unwrap();
        H::execute(&mut connection, &create).await.unwrap();
        let protection = Protection::rows(name, name, "it's%I$body$:").unwrap();
        for _ in 0..2 {
            world.store().protect(&protection).await.unwrap();
        }
        let insert = format!("INSERT INTO {quoted} VALUES ('1')");
        let error = H::execute(&mut connection, &insert).await.unwrap_err();
        let error = FenceError::from(error);
        assert_kind!(error, Unfenced, "{name}");
        drop(connection);
        let row = grant("it's%I$body$:1", token);
        world.store().claim(&row).await.unwrap();
        let mut tx = world.store().begin(&row).await.unwrap();
        H::execute(&mut tx, &insert).await.unwrap();
        tx.commit().await.unwrap();
        // A row without an id belongs to no resource.
        let mut tx = world.store().begin(&row).await.unwrap();
        let nobodys = format!("INSERT INTO {quoted} VALUES (NULL)");
        let error = H::execute(&mut tx, &nobodys).await.unwrap_err();
        let error = FenceError::from(error);
        assert_kind!(error, WrongResource, "{name}");
        tx.rollback().await.unwrap();
        world.store().unprotect(&protection).await.unwrap();
        assert_eq!(world.triggers().await, Vec::<String>::new());
    }
}
