//! The store that an address names.

use std::{error::Error, iter, str::FromStr, time::Duration};

use fenced_store::{
    Dialect, FenceError, FencedStore, MySqlFencedStore, PgFencedStore, Rights, SqliteFencedStore,
};
use lock_core::{Operation, backend::support::database_url};
use palisade_gateway::KeyTable;
use sqlx::{
    ConnectOptions, Connection, Executor, Pool, mysql::MySqlConnectOptions, pool::PoolOptions,
    postgres::PgConnectOptions,
};
use tokio::time::timeout;

use crate::{address::Address, failure::Failure, sqlite_file};

/// How long a database may take to answer: at the start, and for each connection of the pool.
const PATIENCE: Duration = Duration::from_secs(5);

/// A store whose database was chosen at run time.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum AnyStore {
    /// A store in MySQL or MariaDB.
    MySql(MySqlFencedStore),
    /// A store in PostgreSQL.
    Postgres(PgFencedStore),
    /// A store in a file of SQLite.
    Sqlite(SqliteFencedStore),
}

impl AnyStore {
    /// Its name in reports.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::MySql(_) => "mysql",
            Self::Postgres(_) => "postgres",
            Self::Sqlite(_) => "sqlite",
        }
    }
}

/// The tables that are created if they are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tables {
    /// The tables of a store, and the table of a gateway's idempotency keys.
    OfGateway,
    OfStore,
}

/// Opens the store at the address. Creates its missing tables, if the role may create them, and
/// checks that the role may use them.
///
/// # Errors
/// [`Failure::Usage`] if the address is invalid, [`Failure::Missing`] if the folder of a file does
/// not exist, [`Failure::Unreachable`] if no server answers there or it refuses us.
pub(crate) async fn open(address: &Address, tables: Tables) -> Result<AnyStore, Failure> {
    match address.scheme() {
        "postgres" | "postgresql" => Ok(AnyStore::Postgres(
            open_pool(postgres(address)?, address, tables).await?,
        )),
        "sqlite" => {
            let options = SqliteFencedStore::recommended(parse(address, |options, _| options)?)
                .create_if_missing(true);
            sqlite_file::folder_exists(&options, address)?;
            Ok(AnyStore::Sqlite(open_pool(options, address, tables).await?))
        }
        "mysql" | "mariadb" => {
            let options = parse(address, MySqlConnectOptions::host)?;
            Ok(AnyStore::MySql(open_pool(options, address, tables).await?))
        }
        _ => Err(Failure::Usage(format!(
            "--store {address}: unknown scheme; use postgres://HOST/DATABASE, \
             mysql://HOST/DATABASE or sqlite:FILE"
        ))),
    }
}

/// The options of a connection. Fenced transactions have timeouts of their own; the timeout here
/// bounds the unfenced writes.
fn postgres(address: &Address) -> Result<PgConnectOptions, Failure> {
    let lock_timeout = ("lock_timeout", PATIENCE.as_millis());
    Ok(parse(address, PgConnectOptions::host)?.options([lock_timeout]))
}

/// Reads the options of an address. `with_host` is the argument of [`database_url::parse`].
pub(crate) fn parse<O>(
    address: &Address,
    with_host: impl FnOnce(O, &str) -> O,
) -> Result<O, Failure>
where
    O: FromStr<Err = sqlx::Error>,
{
    let text = address.secret();
    if text.contains(":memory:") {
        return Err(Failure::Usage(
            "--store: a database in memory cannot be shared by connections; use sqlite:FILE".into(),
        ));
    }
    database_url::parse(text, with_host).map_err(|error| {
        let error = error.during(Operation::Connect, "store");
        Failure::Usage(format!("--store {address}: {error}; see --help"))
    })
}

async fn open_pool<DB, O>(
    options: O,
    address: &Address,
    tables: Tables,
) -> Result<FencedStore<DB>, Failure>
where
    DB: KeyTable,
    DB::Connection: Connection<Options = O>,
    for<'c> &'c mut DB::Connection: Executor<'c, Database = DB>,
    O: ConnectOptions<Connection = DB::Connection>,
{
    let first = match tables {
        Tables::OfGateway => DB::CREATE,
        Tables::OfStore => "SELECT 1",
    };
    let store = connect(options, address, first).await?;
    let ready = async {
        store.migrate().await?;
        store.check(Rights::ClaimAndWrite).await
    };
    ready.await.map_err(|error: FenceError| {
        let source = error.source().map(|source| format!(": {}", told(source)));
        unreachable(address, format!("{error}{}", source.unwrap_or_default()))
    })?;
    Ok(store)
}

/// Connects to a store. Its database has answered this statement.
pub(crate) async fn connect<DB, O>(
    options: O,
    address: &Address,
    first: &'static str,
) -> Result<FencedStore<DB>, Failure>
where
    DB: Dialect,
    DB::Connection: Connection<Options = O>,
    for<'c> &'c mut DB::Connection: Executor<'c, Database = DB>,
    O: ConnectOptions<Connection = DB::Connection>,
{
    // This opens a single connection first. A pool would retry until its time is up, and then
    // report only a timeout.
    let first = async {
        let mut connection = options.connect().await?;
        connection.execute(sqlx::raw_sql(first)).await?;
        connection.close().await
    };
    match timeout(PATIENCE, first).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => return Err(unreachable(address, told(&error))),
        Err(_) => {
            let why = format!("no answer within {PATIENCE:?}");
            return Err(unreachable(address, why));
        }
    }
    let pool: Pool<DB> = PoolOptions::new()
        .acquire_timeout(PATIENCE)
        .connect_lazy_with(options);
    Ok(FencedStore::new(pool))
}

/// The message of the database, if the error comes from the database. sqlx adds the line in the
/// sources of Postgres that raised the error, which looks like a line of ours.
#[must_use]
pub fn told(error: &(dyn Error + 'static)) -> String {
    let mut causes = iter::successors(Some(error), |&error| error.source());
    let of_database = causes.find_map(|error| {
        let error = error.downcast_ref::<sqlx::Error>()?;
        error.as_database_error()
    });
    match of_database {
        Some(database) => database.message().to_owned(),
        None => error.to_string(),
    }
}

fn unreachable(address: &Address, why: String) -> Failure {
    Failure::Unreachable {
        role: "store",
        option: "store",
        address: address.clone(),
        why,
    }
}
