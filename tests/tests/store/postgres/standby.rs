//! A name that leads to a standby for a while, as during a failover.

use e2e::{
    proxy::{Fault, Proxy},
    servers::DatabaseServer,
};
use fenced_store::{FenceError, FencedStore, Rights};
use lock_core::ErrorKind;
use sqlx::{
    PgPool,
    postgres::{PgConnectOptions, PgPoolOptions},
};

use crate::rule::{assert_kind, grant};

fn target(server: &DatabaseServer) -> String {
    let address: PgConnectOptions = server.url().parse().unwrap();
    format!("tcp://{}:{}", address.get_host(), address.get_port())
}

/// The sessions stay open, so only the refusal shows that they lead to a standby.
/// Catches: a pool that asks a standby as long as its sessions live.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pool_leaves_a_standby_as_soon_as_it_has_met_it() {
    let server = DatabaseServer::postgres(&[]).await;
    FencedStore::new(PgPool::connect(server.url()).await.unwrap())
        .migrate()
        .await
        .unwrap();
    let standby = server.lagging_standby().await;
    let name = Proxy::start(&target(&server)).await;
    let address: PgConnectOptions = server.url().parse().unwrap();
    let pool = PgPoolOptions::new().max_connections(4);
    let pool = pool.connect_lazy_with(address.host("127.0.0.1").port(name.port()));
    let store = FencedStore::new(pool);
    let own = grant("account:42", 33);
    store.claim(&own).await.unwrap();

    name.point_to(&target(&standby));
    name.inflict(Fault::Cut);
    let refused = loop {
        match store.claim(&own).await.unwrap_err() {
            // These are the connections that were cut.
            FenceError::Db { source } if source.as_database_error().is_none() => {}
            refused => break refused,
        }
    };
    assert_kind!(refused, Busy);
    assert!(refused.to_string().contains("read-only"), "{refused}");
    assert!(refused.is_retryable() && refused.may_pass());

    name.point_to(&target(&server));
    for _ in 0..8 {
        store.claim(&own).await.unwrap();
        store.begin(&own).await.unwrap().rollback().await.unwrap();
    }
}

/// Catches: a start on a standby that seems to succeed until the first request.
#[tokio::test]
async fn a_check_on_a_standby_says_so() {
    let server = DatabaseServer::postgres(&[]).await;
    let store = FencedStore::new(PgPool::connect(server.url()).await.unwrap());
    store.migrate().await.unwrap();
    store.check(Rights::ClaimAndWrite).await.unwrap();
    let standby = server.lagging_standby().await;
    let store = FencedStore::new(PgPool::connect(standby.url()).await.unwrap());
    for rights in [Rights::Write, Rights::ClaimAndWrite] {
        let told = store.check(rights).await.unwrap_err();
        assert_kind!(told, NotReady);
        assert!(
            told.to_string().contains("standby") && told.may_pass(),
            "{told}"
        );
    }
    let told = palisade::open(store).await.map(drop).unwrap_err();
    assert!(
        told.to_string().contains("standby") && told.may_pass(),
        "{told}"
    );
    let told = palisade::connect(standby.url()).await.unwrap_err();
    assert_eq!(told.kind(), ErrorKind::Unavailable, "{told}");
    assert!(told.to_string().contains("standby"), "{told}");
}
