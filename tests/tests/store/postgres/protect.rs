//! Protected tables: cases of Postgres alone.

use e2e::documented::example_for;
use fenced_store::{FenceError, Protection};
use futures_util::future::try_join_all;
use lock_core::{ResourceName, Sequencer};
use sqlx::{AssertSqlSafe, Executor, PgConnection};

use crate::{
    postgres::{roles::Roles, server::PostgresServer},
    rule::{
        Harness, SqlHarness, assert_kind, balance, by_row, fenced_add, fresh, grant, is_of_another,
        is_unfenced, protected_and_claimed,
    },
};

async fn run(connection: &mut PgConnection, statement: &'static str) -> Result<u64, FenceError> {
    Ok(connection.execute(statement).await?.rows_affected())
}

/// The error of an unfenced statement.
async fn unfenced(world: &PostgresServer, statement: &'static str) -> FenceError {
    let mut connection = world.store().pool().acquire().await.unwrap();
    run(&mut connection, statement).await.unwrap_err()
}

/// The error of a statement in a transaction of this grant.
async fn within(world: &PostgresServer, grant: &Sequencer, statement: &'static str) -> FenceError {
    let mut tx = world.store().begin(grant).await.unwrap();
    run(&mut tx, statement).await.unwrap_err()
}

#[tokio::test]
async fn truncate_is_refused_but_for_a_holder_of_the_whole_table() {
    let (world, row) = protected_and_claimed::<PostgresServer>().await;
    let truncate = "TRUNCATE accounts";
    assert!(is_unfenced(&unfenced(&world, truncate).await));
    assert!(is_of_another(&within(&world, &row, truncate).await));

    let table = grant("accounts", 33);
    let whole = Protection::whole("accounts", table.resource().clone());
    world.store().protect(&whole).await.unwrap();
    world.store().claim(&table).await.unwrap();
    assert!(is_unfenced(&unfenced(&world, truncate).await));
    let mut tx = world.store().begin(&table).await.unwrap();
    run(&mut tx, truncate).await.unwrap();
    tx.commit().await.unwrap();
}

/// A trigger that was switched off, or that fires only for replicas, protects nothing. If the table
/// is protected again, the trigger is made again.
#[tokio::test]
async fn triggers_that_were_switched_off_are_made_again() {
    let (world, _) = protected_and_claimed::<PostgresServer>().await;
    let pool = world.store().pool();
    for (trigger, statement) in [
        ("fenced_guard", "UPDATE accounts SET balance = 100"),
        ("fenced_guard_truncate", "TRUNCATE accounts"),
    ] {
        for state in ["DISABLE", "ENABLE REPLICA"] {
            let switch = format!("ALTER TABLE accounts {state} TRIGGER {trigger}");
            pool.execute(AssertSqlSafe(switch)).await.unwrap();
            let mut tx = pool.begin().await.unwrap();
            run(&mut tx, statement).await.unwrap();
            tx.rollback().await.unwrap();
            world.store().protect(&by_row()).await.unwrap();
            let error = unfenced(&world, statement).await;
            assert!(is_unfenced(&error), "{trigger} {state}: {error:?}");
        }
    }
}

#[tokio::test]
async fn bulk_loads_and_statements_within_statements_are_refused() {
    let (world, _) = protected_and_claimed::<PostgresServer>().await;
    for statement in [
        "INSERT INTO accounts SELECT g, 0 FROM generate_series(100, 110) g",
        "WITH gone AS (DELETE FROM accounts RETURNING *) SELECT * FROM gone",
        "DO $$ BEGIN UPDATE accounts SET balance = 0; END $$",
        "MERGE INTO accounts a USING (VALUES (42)) v (id) ON a.id = v.id
         WHEN MATCHED THEN UPDATE SET balance = 0",
    ] {
        let error = unfenced(&world, statement).await;
        assert!(is_unfenced(&error), "{statement}: {error:?}");
    }
    let pool = world.store().pool();
    let mut connection = pool.acquire().await.unwrap();
    let mut copy = connection
        .copy_in_raw("COPY accounts FROM STDIN")
        .await
        .unwrap();
    copy.send("43\t1\n".as_bytes()).await.unwrap();
    let error = FenceError::from(copy.finish().await.unwrap_err());
    assert!(is_unfenced(&error), "{error:?}");
    assert_eq!(balance(&world).await, 100);
}

