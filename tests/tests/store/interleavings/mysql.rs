//! On MariaDB and MySQL, at each isolation level.

use std::{
    marker::PhantomData,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use e2e::servers::{MySqlDatabase, MySqlServer, OnMariaDb, OnMySql};
use fenced_store::{FencedStore, MySqlFencedStore};
use sqlx::{
    AssertSqlSafe, Connection, Executor, MySql, MySqlConnection, Row, mysql::MySqlPoolOptions,
};

use crate::{
    interleavings::{
        holder::Check,
        order::Who,
        tally::{self, Table},
        world::{NaiveBegin, World},
    },
    mysql::server::limits,
};

pub(crate) struct MySqlWorld<S> {
    holders: [Sessions; 2],
    observer: tokio::sync::Mutex<MySqlConnection>,
    _database: MySqlDatabase,
    server: PhantomData<S>,
}

/// The sessions of one holder.
struct Sessions {
    store: MySqlFencedStore,
    /// The numbers by which the server names the sessions.
    ids: Arc<Mutex<Vec<u64>>>,
}

impl<S: MySqlServer> MySqlWorld<S> {
    /// The isolation levels of the stale and of the new holder.
    pub(crate) async fn new(levels: [&'static str; 2]) -> Self {
        let database = S::database().await;
        let mut observer = MySqlConnection::connect(database.url()).await.unwrap();
        observer
            .execute("CREATE TABLE journal (run INT, who INT)")
            .await
            .unwrap();
        let holders = [
            Sessions::of::<S>(&database, levels[0]).await,
            Sessions::of::<S>(&database, levels[1]).await,
        ];
        holders[0].store.migrate().await.unwrap();
        Self {
            holders,
            observer: tokio::sync::Mutex::new(observer),
            _database: database,
            server: PhantomData,
        }
    }
}

impl Sessions {
    async fn of<S: MySqlServer>(database: &MySqlDatabase, level: &'static str) -> Self {
        let ids = Arc::new(Mutex::new(Vec::new()));
        let known = Arc::clone(&ids);
        let pool = MySqlPoolOptions::new().after_connect(move |connection, _| {
            let known = Arc::clone(&known);
            Box::pin(async move {
                let level = format!("SET SESSION TRANSACTION ISOLATION LEVEL {level}");
                connection.execute(AssertSqlSafe(level)).await?;
                connection.execute(AssertSqlSafe(limits::<S>(1))).await?;
                let id = sqlx::query_scalar("SELECT CONNECTION_ID()");
                let id = id.fetch_one(connection).await?;
                known
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push(id);
                Ok(())
            })
        });
        Self {
            store: FencedStore::new(pool.connect(database.url()).await.unwrap()),
            ids,
        }
    }

    /// Whether one of the sessions waits for a lock, by the server's list of transactions.
    fn wait_in(&self, status: &str) -> bool {
        let ids = self.ids.lock().unwrap_or_else(PoisonError::into_inner);
        status
            .split("---TRANSACTION ")
            .filter(|transaction| transaction.contains("LOCK WAIT"))
            .any(|transaction| {
                let is_of = |id| transaction.contains(&format!("thread id {id},"));
                ids.iter().any(is_of)
            })
    }
}

impl<S: MySqlServer> World for MySqlWorld<S> {
    type Db = MySql;

    const NAIVE_BEGIN: NaiveBegin = NaiveBegin::First("START TRANSACTION");
    const MARKS: &str = "fenced_high_water_mark";

    fn store(&self, who: Who) -> &MySqlFencedStore {
        &self.holders[who as usize].store
    }

    /// This does not use `information_schema.innodb_trx`, which shows an old state if it was read
    /// within the last tenth of a second.
    async fn until_blocked(&self, who: Who) {
        let mut observer = self.observer.lock().await;
        loop {
            // Most steps are done by then, and need no look.
            tokio::time::sleep(Duration::from_millis(1)).await;
            let status = observer
                .fetch_one("SHOW ENGINE INNODB STATUS")
                .await
                .unwrap();
            if self.holders[who as usize].wait_in(status.get(2)) {
                return;
            }
        }
    }

    async fn execute(connection: &mut MySqlConnection, sql: String) -> Result<(), sqlx::Error> {
        let sql = sqlx::raw_sql(AssertSqlSafe(sql));
        connection.execute(sql).await.map(drop)
    }

    async fn number(connection: &mut MySqlConnection, sql: String) -> Result<i64, sqlx::Error> {
        // Each statement has another text. If these were prepared, they would push others out of
        // the connection's memory.
        let number = connection.fetch_one(sqlx::raw_sql(AssertSqlSafe(sql)));
        number.await?.try_get(0)
    }
}

/// In serializable transactions a plain SELECT locks the rows that it reads, as ours does. This
/// does not help against a holder with another level. So at this level the stale holder of the
/// control has another level.
async fn no_order_of_steps_lets_a_stale_holder_through<S: MySqlServer>() {
    let mut table = Table::default();
    for levels in [
        ["READ COMMITTED", "READ COMMITTED"],
        ["REPEATABLE READ", "REPEATABLE READ"],
        ["SERIALIZABLE", "SERIALIZABLE"],
        ["READ COMMITTED", "SERIALIZABLE"],
    ] {
        let world = MySqlWorld::<S>::new(levels).await;
        let fenced = tally::of_all_orders(&world, Check::Fenced).await;
        table.add(levels.join(", "), Check::Fenced, fenced);
        if levels != ["SERIALIZABLE"; 2] {
            let control = tally::of_all_orders(&world, Check::PlainSelect).await;
            table.add(levels.join(", "), Check::PlainSelect, control);
        }
    }
    println!("{table}");
    table.assert_fenced_is_sound(4);
    table.assert_control_fails(3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_order_of_steps_lets_a_stale_holder_through_on_mariadb() {
    no_order_of_steps_lets_a_stale_holder_through::<OnMariaDb>().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_order_of_steps_lets_a_stale_holder_through_on_mysql() {
    no_order_of_steps_lets_a_stale_holder_through::<OnMySql>().await;
}
