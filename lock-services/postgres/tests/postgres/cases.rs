//! The cases of all lock services in databases.

use std::time::Duration;

use e2e::servers::{DatabaseServer, PostgresDatabase};
use serde_json::{Value, json};
use sqlx::{
    PgPool, Postgres,
    postgres::{PgConnectOptions, PgPoolOptions},
};

use crate::{
    bank::Server,
    crashes::{Crashing, crash_cases},
    in_a_database::{Database, database_cases, statements},
    world::database,
};

pub(crate) struct OnPostgres(PostgresDatabase);

impl Database for OnPostgres {
    type Db = Postgres;

    const WAITER: &'static str = "fenced.waiter";

    const DEPOSITOR: &'static str = "fenced_deposit.py";

    const FENCE: [&'static str; 2] = [
        "SELECT fenced.begin_fenced(%s, %s, %s, %s)",
        "SELECT %s, %s, %s, %s",
    ];

    async fn fresh() -> Self {
        Self(database().await)
    }

    fn url(&self) -> String {
        self.0.url().to_owned()
    }

    fn plain(&self) -> String {
        self.0.url().split('?').next().unwrap().to_owned()
    }

    async fn pool(&self) -> PgPool {
        PgPool::connect(self.0.url()).await.unwrap()
    }

    statements!();

    fn is_refusal(said: &Value) -> bool {
        *said == json!({ "refused": "FN001" })
    }
}

impl Server for OnPostgres {
    const NOW_US: &'static str = "(extract(epoch from clock_timestamp()) * 1000000)::bigint";

    async fn durable(url: &str) -> PgPool {
        let pool = PgPoolOptions::new().acquire_timeout(Duration::from_secs(5));
        // The commits are flushed, whatever the server's default is.
        let address: PgConnectOptions = url.parse().unwrap();
        let address = address.options([("synchronous_commit", "on")]);
        pool.connect_with(address).await.unwrap()
    }
}

impl Crashing for OnPostgres {
    const ROUNDS: usize = 8;

    /// The operator has set a default on which leases must not depend.
    async fn start() -> DatabaseServer {
        DatabaseServer::postgres(&["synchronous_commit=off"]).await
    }

    /// Two of the rounds shut the server down. The others kill it.
    async fn stop(server: &DatabaseServer, round: usize) {
        if round % 4 == 3 {
            server.shut_down().await;
        } else {
            server.stop_immediately().await;
        }
    }
}

database_cases!(OnPostgres);
crash_cases!(OnPostgres);
