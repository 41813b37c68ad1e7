//! A MariaDB or a MySQL with a replica.

use e2e::{servers::DatabaseServer, warden::ServerKind};
use reqwest::Url;
use sqlx::{AssertSqlSafe, Connection, Executor, MySqlConnection, Row, mysql::MySqlConnectOptions};

/// Two servers. The second one replicates the first one, and takes no writes of usual users.
pub(crate) struct Replicated {
    kind: ServerKind,
    first: DatabaseServer,
    replica: DatabaseServer,
}

impl Replicated {
    pub(crate) async fn start(kind: ServerKind) -> Self {
        let options = ["--server-id=1", "--log-bin=binlog"];
        let (first, replica) = tokio::join!(
            DatabaseServer::mysql_with(kind, &options),
            DatabaseServer::mysql_with(kind, &["--server-id=2", "--read-only=1"]),
        );
        let servers = Self {
            kind,
            first,
            replica,
        };
        servers.replicate().await;
        servers
    }

    /// From now on. The users with all rights are not the same.
    async fn replicate(&self) {
        let (log, position) = self.position().await;
        let url: Url = self.first.url().parse().unwrap();
        let [change, start, source, key] = self.words([
            ["CHANGE MASTER TO", "CHANGE REPLICATION SOURCE TO"],
            ["START SLAVE", "START REPLICA"],
            ["MASTER", "SOURCE"],
            ["", ", GET_SOURCE_PUBLIC_KEY = 1"],
        ]);
        let (port, user) = (url.port().unwrap(), url.username());
        let password = url.password().unwrap();
        let script = format!(
            "{change} {source}_HOST = '127.0.0.1', {source}_PORT = {port}, {source}_USER = '{user}',
             {source}_PASSWORD = '{password}', {source}_LOG_FILE = '{log}',
             {source}_LOG_POS = {position}{key}; {start}"
        );
        execute(&self.replica, &script).await;
    }

    /// Creates databases, and a user who may do everything in them.
    pub(crate) async fn create(&self, databases: &[&str]) {
        let mut script = "CREATE USER app@'127.0.0.1' IDENTIFIED BY 'secret'".to_owned();
        for name in databases {
            script +=
                &format!("; CREATE DATABASE {name}; GRANT ALL ON {name}.* TO app@'127.0.0.1'");
        }
        execute(&self.first, &script).await;
        self.until_replicated().await;
        // MySQL takes a password on TLS until it has seen it once.
        for server in [&self.first, &self.replica] {
            let options: MySqlConnectOptions = server.url().parse().unwrap();
            let options = options
                .username("app")
                .password("secret")
                .database(databases[0]);
            let seen = MySqlConnection::connect_with(&options).await;
            seen.unwrap().close().await.unwrap();
        }
    }

    pub(crate) fn first_address(&self) -> String {
        address(&self.first)
    }

    pub(crate) fn replica_address(&self) -> String {
        address(&self.replica)
    }

    /// The replica has all that there is, and takes writes from here on. The first one ends.
    pub(crate) async fn succeed(&self) {
        execute(&self.first, "SET GLOBAL read_only = 1").await;
        self.until_replicated().await;
        self.first.kill().await;
        let [stop] = self.words([["STOP SLAVE", "STOP REPLICA"]]);
        execute(&self.replica, &format!("{stop}; SET GLOBAL read_only = 0")).await;
    }

    async fn until_replicated(&self) {
        let (log, position) = self.position().await;
        let [wait] = self.words([["MASTER_POS_WAIT", "SOURCE_POS_WAIT"]]);
        let wait = format!("SELECT {wait}('{log}', {position}, 60)");
        let mut replica = connect(&self.replica).await;
        let waited = sqlx::query_scalar(AssertSqlSafe(wait)).fetch_one(&mut replica);
        let waited: Option<i64> = waited.await.unwrap();
        assert!(waited.is_some_and(|waited| waited >= 0), "{waited:?}");
    }

    /// Up to where the first one has written its log.
    async fn position(&self) -> (String, u64) {
        let [status] = self.words([["SHOW MASTER STATUS", "SHOW BINARY LOG STATUS"]]);
        let mut first = connect(&self.first).await;
        let status = first.fetch_one(AssertSqlSafe(status)).await.unwrap();
        (status.get(0), status.get(1))
    }

    fn words<const N: usize>(&self, words: [[&'static str; 2]; N]) -> [&'static str; N] {
        words.map(|[mariadb, mysql]| match self.kind {
            ServerKind::MariaDb => mariadb,
            _ => mysql,
        })
    }
}

async fn connect(server: &DatabaseServer) -> MySqlConnection {
    MySqlConnection::connect(server.url()).await.unwrap()
}

async fn execute(server: &DatabaseServer, script: &str) {
    let script = sqlx::raw_sql(AssertSqlSafe(script.to_owned()));
    connect(server).await.execute(script).await.unwrap();
}

fn address(server: &DatabaseServer) -> String {
    let options: MySqlConnectOptions = server.url().parse().unwrap();
    format!("{}:{}", options.get_host(), options.get_port())
}
