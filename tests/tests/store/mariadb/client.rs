//! Protected tables and the plain `mariadb` client, which knows nothing of this crate.

use e2e::{database_client::mariadb, documented::example_for};
use sqlx::Executor;

use crate::{
    mariadb::server::MariaDbServer,
    rule::{Harness, balance, by_row, fresh},
};

/// Accounts are protected, and the holder of the example has claimed its token.
async fn protected() -> MariaDbServer {
    let world: MariaDbServer = fresh().await;
    world.store().protect(&by_row()).await.unwrap();
    world
        .store()
        .pool()
        .execute(
            "INSERT INTO fenced_high_water_mark (resource, token, holder, issuer)
             VALUES ('account:42', 34, 'night-batch-7f3a', 'redis')",
        )
        .await
        .unwrap();
    world
}

#[tokio::test]
async fn the_documented_example_runs_in_the_client() {
    let world = protected().await;
    let (done, text) = mariadb(world.url(), &example_for("mariadb")).await;
    assert!(done, "{text}");
    assert_eq!(balance(&world).await, 90);
}

#[tokio::test]
async fn the_client_without_a_fence_is_refused() {
    let world = protected().await;
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
