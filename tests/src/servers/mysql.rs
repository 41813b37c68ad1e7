use std::fmt::Debug;

use sqlx::{
    AssertSqlSafe, Connection, Executor, MySql, MySqlConnection,
    mysql::{MySqlConnectOptions, MySqlSslMode},
};
use tokio::sync::OnceCell;

use super::{
    DatabaseServer,
    database::{Databases, Server, TestDatabase},
};
use crate::warden::ServerKind;

/// The variable that names a MariaDB server to use instead of starting one.
///
/// Its user must have all rights: tests create users and end sessions, too.
pub const MARIADB_URL_VARIABLE: &str = "PALISADE_TEST_MARIADB_URL";

/// The variable that names a MySQL server to use instead of starting one.
pub const MYSQL_URL_VARIABLE: &str = "PALISADE_TEST_MYSQL_URL";

/// An empty database on a MariaDB or MySQL server.
pub type MySqlDatabase = TestDatabase<MySql>;

/// A server of MySQL's dialect. Tests of the dialect run on each of them.
pub trait MySqlServer: Debug + Send + Sync + 'static {
    /// The kind of the server.
    const KIND: ServerKind;

    /// The table of sessions. MySQL cannot always read its older table, because not all statements
    /// in that table are text.
    const SESSIONS: &'static str;

    /// Makes an empty database on a real server that the tests of this process share.
    fn database() -> impl Future<Output = MySqlDatabase> + Send;

    /// Starts a server for one test, which may kill it.
    fn start() -> impl Future<Output = DatabaseServer> + Send;
}

/// MariaDB, as Debian has it.
#[derive(Debug)]
pub struct OnMariaDb;

/// MySQL itself, as `scripts/mysql-server` puts it there.
#[derive(Debug)]
pub struct OnMySql;

impl MySqlServer for OnMariaDb {
    const KIND: ServerKind = ServerKind::MariaDb;
    const SESSIONS: &'static str = "information_schema.processlist";

    async fn database() -> MySqlDatabase {
        mariadb_database().await
    }

    async fn start() -> DatabaseServer {
        DatabaseServer::mariadb().await
    }
}

impl MySqlServer for OnMySql {
    const KIND: ServerKind = ServerKind::MySql;
    const SESSIONS: &'static str = "performance_schema.processlist";

    async fn database() -> MySqlDatabase {
        mysql_database().await
    }

    async fn start() -> DatabaseServer {
        DatabaseServer::mysql().await
    }
}

/// Makes an empty database on a real MariaDB that the tests of this process share.
///
/// # Panics
/// If there is no server: `mariadbd` is not installed, or the server in `PALISADE_TEST_MARIADB_URL`
/// refuses us.
pub async fn mariadb_database() -> MySqlDatabase {
    static SHARED: OnceCell<Server<MySql>> = OnceCell::const_new();
    let new = || Server::new(ServerKind::MariaDb, MARIADB_URL_VARIABLE);
    SHARED.get_or_init(new).await.create_database().await
}

/// Makes an empty database on a real MySQL. Until MySQL has seen the password of a user once, it
/// accepts the password on TLS only.
///
/// # Panics
/// If there is no server: `scripts/mysql-server` has not run, or the server in
/// `PALISADE_TEST_MYSQL_URL` refuses us.
pub async fn mysql_database() -> MySqlDatabase {
    static SHARED: OnceCell<Server<MySql>> = OnceCell::const_new();
    let new = || Server::new(ServerKind::MySql, MYSQL_URL_VARIABLE);
    SHARED.get_or_init(new).await.create_database().await
}

impl Databases for MySql {
    /// Without TLS, so that a proxy can read the messages. MySQL accepts the password,
    /// because `execute` has sent it on TLS before.
    fn database(options: &MySqlConnectOptions, name: &str) -> MySqlConnectOptions {
        let options = options.clone().ssl_mode(MySqlSslMode::Disabled);
        options.database(name)
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
