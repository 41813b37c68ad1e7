//! On Postgres, at each isolation level.

use std::time::Duration;

use e2e::servers::{PostgresDatabase, postgres_database};
use fenced_store::{
    FencedStore, PgFencedStore, PgIsolation,
    PgIsolation::{ReadCommitted, RepeatableRead, Serializable},
    PgTxOptions,
};
use sqlx::{
    AssertSqlSafe, Connection, Executor, PgConnection, Postgres, Row,
    postgres::{PgConnectOptions, PgPoolOptions},
};
use tokio::sync::Mutex;

use crate::interleavings::{
    holder::Check,
    order::Who,
    tally::{self, Table},
    world::{NaiveBegin, World},
};

pub(crate) struct OnPostgres {
    stores: [PgFencedStore; 2],
    /// The connection is not from a pool, because a pool would wait for each answer that the test
    /// does not wait for.
    observer: Mutex<PgConnection>,
    _database: PostgresDatabase,
}

impl OnPostgres {
    /// The isolation levels of the stale and of the new holder.
    pub(crate) async fn new(levels: [PgIsolation; 2]) -> Self {
        let database = postgres_database().await;
        let mut observer = PgConnection::connect(database.url()).await.unwrap();
        observer
            .execute("CREATE TABLE journal (run integer, who integer)")
            .await
            .unwrap();
        let store = async |who: Who| {
            let options: PgConnectOptions = database.url().parse().unwrap();
            let level = levels[who as usize];
            let options = options
                .application_name(name(who))
                .options([("default_transaction_isolation", sql(level))]);
            let pool = PgPoolOptions::new().connect_with(options).await.unwrap();
            // A holder that waits here waits for the next step of the other holder, however late
            // that step comes.
            let options = PgTxOptions::default()
                .isolation(level)
                .lock_timeout(Some(Duration::from_secs(60)));
            FencedStore::new(pool).with_options(options)
        };
        let stores = [store(Who::Stale).await, store(Who::New).await];
        stores[0].migrate().await.unwrap();
        Self {
            stores,
            observer: Mutex::new(observer),
            _database: database,
        }
    }
}

const fn name(who: Who) -> &'static str {
    match who {
        Who::Stale => "stale",
        Who::New => "new",
    }
}

const fn sql(level: PgIsolation) -> &'static str {
    match level {
        ReadCommitted => "read committed",
        RepeatableRead => "repeatable read",
        Serializable => "serializable",
    }
}

impl World for OnPostgres {
    type Db = Postgres;

    /// The control begins at the isolation level of its session.
    const NAIVE_BEGIN: NaiveBegin = NaiveBegin::First("BEGIN");
    const MARKS: &str = "fenced.high_water_mark";

    fn store(&self, who: Who) -> &PgFencedStore {
        &self.stores[who as usize]
    }

    async fn until_blocked(&self, who: Who) {
        const IS_BLOCKED: &str = "SELECT EXISTS (
            SELECT FROM pg_locks JOIN pg_stat_activity USING (pid)
            WHERE NOT granted AND application_name = $1 AND datname = current_database())";
        let mut observer = self.observer.lock().await;
        loop {
            // Most steps are done by then, and need no look.
            tokio::time::sleep(Duration::from_millis(1)).await;
            let is_blocked = sqlx::query_scalar(IS_BLOCKED).bind(name(who));
            if is_blocked.fetch_one(&mut *observer).await.unwrap() {
                return;
            }
        }
    }

    async fn execute(connection: &mut PgConnection, sql: String) -> Result<(), sqlx::Error> {
        connection.execute(AssertSqlSafe(sql)).await.map(drop)
    }

    async fn number(connection: &mut PgConnection, sql: String) -> Result<i64, sqlx::Error> {
        // Each statement has another text. If these were prepared, they would push others out of
        // the connection's memory.
        let number = connection.fetch_one(sqlx::raw_sql(AssertSqlSafe(sql)));
        number.await?.try_get(0)
    }
}

/// Serializable transactions protect each other, fenced or not. This does not help against a holder
/// with another level. So at this level the stale holder of the control has another level.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_order_of_steps_lets_a_stale_holder_through_on_postgres() {
    let mut table = Table::default();
    for levels in [
        [ReadCommitted, ReadCommitted],
        [RepeatableRead, RepeatableRead],
        [Serializable, Serializable],
        [ReadCommitted, Serializable],
    ] {
        let world = OnPostgres::new(levels).await;
        let fenced = tally::of_all_orders(&world, Check::Fenced).await;
        table.add(format!("{levels:?}"), Check::Fenced, fenced);
        if levels != [Serializable, Serializable] {
            let control = tally::of_all_orders(&world, Check::PlainSelect).await;
            table.add(format!("{levels:?}"), Check::PlainSelect, control);
        }
    }
    println!("{table}");
    table.assert_fenced_is_sound(4);
    table.assert_control_fails(3);
}