/// The row that is really written counts, not the proposed row.
#[tokio::test]
async fn on_conflict_is_judged_by_what_it_does() {
    let (world, own) = protected_and_claimed::<PostgresServer>().await;
    let pool = world.store().pool();
    pool.execute("ALTER TABLE accounts ADD owner text UNIQUE")
        .await
        .unwrap();
    let mut tx = world.store().begin(&own).await.unwrap();
    run(&mut tx, "UPDATE accounts SET owner = 'ann' WHERE id = 42")
        .await
        .unwrap();
    tx.commit().await.unwrap();

    let mut tx = world.store().begin(&own).await.unwrap();
    for (statement, rows) in [
        (
            "INSERT INTO accounts VALUES (42, 1) ON CONFLICT DO NOTHING",
            0,
        ),
        (
            "INSERT INTO accounts VALUES (42, 1)
             ON CONFLICT (id) DO UPDATE SET balance = excluded.balance",
            1,
        ),
        // Another id, which is not the one that is stored.
        (
            "INSERT INTO accounts VALUES (43, 2, 'ann')
             ON CONFLICT (owner) DO UPDATE SET balance = excluded.balance",
            1,
        ),
    ] {
        assert_eq!(run(&mut tx, statement).await.unwrap(), rows, "{statement}");
    }
    tx.commit().await.unwrap();
    assert_eq!(balance(&world).await, 2);
    let moves = "INSERT INTO accounts VALUES (42, 1) ON CONFLICT (id) DO UPDATE SET id = 43";
    assert!(is_of_another(&within(&world, &own, moves).await));
}

/// The row may have been changed by triggers of the application.
#[tokio::test]
async fn a_row_that_another_trigger_has_changed_is_judged_as_it_is() {
    let (world, own) = protected_and_claimed::<PostgresServer>().await;
    let pool = world.store().pool();
    pool.execute(
        "CREATE FUNCTION another() RETURNS trigger LANGUAGE plpgsql AS
         $$ BEGIN new.id := 43; RETURN new; END $$;
         CREATE TRIGGER zzz BEFORE UPDATE ON accounts FOR EACH ROW EXECUTE FUNCTION another()",
    )
    .await
    .unwrap();
    let error = within(&world, &own, "UPDATE accounts SET balance = 0").await;
    assert!(is_of_another(&error), "{error:?}");
}

#[tokio::test]
async fn cascades_are_refused_too() {
    let (world, own) = protected_and_claimed::<PostgresServer>().await;
    let pool = world.store().pool();
    pool.execute(
        "CREATE TABLE entries (account int REFERENCES accounts ON DELETE CASCADE);
         INSERT INTO entries VALUES (42)",
    )
    .await
    .unwrap();
    let entries = Protection::rows("entries", "account", "entries-of:").unwrap();
    world.store().protect(&entries).await.unwrap();
    let delete = "DELETE FROM accounts WHERE id = 42";
    assert!(is_of_another(&within(&world, &own, delete).await));
    let both = grant("entries-of:42", 1);
    world.store().claim(&both).await.unwrap();
    let mut tx = world.store().begin(&own).and(&both).await.unwrap();
    assert_eq!(run(&mut tx, delete).await.unwrap(), 1);
}

