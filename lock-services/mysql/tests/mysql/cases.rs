//! The cases of all lock services in databases.

use std::{
    marker::PhantomData,
    path::{Path, PathBuf},
    time::Duration,
};

use e2e::{
    project::root,
    python::environment,
    servers::{DatabaseServer, MySqlDatabase, MySqlServer},
};
use serde_json::Value;
use sqlx::{MySql, MySqlPool, mysql::MySqlPoolOptions};
use tokio::sync::OnceCell;

use crate::{
    bank::Server,
    crashes::Crashing,
    in_a_database::{Database, statements},
    world::database_of,
};

pub(crate) struct On<S> {
    database: MySqlDatabase,
    server: PhantomData<S>,
}

impl<S: MySqlServer> Database for On<S> {
    type Db = MySql;

    const WAITER: &'static str = "fenced_waiter";

    const DEPOSITOR: &'static str = "fenced_deposit_mysql.py";

    const FENCE: [&'static str; 2] = [
        "resource = %s AND token = %s\n    AND holder = SHA2(%s, 256) AND issuer = %s LOCK",
        "%s <> '' OR %s <> 0\n    AND holder = SHA2(%s, 256) AND issuer = %s LOCK",
    ];

    async fn fresh() -> Self {
        Self {
            database: database_of::<S>().await,
            server: PhantomData,
        }
    }

    fn url(&self) -> String {
        self.database.url().to_owned()
    }

    /// The URL without the parameters of our own driver.
    fn plain(&self) -> String {
        self.database.url().split('?').next().unwrap().to_owned()
    }

    async fn pool(&self) -> MySqlPool {
        MySqlPool::connect(self.database.url()).await.unwrap()
    }

    statements!();

    async fn python() -> PathBuf {
        static MADE: OnceCell<PathBuf> = OnceCell::const_new();
        let made = MADE.get_or_init(|| async {
            let make = || {
                let list = "lock-services/mysql/tests/pymysql/requirements.txt";
                environment(Path::new(env!("CARGO_TARGET_TMPDIR")), &root().join(list))
            };
            tokio::task::spawn_blocking(make).await.unwrap()
        });
        made.await.join("bin").join("python")
    }

    fn is_refusal(said: &Value) -> bool {
        said["refused"].is_u64()
    }
}

impl<S: MySqlServer> Server for On<S> {
    const NOW_US: &'static str = "cast(unix_timestamp(sysdate(6)) * 1000000 as signed)";

    async fn durable(url: &str) -> MySqlPool {
        let pool = MySqlPoolOptions::new().acquire_timeout(Duration::from_secs(5));
        pool.connect(url).await.unwrap()
    }
}

impl<S: MySqlServer> Crashing for On<S> {
    const ROUNDS: usize = 4;

    async fn start() -> DatabaseServer {
        S::start().await
    }

    async fn stop(server: &DatabaseServer, _: usize) {
        server.kill().await;
    }
}

mod on_mariadb {
    use e2e::servers::OnMariaDb;

    use super::On;
    use crate::{crashes::crash_cases, in_a_database::database_cases};

    database_cases!(On<OnMariaDb>);
    crash_cases!(On<OnMariaDb>);
}

mod on_mysql {
    use e2e::servers::OnMySql;

    use super::On;
    use crate::{crashes::crash_cases, in_a_database::database_cases};

    database_cases!(On<OnMySql>);
    crash_cases!(On<OnMySql>);
}
