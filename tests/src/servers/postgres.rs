use sqlx::{
    AssertSqlSafe, Connection, Executor, PgConnection, Postgres, postgres::PgConnectOptions,
};
use tokio::sync::OnceCell;

use super::database::{Databases, Server, TestDatabase};
use crate::warden::ServerKind;

/// The variable that names a Postgres server to use instead of starting one.
///
/// Its role must be allowed to create databases.
pub const POSTGRES_URL_VARIABLE: &str = "PALISADE_TEST_POSTGRES_URL";

/// An empty database on a Postgres server.
pub type PostgresDatabase = TestDatabase<Postgres>;

/// Makes an empty database on a real server that the tests of this process share.
///
/// # Panics
/// If there is no server: `postgres` is not installed, or the server in
/// `PALISADE_TEST_POSTGRES_URL` refuses us.
pub async fn postgres_database() -> PostgresDatabase {
    static SHARED: OnceCell<Server<Postgres>> = OnceCell::const_new();
    let new = || Server::new(ServerKind::Postgres, POSTGRES_URL_VARIABLE);
    SHARED.get_or_init(new).await.create_database().await
}

impl Databases for Postgres {
    fn database(options: &PgConnectOptions, name: &str) -> PgConnectOptions {
        options.clone().database(name)
    }

    fn drop_statement(name: &str) -> String {
        format!("DROP DATABASE {name} WITH (FORCE)")
    }

    async fn execute(options: &PgConnectOptions, sql: String) -> Result<(), sqlx::Error> {
        let mut connection = PgConnection::connect_with(options).await?;
        connection.execute(AssertSqlSafe(sql)).await?;
        connection.close().await
    }
}