/// The context is a protection against bugs: a session that sets it by hand is not stopped, but
/// even this session cannot write after a claim.
#[tokio::test]
async fn a_forged_context_does_not_write_after_a_claim() {
    const FORGED: &str = "SELECT set_config('fenced.open_transaction', ' account:42=33 ', true)";
    let (world, _) = protected_and_claimed::<PostgresServer>().await;
    let pool = world.store().pool();
    let mut forged = pool.begin().await.unwrap();
    forged.execute(FORGED).await.unwrap();
    PostgresServer::add(&mut forged, 1).await.unwrap();
    let new = grant("account:42", 34);
    let busy = world.impatient().await.claim(&new).await.unwrap_err();
    assert_kind!(busy, Busy);
    forged.commit().await.unwrap();
    world.store().claim(&new).await.unwrap();

    let mut forged = pool.begin().await.unwrap();
    forged.execute(FORGED).await.unwrap();
    let error = PostgresServer::add(&mut forged, 1).await.unwrap_err();
    match error {
        FenceError::Stale {
            presented,
            high_water,
            ..
        } => assert_eq!((presented.get(), high_water.get()), (33, 34)),
        other => panic!("{other:?}"),
    }
    assert_eq!(balance(&world).await, 101);
}

/// Each context names a token which was never claimed, or does not consist of tokens.
#[tokio::test]
async fn a_context_that_is_none_is_refused() {
    let (world, _) = protected_and_claimed::<PostgresServer>().await;
    for entered in [
        " account:42=34 ",
        " account:42=033 ",
        " account:42= ",
        "account:42=33",
        " account:42=33",
        " account:4=33 ",
        " account:42=x ",
        " account:42=33=33 ",
        " xaccount:42=33 ",
        "   ",
        " account:42=99999999999999999999999 ",
    ] {
        let mut tx = world.store().pool().begin().await.unwrap();
        sqlx::query("SELECT set_config('fenced.open_transaction', $1, true)")
            .bind(entered)
            .execute(&mut *tx)
            .await
            .unwrap();
        let error: FenceError = PostgresServer::add(&mut tx, 1).await.unwrap_err();
        assert!(
            matches!(
                error,
                FenceError::Unfenced { .. }
                    | FenceError::WrongResource { .. }
                    | FenceError::NotClaimed { .. }
            ),
            "{entered:?}: {error:?}"
        );
    }
}

#[tokio::test]
async fn the_rows_of_all_partitions_are_protected() {
    let world: PostgresServer = fresh().await;
    let pool = world.store().pool();
    pool.execute(
        "CREATE SCHEMA bank;
         CREATE TABLE bank.parts (id int, region int) PARTITION BY RANGE (region);
         CREATE TABLE bank.north PARTITION OF bank.parts FOR VALUES FROM (0) TO (10);
         CREATE TABLE bank.south PARTITION OF bank.parts FOR VALUES FROM (10) TO (20);
         INSERT INTO bank.parts VALUES (42, 1), (43, 11)",
    )
    .await
    .unwrap();
    let rows = Protection::rows("parts", "id", "part:")
        .unwrap()
        .in_schema("bank");
    let own = grant("part:42", 1);
    let whole = Protection::whole("parts", own.resource().clone()).in_schema("bank");
    world.store().claim(&own).await.unwrap();
    for protection in [rows, whole] {
        world.store().protect(&protection).await.unwrap();
        pool.execute("CREATE TABLE bank.later PARTITION OF bank.parts DEFAULT")
            .await
            .unwrap();
        for statement in [
            "UPDATE bank.parts SET region = 12 WHERE id = 42",
            "UPDATE bank.south SET id = 7",
            "DELETE FROM bank.north",
            "INSERT INTO bank.later VALUES (44, 99)",
            "TRUNCATE bank.parts",
            "TRUNCATE bank.south",
        ] {
            let error = unfenced(&world, statement).await;
            assert!(is_unfenced(&error), "{statement}: {error:?}");
        }
        let mut tx = world.store().begin(&own).await.unwrap();
        run(&mut tx, "UPDATE bank.parts SET region = 12 WHERE id = 42")
            .await
            .unwrap();
        tx.rollback().await.unwrap();
        pool.execute("ALTER TABLE bank.south DISABLE TRIGGER fenced_guard")
            .await
            .unwrap();
        world.store().protect(&protection).await.unwrap();
        let error = unfenced(&world, "UPDATE bank.south SET id = 7").await;
        assert!(is_unfenced(&error), "{error:?}");
        pool.execute(
            "DROP TABLE bank.later; CREATE TABLE bank.later PARTITION OF bank.parts DEFAULT",
        )
        .await
        .unwrap();
        // A younger partition can be emptied, until the table is protected again.
        pool.execute("TRUNCATE bank.later").await.unwrap();
        world.store().protect(&protection).await.unwrap();
        assert!(is_unfenced(&unfenced(&world, "TRUNCATE bank.later").await));
        world.store().unprotect(&protection).await.unwrap();
        assert_eq!(world.triggers().await, Vec::<String>::new());
        pool.execute("DROP TABLE bank.later").await.unwrap();
    }
    let functions: i64 = sqlx::query_scalar(
        "SELECT count(*) FROM pg_proc WHERE pronamespace = 'fenced_guards'::regnamespace
         AND starts_with(proname, 'guard_')",
    )
    .fetch_one(pool)
    .await
    .unwrap();
    assert_eq!(functions, 0);
}

