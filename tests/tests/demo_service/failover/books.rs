//! The balances that the clients write, each of which has a name.

use fenced_store::{Dialect, FencedLocks, FencedStore, Storage};
use sqlx::{AssertSqlSafe, Executor, MySql, MySqlPool, PgPool, Postgres};

use crate::failover::crew::Place;

/// A balance, by its writer. `Twin` is written as `Held`, and nothing protects it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Book {
    Held,
    Twin,
    Leader,
    Job,
    Pool,
}

/// A database with balances.
pub(crate) trait Books: Dialect {
    /// Makes a new store behind this URL, in which the balances are 0.
    async fn open(url: &str);

    /// A lock service and a store.
    async fn shop(place: &Place) -> FencedLocks<Self>;

    /// Executes a statement.
    fn execute(
        session: &mut <Self as Storage>::Session,
        statement: String,
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send;

    /// Reads a balance, unfenced.
    async fn balance(store: &FencedStore<Self>, book: Book) -> Result<i64, sqlx::Error>;

    /// Sets a balance, unfenced.
    async fn write_unfenced(store: &FencedStore<Self>, book: Book, balance: i64);

    /// Adds 1.
    fn add(
        session: &mut <Self as Storage>::Session,
        book: Book,
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send {
        let add = format!("UPDATE books SET balance = balance + 1 WHERE name = '{book:?}'");
        Self::execute(session, add)
    }

    /// Sets a balance.
    fn write(
        session: &mut <Self as Storage>::Session,
        book: Book,
        balance: i64,
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send {
        Self::execute(session, set(book, balance))
    }
}

const TABLE: &str = "CREATE TABLE books (name VARCHAR(20) PRIMARY KEY, balance BIGINT NOT NULL);
    INSERT INTO books VALUES ('Held', 0), ('Twin', 0), ('Leader', 0), ('Job', 0), ('Pool', 0)";

fn set(book: Book, balance: i64) -> String {
    format!("UPDATE books SET balance = {balance} WHERE name = '{book:?}'")
}

macro_rules! books {
    ($database:ty, $pool:ty) => {
        impl Books for $database {
            async fn open(url: &str) {
                let store = FencedStore::new(<$pool>::connect(url).await.unwrap());
                store.migrate().await.unwrap();
                store.pool().execute(sqlx::raw_sql(TABLE)).await.unwrap();
            }

            async fn shop(place: &Place) -> FencedLocks<Self> {
                let store = FencedStore::new(<$pool>::connect(&place.store).await.unwrap());
                let locks = palisade::connect(&*place.lock).await.unwrap();
                match place.is_one {
                    true => FencedLocks::in_one_database(locks, store),
                    false => FencedLocks::new(locks, store),
                }
            }

            async fn execute(
                session: &mut <Self as Storage>::Session,
                statement: String,
            ) -> Result<(), sqlx::Error> {
                session.execute(AssertSqlSafe(statement)).await.map(drop)
            }

            async fn balance(store: &FencedStore<Self>, book: Book) -> Result<i64, sqlx::Error> {
                let read = format!("SELECT balance FROM books WHERE name = '{book:?}'");
                let read = sqlx::query_scalar(AssertSqlSafe(read));
                read.fetch_one(store.pool()).await
            }

            async fn write_unfenced(store: &FencedStore<Self>, book: Book, balance: i64) {
                let set = AssertSqlSafe(set(book, balance));
                store.pool().execute(set).await.unwrap();
            }
        }
    };
}

books!(Postgres, PgPool);
books!(MySql, MySqlPool);
