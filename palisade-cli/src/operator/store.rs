use fenced_store::{MySqlFencedStore, PgFencedStore, SqliteFencedStore};
use sqlx::{mysql::MySqlConnectOptions, postgres::PgConnectOptions, sqlite::SqliteConnectOptions};

use crate::{
    address::Address,
    database::{connect, parse},
    failure::Failure,
    sqlite_file,
};

/// The store for a command of an operator. It already has its tables.
pub(super) enum Operated {
    Postgres(PgFencedStore),
    Sqlite(SqliteFencedStore),
    MySql(MySqlFencedStore),
}

/// Does the same with the store of any kind of database.
macro_rules! on_any {
    ($operated:expr, $store:ident => $do:expr) => {
        match $operated {
            Operated::Postgres($store) => $do,
            Operated::Sqlite($store) => $do,
            Operated::MySql($store) => $do,
        }
    };
}
pub(super) use on_any;

/// Opens the store at the address. Creates nothing there, because a role of operators may not, and
/// because a database with a misspelt name has no marks.
///
/// # Errors
/// [`Failure::Usage`] if the address is invalid, [`Failure::Missing`] if there is no such file,
/// [`Failure::Unreachable`] if no server answers there or it refuses us.
pub(super) async fn open(address: &Address) -> Result<Operated, Failure> {
    const ASK: &str = "SELECT 1";
    match address.scheme() {
        "postgres" | "postgresql" => {
            let options = parse(address, PgConnectOptions::host)?;
            Ok(Operated::Postgres(connect(options, address, ASK).await?))
        }
        "sqlite" => {
            let options: SqliteConnectOptions = parse(address, |options, _| options)?;
            sqlite_file::exists(&options, address)?;
            Ok(Operated::Sqlite(connect(options, address, ASK).await?))
        }
        "mysql" | "mariadb" => {
            let options = parse(address, MySqlConnectOptions::host)?;
            Ok(Operated::MySql(connect(options, address, ASK).await?))
        }
        _ => Err(Failure::Usage(format!(
            "--store {address}: unknown scheme; use postgres://HOST/DATABASE, \
             mariadb://HOST/DATABASE or sqlite:FILE"
        ))),
    }
}