/// Instances of a service that start together do this.
#[tokio::test]
async fn protecting_at_the_same_time_is_no_error() {
    let world: PostgresServer = fresh().await;
    for prefix in ["account:", "other:", "account:"] {
        let rows = Protection::rows("accounts", "id", prefix).unwrap();
        let all = (0..8).map(|_| world.store().protect(&rows));
        try_join_all(all).await.unwrap();
        assert!(is_unfenced(&unfenced(&world, "DELETE FROM accounts").await));
    }
}

/// In psql a call with a forgotten argument calls another function.
/// Catches: a call by hand that gives a table to a resource which no client can claim.
#[tokio::test]
async fn names_that_would_lock_everybody_out_protect_nothing() {
    let (world, own) = protected_and_claimed::<PostgresServer>().await;
    let pool = world.store().pool();
    for call in [
        "SELECT fenced.protect('accounts', 'id')",
        "SELECT fenced.protect('accounts', 'id', 'acc ount:')",
        "SELECT fenced.protect('accounts', 'all accounts')",
        "SELECT fenced.protect('accounts', '')",
    ] {
        let error = pool.execute(call).await.unwrap_err();
        let code = error.as_database_error().unwrap().code();
        assert_eq!(code.as_deref(), Some("22023"), "{call}: {error}");
    }
    // Each row is protected as before.
    let mut tx = world.store().begin(&own).await.unwrap();
    run(&mut tx, "UPDATE accounts SET balance = 1 WHERE id = 42")
        .await
        .unwrap();
    tx.commit().await.unwrap();

    let column = Protection::whole("accounts", ResourceName::new("id").unwrap());
    let error = world.store().protect(&column).await.unwrap_err();
    assert_kind!(error, CannotProtect);
}

#[tokio::test]
async fn a_renamed_table_stays_protected() {
    let (world, own) = protected_and_claimed::<PostgresServer>().await;
    let pool = world.store().pool();
    pool.execute("ALTER TABLE accounts RENAME TO moved; ALTER TABLE moved RENAME id TO number")
        .await
        .unwrap();
    // The trigger looks for the column by its name. So all writes fail until the table is protected
    // again.
    pool.execute("UPDATE moved SET balance = 0")
        .await
        .unwrap_err();
    let moved = Protection::rows("moved", "number", "account:").unwrap();
    world.store().protect(&moved).await.unwrap();
    assert!(is_unfenced(
        &unfenced(&world, "UPDATE moved SET balance = 0").await
    ));
    let mut tx = world.store().begin(&own).await.unwrap();
    run(&mut tx, "UPDATE moved SET balance = 0").await.unwrap();
    tx.commit().await.unwrap();
}

/// Catches: a row that becomes another resource, because the text of its id changes.
#[tokio::test]
async fn a_table_whose_id_has_another_type_is_protected_anew() {
    let (world, own) = protected_and_claimed::<PostgresServer>().await;
    let pool = world.store().pool();
    pool.execute("ALTER TABLE accounts ALTER id TYPE numeric(20, 2)")
        .await
        .unwrap();
    let mut tx = world.store().begin(&own).await.unwrap();
    match PostgresServer::add(&mut tx, 1).await.unwrap_err() {
        FenceError::WrongResource { source } => {
            assert!(source.to_string().contains("protect it anew"), "{source}");
        }
        error => panic!("{error:?}"),
    }
    tx.rollback().await.unwrap();

    world.store().protect(&by_row()).await.unwrap();
    let renamed = grant("account:42.00", 33);
    world.store().claim(&renamed).await.unwrap();
    let mut tx = world.store().begin(&renamed).await.unwrap();
    PostgresServer::add(&mut tx, 1).await.unwrap();
    tx.commit().await.unwrap();
}

