//! Protected tables and the plain `mariadb` client, which knows nothing of this crate.

use e2e::{database_client::mariadb, documented::example_for, servers::MySqlServer};
use sqlx::Executor;

use crate::{
    mysql::server::MySqlStore,
    rule::{Harness, SqlHarness, balance, by_row, claimed, fresh},
};

/// Accounts are protected, and the holder of the example has claimed its token.
async fn protected<S: MySqlServer>() -> MySqlStore<S> {
    let world: MySqlStore<S> = fresh().await;
    world.store().protect(&by_row()).await.unwrap();
    world
        .store()
        .pool()
        .execute(
            "INSERT INTO fenced_high_water_mark (resource, token, holder, issuer)
             VALUES ('account:42', 34, SHA2('night-batch-7f3a', 256), 'redis')",
        )
        .await
        .unwrap();
    world
}

async fn the_documented_example_runs_in_the_client<S: MySqlServer>() {
    let world = protected::<S>().await;
    let (done, text) = mariadb(world.url(), &example_for("mariadb")).await;
    assert!(done, "{text}");
    assert_eq!(balance(&world).await, 90);
}

async fn a_reader_of_a_mark_cannot_write_as_its_holder<S: MySqlServer>() {
    let world = protected::<S>().await;
    let read = sqlx::query_scalar("SELECT holder FROM fenced_high_water_mark");
    let read: String = read.fetch_one(world.store().pool()).await.unwrap();
    let example = example_for("mariadb");
    let posing = example.replace("night-batch-7f3a", &read);
    let (done, text) = mariadb(world.url(), &posing).await;
    assert!(!done && text.contains("(FN010)"), "{text}");
    assert_eq!(balance(&world).await, 100);
    // The digest does not help at the lock service, either: no part of it is the text that a holder
    // presents there.
    let (world, grant) = claimed::<MySqlStore<S>>().await;
    assert!(!world.dump().await.contains(&grant.holder().digest()));
}

async fn the_client_without_a_fence_is_refused<S: MySqlServer>() {
    let world = protected::<S>().await;
    let update = "UPDATE accounts SET balance = 0 WHERE id = 42;";
    let example = example_for("mariadb");
    let stale = example.replace("token = 34", "token = 33");
    assert_ne!(stale, example);
    for (script, code) in [
        (update.to_owned(), "FN010"),
        (format!("START TRANSACTION; {update} COMMIT;"), "FN010"),
        (stale, "FN010"),
        (format!("{example} {update}"), "FN010"),
        (
            example.replace("SET balance = balance - 10", "SET id = 43"),
            "FN011",
        ),
    ] {
        let (done, text) = mariadb(world.url(), &script).await;
        assert!(
            !done && text.contains(&format!("({code})")),
            "{script}: {text}"
        );
    }
    assert_eq!(balance(&world).await, 90);
}

on_both!(
    the_documented_example_runs_in_the_client,
    a_reader_of_a_mark_cannot_write_as_its_holder,
    the_client_without_a_fence_is_refused,
);
