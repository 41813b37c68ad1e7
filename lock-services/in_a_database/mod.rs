//! Cases for lock services in databases. The list is the same for each database.
//!
//! A database implements [`Database`], and `database_cases!` makes a named test of each case. The
//! tests of Postgres, of MySQL and MariaDB, and of SQLite mount this module. The databases with a
//! server mount `bank.rs` and `crashes.rs`, too, because a server can crash.

pub(crate) mod any_language;
mod processes;

use std::path::PathBuf;

use e2e::{depositor::DEBIANS_PYTHON, observer::until};
use fenced_store::{Dialect, Storage};
use serde_json::Value;
use sqlx::Pool;

pub(crate) use self::{any_language::*, processes::*};

/// An empty database of one test, ready for leases.
pub(crate) trait Database: Send + Sync + Sized + 'static {
    type Db: Dialect;

    /// The table of the waiters.
    const WAITER: &'static str;

    /// The documented program in Python that deposits under a lock.
    const DEPOSITOR: &'static str;

    /// The text of the fence in that program, and a text that refuses nothing, which is put in its
    /// place.
    const FENCE: [&'static str; 2];

    fn fresh() -> impl Future<Output = Self> + Send;

    /// The URL of the lock service.
    fn url(&self) -> String;

    /// The URL for programs that do not use our driver.
    fn plain(&self) -> String;

    /// A pool of the application.
    fn pool(&self) -> impl Future<Output = Pool<Self::Db>> + Send;

    /// Executes statements. The number of rows that they affect is returned.
    fn execute(
        session: &mut Session<Self>,
        statements: &str,
    ) -> impl Future<Output = Result<u64, sqlx::Error>> + Send;

    /// The rows of a query for numbers.
    fn numbers(
        session: &mut Session<Self>,
        query: &str,
    ) -> impl Future<Output = Result<Vec<Vec<i64>>, sqlx::Error>> + Send;

    /// An interpreter with the driver of this database.
    fn python() -> impl Future<Output = PathBuf> + Send {
        async { PathBuf::from(DEBIANS_PYTHON) }
    }

    /// Whether the depositor says that its fence has refused the deposit.
    fn is_refusal(said: &Value) -> bool;
}

pub(crate) type Session<D> = <<D as Database>::Db as Storage>::Session;

/// The only number that a query returns.
pub(crate) async fn number<D: Database>(pool: &Pool<D::Db>, query: &str) -> i64 {
    let mut session = pool.acquire().await.unwrap();
    let rows = D::numbers(&mut session, query).await.unwrap();
    rows[0][0]
}

/// Waits until this number of waiters wait for a resource.
pub(crate) async fn until_waiting<D: Database>(pool: &Pool<D::Db>, resource: &str, waiters: i64) {
    let waiting = format!(
        "SELECT count(*) FROM {} WHERE resource = '{resource}'",
        D::WAITER
    );
    until("they wait", async || {
        number::<D>(pool, &waiting).await == waiters
    })
    .await;
}

/// Makes a named test of each case.
macro_rules! database_cases {
    ($database:ty) => {
        $crate::in_a_database::database_cases!($database:
            a_waiter_that_was_killed_or_stopped_is_passed_over,
            a_holder_that_was_killed_or_stopped_costs_the_next_one_its_ttl,
            a_waiter_sees_the_release_of_another_process,
            python_and_rust_wait_in_one_queue,
            python_that_was_stopped_past_its_lease_is_refused,
        );
    };
    ($database:ty: $($case:ident),* $(,)?) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                $crate::in_a_database::$case::<$database>().await;
            }
        )*
    };
}
pub(crate) use database_cases;

/// The statements of a [`Database`], which are the same in each driver.
macro_rules! statements {
    () => {
        async fn execute(
            session: &mut $crate::in_a_database::Session<Self>,
            statements: &str,
        ) -> Result<u64, sqlx::Error> {
            let statements = sqlx::raw_sql(sqlx::AssertSqlSafe(statements));
            let done = sqlx::Executor::execute(session, statements).await?;
            Ok(done.rows_affected())
        }

        async fn numbers(
            session: &mut $crate::in_a_database::Session<Self>,
            query: &str,
        ) -> Result<Vec<Vec<i64>>, sqlx::Error> {
            let query = sqlx::raw_sql(sqlx::AssertSqlSafe(query));
            let rows = sqlx::Executor::fetch_all(session, query).await?;
            let numbers = |row| {
                let columns = 0..sqlx::Row::len(row);
                columns.map(|at| sqlx::Row::try_get(row, at)).collect()
            };
            rows.iter().map(numbers).collect()
        }
    };
}
pub(crate) use statements;
