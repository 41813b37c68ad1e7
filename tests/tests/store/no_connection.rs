//! A database that takes no connections. Its pool only reports a timeout.

use std::time::Duration;

use e2e::servers::DatabaseServer;
use fenced_store::{Dialect, FencedStore};
use sqlx::{Connection, PgConnection, mysql::MySqlPoolOptions, postgres::PgPoolOptions};

use crate::rule::{assert_kind, grant};

const SOON: Duration = Duration::from_millis(300);

/// Checks that each call reports the reason, and may be repeated.
async fn says<DB: Dialect>(store: &FencedStore<DB>, why: &str) {
    let own = grant("account:42", 33);
    for refused in [
        store.claim(&own).await.unwrap_err(),
        store.begin(&own).await.unwrap_err(),
        store.high_water(own.resource()).await.unwrap_err(),
        store.settle(&own).await.unwrap_err(),
    ] {
        assert_kind!(refused, Busy);
        assert!(refused.is_retryable() && refused.may_pass());
        let said = refused.to_string();
        assert!(
            said.starts_with("no connection to the database: "),
            "{said}"
        );
        assert!(said.contains(why), "{said}");
    }
}

#[tokio::test]
async fn a_server_that_is_down_refuses_connections() {
    let postgres = DatabaseServer::postgres(&[]).await;
    postgres.kill().await;
    let pool = PgPoolOptions::new().acquire_timeout(SOON);
    let store = FencedStore::new(pool.connect_lazy(postgres.url()).unwrap());
    says(&store, "Connection refused").await;
    for server in [
        DatabaseServer::mariadb().await,
        DatabaseServer::mysql().await,
    ] {
        server.kill().await;
        let pool = MySqlPoolOptions::new().acquire_timeout(SOON);
        let store = FencedStore::new(pool.connect_lazy(server.url()).unwrap());
        says(&store, "Connection refused").await;
    }
}

#[tokio::test]
async fn a_server_has_too_many_connections() {
    let few = ["max_connections=6", "superuser_reserved_connections=0"];
    let server = DatabaseServer::postgres(&few).await;
    let mut all = Vec::new();
    while let Ok(one) = PgConnection::connect(server.url()).await {
        all.push(one);
    }
    let pool = PgPoolOptions::new().acquire_timeout(SOON);
    let store = FencedStore::new(pool.connect_lazy(server.url()).unwrap());
    says(&store, "too many clients").await;
}
