use sqlx::{
    AssertSqlSafe, Connection, Executor, MySql, MySqlConnection, mysql::MySqlConnectOptions,
};
use tokio::sync::OnceCell;

use super::database::{Databases, Server, TestDatabase};
use crate::warden::ServerKind;

/// The variable that names a MariaDB server to use instead of starting one.
///
/// Its user must have all rights: tests create users and end sessions, too.
pub const MARIADB_URL_VARIABLE: &str = "PALISADE_TEST_MARIADB_URL";

/// An empty database on a MariaDB server.
pub type MariaDbDatabase = TestDatabase<MySql>;

/// Makes an empty database on a real server that the tests of this process share.
///
/// # Panics
/// If there is no server: `mariadbd` is not installed, or the server in `PALISADE_TEST_MARIADB_URL`
/// refuses us.
pub async fn mariadb_database() -> MariaDbDatabase {
    static SHARED: OnceCell<Server<MySql>> = OnceCell::const_new();
    let server = SHARED.get_or_init(Server::new).await;
    server.create_database().await
}

impl Databases for MySql {
    const KIND: ServerKind = ServerKind::MariaDb;
    const URL_VARIABLE: &'static str = MARIADB_URL_VARIABLE;

    fn database(options: &MySqlConnectOptions, name: &str) -> MySqlConnectOptions {
        options.clone().database(name)
    }

    fn drop_statement(name: &str) -> String {
        format!("DROP DATABASE {name}")
    }

    async fn execute(options: &MySqlConnectOptions, sql: String) -> Result<(), sqlx::Error> {
        let mut connection = MySqlConnection::connect_with(options).await?;
        connection.execute(AssertSqlSafe(sql)).await?;
        connection.close().await
    }
}