/// A writer needs no right in our schema. The error of a refused write says what is wrong.
#[tokio::test]
async fn a_role_without_any_right_of_ours_is_refused_the_same() {
    let (world, own) = protected_and_claimed::<PostgresServer>().await;
    let mut connection = world.store().pool().acquire().await.unwrap();
    let role: String = sqlx::query_scalar("SELECT 'writer_' || current_database()")
        .fetch_one(&mut *connection)
        .await
        .unwrap();
    let script = format!("CREATE ROLE {role}; GRANT ALL ON accounts TO {role}; SET ROLE {role}");
    run_script(&mut connection, script).await;
    let error: FenceError = PostgresServer::add(&mut connection, 1).await.unwrap_err();
    assert!(is_unfenced(&error), "{error:?}");
    let left = "SELECT fenced.unprotect('accounts')";
    connection.execute(left).await.unwrap_err();
    run_script(
        &mut connection,
        format!("RESET ROLE; DROP OWNED BY {role}; DROP ROLE {role}"),
    )
    .await;
    fenced_add(&world, &own).await.unwrap();
}

async fn run_script(connection: &mut PgConnection, script: String) {
    let script = sqlx::raw_sql(AssertSqlSafe(script));
    connection.execute(script).await.unwrap();
}

/// At every isolation level, a context that is older than a claim is refused.
#[tokio::test]
async fn triggers_see_the_latest_mark_at_every_isolation_level() {
    for level in ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"] {
        let (world, _) = protected_and_claimed::<PostgresServer>().await;
        let mut forged = world.store().pool().begin().await.unwrap();
        let script = format!(
            "SET TRANSACTION ISOLATION LEVEL {level}; SELECT * FROM accounts;
             SELECT set_config('fenced.open_transaction', ' account:42=33 ', true)"
        );
        run_script(&mut forged, script).await;
        world.store().claim(&grant("account:42", 34)).await.unwrap();
        let error: FenceError = PostgresServer::add(&mut forged, 1).await.unwrap_err();
        assert!(
            matches!(
                error,
                FenceError::Stale { .. } | FenceError::Serialization { .. }
            ),
            "{level}: {error:?}"
        );
        forged.rollback().await.unwrap();
        assert_eq!(balance(&world).await, 100);
    }
}

/// The role is neither a superuser nor the owner of our schema.
#[tokio::test]
async fn the_owner_of_a_table_may_be_given_the_right_to_protect_it() {
    let roles = Roles::as_documented().await;
    roles
        .as_admin(
            "CREATE ROLE table_owner LOGIN PASSWORD 'sesame';
             GRANT CREATE ON SCHEMA public TO table_owner;
             ALTER TABLE accounts OWNER TO table_owner",
        )
        .await;
    let owner = roles.store_of("table_owner").await;
    owner.protect(&by_row()).await.unwrap_err();
    roles.as_admin(&example_for("rights")).await;
    owner.protect(&by_row()).await.unwrap();

    let app = roles.store_of("app").await;
    let own = grant("account:42", 33);
    app.claim(&own).await.unwrap();
    let mut connection = app.pool().acquire().await.unwrap();
    let error: FenceError = PostgresServer::add(&mut connection, 1).await.unwrap_err();
    assert!(is_unfenced(&error), "{error:?}");
    let mut tx = app.begin(&own).await.unwrap();
    PostgresServer::add(&mut tx, 1).await.unwrap();
    tx.commit().await.unwrap();
    assert!(app.unprotect(&by_row()).await.is_err());
    owner.unprotect(&by_row()).await.unwrap();
    PostgresServer::add(&mut connection, 1).await.unwrap();
}
