//! When a mark was claimed or set: text that sorts as the times do.

use fenced_store::admin::{Reason, Reset};
use lock_core::ResourceName;

use crate::{
    file::SqliteFile,
    rule::{Harness, fresh, grant, hand_over, service, token},
};

async fn claimed_at(world: &SqliteFile) -> String {
    sqlx::query_scalar("SELECT claimed_at FROM fenced_high_water_mark")
        .fetch_one(world.store().pool())
        .await
        .unwrap()
}

#[tokio::test]
async fn times_of_claims_and_of_orders_sort_together() {
    let world: SqliteFile = fresh().await;
    let reason = || Reason::new("moved").unwrap();
    let account = ResourceName::new("account:42").unwrap();
    world.store().claim(&grant("account:42", 33)).await.unwrap();
    let claimed = claimed_at(&world).await;
    let reset = Reset::raise(account, token(33), token(40), reason()).unwrap();
    world
        .store()
        .admin()
        .reset_high_water(&reset)
        .await
        .unwrap();
    let reset = claimed_at(&world).await;
    hand_over(world.store(), "redis", &service("etcd")).await;
    let sealed = claimed_at(&world).await;
    assert!(
        claimed <= reset && reset <= sealed,
        "{claimed} {reset} {sealed}"
    );
    for time in [claimed, reset, sealed] {
        assert_eq!(
            (time.len(), &time[10..11], &time[23..]),
            (24, "T", "Z"),
            "{time}"
        );
    }
}
